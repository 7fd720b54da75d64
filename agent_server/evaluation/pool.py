"""One question asked once: the candidates of both arms with both scores, to be fused in many ways (fuse.py).

What a search does after the fusion (folding near copies, looking further, reranking, following edges) needs more than
the scores and depends on the order. A question where any of this could happen has no pool: the search itself is asked,
setting by setting.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent_server.catalog import Collection
from agent_server.db import Conn, Database, execute, fetch_all, translated
from agent_server.embedding import Embedder
from agent_server.errors import InvalidArgument
from agent_server.evaluation.fuse import Asked, Member, Setting, fused
from agent_server.evaluation.gold import Shown
from agent_server.lexemes import lexical_text
from agent_server.retrieval.candidates import (
    Run,
    SearchOptions,
    hybrid,
    plan_lexical,
    reranks,
    set_session,
    variables,
    wanted_rows,
)
from agent_server.retrieval.expand import followed
from agent_server.retrieval.search import begun, checked
from agent_server.retrieval.shown import with_anchors
from agent_server.retrieval.weigh import Candidate, Group, shared_paragraphs


@dataclass(frozen=True, slots=True)
class Pool:
    """The union of both arms' candidates, and each one's exact copies (by row id)."""

    members: tuple[Member, ...]
    also_in: Mapping[int, tuple[str, ...]]
    asked: Asked
    top_k: int

    def shown(self, setting: Setting) -> tuple[Shown, ...]:
        """What a search with `setting` shows, best first."""
        groups = with_anchors([Group(c) for c in fused(self.members, self.asked, setting)], self.top_k)
        return tuple(Shown(g.head.chunk_id, g.head.text, self.also_in.get(g.head.id, ())) for g in groups)


def gather(
    database: Database, collection: Collection, question: str, embedder: Embedder, options: SearchOptions
) -> Pool | None:
    """The question's pool; None where the search itself must be asked.

    Raises ContractMismatch, DatabaseUnavailable. `options` say all but the fusion, and hold no filter.
    """
    try:
        query = checked(question, options)
    except InvalidArgument:
        return None
    run = begun(collection, query, embedder, replace(options, fusion="rrf"))
    if followed(run) or reranks(options) or not run.vector:
        return None
    with translated(), database.reader(collection.reader_role, collection.schema_name) as connection:
        execute(connection, "steady")
        set_session(connection, run)
        run.lexical = plan_lexical(connection, run, lexical_text(query, question=True))
        rows = _candidates(connection, run)
        members = tuple(_member(row) for row in rows)
        if options.fold_near_copies and shared_paragraphs([m.candidate for m in members]):
            return None
        also: dict[int, list[str]] = {}
        for row in fetch_all(connection, "copies", {"ids": [m.candidate.id for m in members]}):
            also.setdefault(row["id"], []).append(row["chunk_id"])
    return Pool(members, {id_: tuple(ids) for id_, ids in also.items()}, _asked(run), options.top_k)


def _candidates(connection: Conn, run: Run) -> Sequence[Mapping[str, Any]]:
    """All rows that hybrid.sql ranks, not only the best."""

    def rows() -> Sequence[Mapping[str, Any]]:
        return fetch_all(connection, "hybrid", {**variables(run), "keep": 2 * wanted_rows(run.options)})

    found = rows()
    if found and found[0]["dense_found"] < wanted_rows(run.options):
        hybrid(connection, run)  # decides whether vectors are compared one by one
        found = rows()
    return found


def _asked(run: Run) -> Asked:
    values = variables(run)
    return Asked(
        has_words=bool(values["tsquery"]),
        code_weight=values["code_weight"] if values["codes"] else 0.0,
        rrf_k=values["rrf_k"],
        authority_weight=values["authority_weight"],
        keep=values["keep"],
    )


def _member(row: Mapping[str, Any]) -> Member:
    candidate = Candidate(
        id=row["id"],
        chunk_id=row["chunk_id"],
        score=float(row["score"]),
        dense_rank=row["dense_rank"],
        dense_score=row["dense_score"],
        lexical_rank=row["lexical_rank"],
        lexical_score=row["lexical_score"],
        authority=row["authority"],
        text=row["text"],
        context=row["context"],
        paragraphs=dict.fromkeys(row["paragraph_hashes"], (0, 0)),
    )
    return Member(candidate, row["code_rank"], row["code_part"])
