"""The fusion of hybrid.sql in Python, so that one question's candidates can be ranked by many settings; pure.

A test holds it against the statement, setting by setting: what it computes here is what a search would show.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agent_server.catalog import Fusion
from agent_server.retrieval.weigh import Candidate

#: Of hybrid.sql: a passage outside both arms' first NEAR_TOP is never lifted over one in both arms' first AGREED.
NEAR_TOP = 10
AGREED = 3


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to fuse; `weight` is the share of the dense arm and counts in 'score' alone."""

    fusion: Fusion
    weight: float = 0.5

    @property
    def name(self) -> str:
        return f"score {self.weight:g}" if self.fusion == "score" else self.fusion


@dataclass(frozen=True, slots=True)
class Member:
    """A candidate of either arm with both scores (where the passage has a vector) and the rank among those that hold a
    code of the question; `code_part` is what that rank counts: 1 for what the code stands for, less for a mention."""

    candidate: Candidate
    code_rank: int | None = None
    code_part: float | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What of the question and the search's settings the fusion depends on. `code_weight` is 0 without codes."""

    has_words: bool
    code_weight: float
    rrf_k: float
    authority_weight: float
    keep: int


def fused(members: Sequence[Member], asked: Asked, setting: Setting) -> list[Candidate]:
    """The first `keep` of the candidates under `setting`, best first, each with its score."""
    kept = [m for m in members if _is_found(m, setting)]
    parts = _by_score(kept, asked, setting.weight) if setting.fusion == "score" else _by_rank(kept, asked, setting)
    scores = _with_authority(kept, parts, asked, setting)
    ranked = [_as_found(m, setting, score) for m, score in zip(kept, scores, strict=True)]
    ranked.sort(key=lambda c: (1 not in (c.dense_rank, c.lexical_rank), -c.score, c.chunk_id))
    return sorted(ranked[: asked.keep], key=lambda c: (-c.score, c.chunk_id))


def _ranks(member: Member, setting: Setting) -> tuple[int | None, int | None]:
    """Ranks of the dense and the lexical arm, as far as the setting asks them."""
    c = member.candidate
    return (
        None if setting.fusion == "lexical" else c.dense_rank,
        None if setting.fusion == "dense" else c.lexical_rank,
    )


def _as_found(member: Member, setting: Setting, score: float) -> Candidate:
    dense, lexical = _ranks(member, setting)
    return replace(member.candidate, score=score, dense_rank=dense, lexical_rank=lexical)


def _is_found(member: Member, setting: Setting) -> bool:
    return _ranks(member, setting) != (None, None)


def _by_rank(members: Sequence[Member], asked: Asked, setting: Setting) -> list[float]:
    words = asked.has_words and setting.fusion != "dense"
    code_weight = asked.code_weight if words else 0.0
    greatest = (int(setting.fusion != "lexical") + int(words) + code_weight) / (asked.rrf_k + 1)
    out = []
    for member in members:
        dense, lexical = (0.0 if r is None else 1.0 / (asked.rrf_k + r) for r in _ranks(member, setting))
        code = 0.0 if member.code_rank is None else 1.0 / (asked.rrf_k + member.code_rank)
        coded = code_weight * (member.code_part or 0.0) * code
        out.append(dense / greatest + lexical / greatest + coded / greatest)
    return out


def _by_score(members: Sequence[Member], asked: Asked, weight: float) -> list[float]:
    cosines = [m.candidate.dense_score for m in members]
    known = [c for c in cosines if c is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    best = max((m.candidate.lexical_score or 0.0 for m in members), default=0.0)
    share = weight if asked.has_words else 1.0
    out = []
    for member, cosine in zip(members, cosines, strict=True):
        near = 0.0 if cosine is None else (cosine - low) / (high - low) if high > low else 1.0
        words = (member.candidate.lexical_score or 0.0) / best if best else 0.0
        out.append(share * near + (1 - weight) * words)
    return out


def _with_authority(members: Sequence[Member], parts: Sequence[float], asked: Asked, setting: Setting) -> list[float]:
    ranks = [_ranks(m, setting) for m in members]
    agreed = [p for p, (a, b) in zip(parts, ranks, strict=True) if a and b and max(a, b) <= AGREED]
    floor = min(agreed, default=None)
    out = []
    for member, part, pair in zip(members, parts, ranks, strict=True):
        # Postgres keeps it in four bytes and reckons in eight.
        score = part + asked.authority_weight * float(np.float32(member.candidate.authority))
        near_top = min(r for r in pair if r is not None) <= NEAR_TOP
        out.append(score if floor is None or near_top or part >= floor else min(score, floor - 1e-9))
    return out
