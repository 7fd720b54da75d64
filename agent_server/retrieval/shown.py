"""What a search shows: the best passages with what is needed to cite them, and each arm's first hit among them."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_server.db import Conn, fetch_all
from agent_server.models import Passage
from agent_server.retrieval import near
from agent_server.retrieval.candidates import Run
from agent_server.retrieval.expand import Placed
from agent_server.retrieval.weigh import Group


def shown(connection: Conn, run: Run, placed: Sequence[Placed]) -> tuple[Passage, ...]:
    """Hits and what edges added, as passages."""
    if not placed:
        return ()
    ids = [p.id for p in placed]
    values = {"ids": ids, "vector": run.vector, "bm25": run.lexical.bm25}
    rows = {row["id"]: row for row in fetch_all(connection, "passages", values)}
    also: dict[int, list[str]] = {}
    for row in fetch_all(connection, "copies", {"ids": ids}):
        also.setdefault(row["id"], []).append(row["chunk_id"])
    for group in (p.group for p in placed if p.group is not None):
        if group.hashes:
            also.setdefault(group.head.id, []).extend(r["chunk_id"] for r in near.near_copies(connection, group))
    return tuple(_passage(rank, p, rows[p.id], also.get(p.id, []), run) for rank, p in enumerate(placed, 1))


def with_anchors(groups: Sequence[Group], top_k: int) -> list[Group]:
    """The best `top_k`, where each arm's first hit replaces the last ones if it would fall out."""
    best, left = list(groups[:top_k]), groups[top_k:]
    if top_k < 2:
        return best
    for outsider in (g for g in left if _is_anchor(g)):
        for at in range(len(best) - 1, -1, -1):
            if not _is_anchor(best[at]):
                del best[at]
                best.append(outsider)
                break
    return best


def _is_anchor(group: Group) -> bool:
    return any(1 in (c.dense_rank, c.lexical_rank) for c in (group.head, *group.folded))


def _passage(rank: int, placed: Placed, row: Mapping[str, Any], also_in: Sequence[str], run: Run) -> Passage:
    head = placed.group.head if placed.group else placed.candidate  # None: an edge led to what no arm found
    others = tuple(dict.fromkeys(c for c in also_in if c != row["chunk_id"]))[: near.MAX_COPIES]
    lexical_score = row["lexical_score"] if run.lexical.terms else None
    return Passage(
        rank=rank,
        chunk_id=row["chunk_id"],
        source=row["source"],
        title=row["title"],
        chunk_index=row["chunk_index"],
        page=row["page_first"],
        heading=tuple(row["heading_path"]),
        text=row["text"],
        context=row["context"],
        score=round(head.score, 6) if head else 0.0,
        dense_rank=head.dense_rank if head else None,
        dense_score=_rounded(row["dense_score"]),
        lexical_rank=head.lexical_rank if head else None,
        lexical_score=_rounded(lexical_score),
        authority=round(row["authority"], 4),
        also_in=others,
        via=placed.via,
        edge=placed.edge,
    )


def _rounded(value: Any) -> float | None:
    return None if value is None else round(float(value), 5)
