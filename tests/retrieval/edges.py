"""Puts edges and terms between passages that are there, for tests of the read path."""

from collections.abc import Iterable

from agent_server.catalog import Collection
from agent_server.db import Database
from agent_server.terms import fold_term

LINK = """
INSERT INTO links (from_chunk, to_chunk, relation, anchor, from_start, from_end, to_start, to_end, target_label)
SELECT f.id, t.id, %(relation)s, %(anchor)s, %(at)s, %(at)s + 1, 0, 1, %(label)s
FROM chunks f, chunks t WHERE f.chunk_id = %(source)s AND t.chunk_id = %(target)s
"""
TERM = """
INSERT INTO terms (term, folded, chunk, form, scope, from_start, from_end)
SELECT %(term)s, %(folded)s, id, %(form)s, 'document', 0, length(text) FROM chunks WHERE chunk_id = %(chunk)s
"""


def cite(database: Database, collection: Collection, *pairs: tuple[str, str]) -> None:
    """Citations from the first passage of each pair to the second, by chunk_id; the words are "see …"."""
    with database.owner(collection.schema_name) as connection:
        for at, (source, target) in enumerate(pairs):
            values = {"source": source, "target": target, "relation": "cites", "at": at}
            done = connection.execute(LINK, {**values, "anchor": f"see {target}", "label": target})
            assert done.rowcount == 1, (source, target)


def use(database: Database, collection: Collection, source: str, target: str, term: str) -> None:
    """The passage `source` uses `term` as `target` defines it."""
    with database.owner(collection.schema_name) as connection:
        values = {"source": source, "target": target, "relation": "defines", "anchor": term, "at": 0}
        assert connection.execute(LINK, {**values, "label": fold_term(term)}).rowcount == 1


def define(
    database: Database, collection: Collection, terms: Iterable[tuple[str, str]], *, form: str = "means"
) -> None:
    """Terms with the passages (chunk_id) that define them."""
    with database.owner(collection.schema_name) as connection:
        for term, chunk in terms:
            values = {"term": term, "folded": fold_term(term), "chunk": chunk, "form": form}
            assert connection.execute(TERM, values).rowcount == 1, chunk
