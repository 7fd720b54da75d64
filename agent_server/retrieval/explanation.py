"""What `kb explain` says: a search's terms and settings, and where each step of it put a passage."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from agent_server.models import Degraded, Passage
from agent_server.retrieval.verdict import Arm, Outcome


@dataclass(frozen=True, slots=True)
class TermPart:
    """A term of the question, in the collection and in one passage."""

    term: str
    kind: str  #: word, identifier or bigram
    qtf: int  #: how often in the question
    ndoc: int  #: passages that hold it
    idf: float
    tf: int = 0  #: how often in this passage
    score: float = 0.0  #: its part of the passage's BM25 score


@dataclass(frozen=True, slots=True)
class Fused:
    """A candidate's fused score: by_dense + by_lexical + by_code = fused; with the bonus, score."""

    by_dense: float
    by_lexical: float
    by_code: float
    fused: float
    bonus: float
    score: float
    code_rank: int | None  #: among candidates that hold a rare code of the question
    code_part: float | None  #: what that rank counts: 1 for the code's own entry, less for a mention

    @property
    def is_capped(self) -> bool:
        """Whether the bonus was held back, as it would lift the passage over one that both arms rank high."""
        return self.score < self.fused + self.bonus - 1e-12


@dataclass(frozen=True, slots=True)
class Explained:
    """One passage: where each step put it, and what was decided there."""

    chunk_id: str
    source: str
    title: str
    outcome: Outcome
    reason: str
    rank: int | None
    score: float | None  #: as the search shows it; a near copy that stands for others may have taken theirs over
    fused_place: int | None
    folded_place: int | None
    folded_into: str | None
    dense: Arm
    lexical: Arm
    fusion: Fused | None
    authority: float
    terms: tuple[TermPart, ...] = ()

    def to_json(self) -> dict[str, Any]:
        out = asdict(self)
        if self.fusion is not None:
            out["fusion"]["capped"] = self.fusion.is_capped
        return out


@dataclass(frozen=True, slots=True)
class Explanation:
    """A search with its passages explained, in the order of their places."""

    query: str
    collection: str
    terms: tuple[TermPart, ...]
    settings: Mapping[str, Any]
    candidates: Mapping[str, int]
    degraded: tuple[Degraded, ...]
    diagnostic: str | None
    passages: tuple[Explained, ...]
    shown: tuple[Passage, ...] = field(repr=False)  #: the result itself
    request: Mapping[str, Any] = field(repr=False)  #: as a trace would keep it, and so
    variables: Mapping[str, Any] = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "collection": self.collection,
            "settings": dict(self.settings),
            "candidates": dict(self.candidates),
            "terms": [{k: v for k, v in asdict(t).items() if k not in ("tf", "score")} for t in self.terms],
            "degraded": [asdict(d) for d in self.degraded],
            "diagnostic": self.diagnostic,
            "passages": [p.to_json() for p in self.passages],
        }
