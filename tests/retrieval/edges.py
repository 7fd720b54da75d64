"""Puts edges and terms between passages that are there, for tests of the read path."""

from collections.abc import Iterable

from agent_server.catalog import Collection
from agent_server.db import Database
from agent_server.terms import fold_term

LINK = """
INSERT INTO links (from_chunk, to_chunk, relation, anchor, from_start, from_end, to_start, to_end, target_label, said)
SELECT f.id, t.id, %(relation)s, %(anchor)s, %(at)s, %(end)s, 0, 1, %(label)s,
       citing_lexemes('english', f.text, %(at)s, %(end)s)
FROM chunks f, chunks t WHERE f.chunk_id = %(source)s AND t.chunk_id = %(target)s
"""
TERM = """
INSERT INTO terms (term, folded, chunk, form, scope, from_start, from_end)
SELECT %(term)s, %(folded)s, id, %(form)s, 'document', 0, length(text) FROM chunks WHERE chunk_id = %(chunk)s
"""


def cite(
    database: Database, collection: Collection, *pairs: tuple[str, str], at: tuple[int, int] | None = None
) -> None:
    """Citations from the first passage of each pair to the second, by chunk_id; the words are "see …" and stand in its
    first sentence, or `at` these characters."""
    with database.owner(collection.schema_name) as connection:
        for n, (source, target) in enumerate(pairs):
            start, end = at or (n, n + 1)
            values = {"source": source, "target": target, "relation": "cites", "at": start, "end": end}
            done = connection.execute(LINK, {**values, "anchor": f"see {target}", "label": target})
            assert done.rowcount == 1, (source, target)


def use(database: Database, collection: Collection, source: str, target: str, term: str) -> None:
    """The passage `source` uses `term` as `target` defines it."""
    with database.owner(collection.schema_name) as connection:
        values = {"source": source, "target": target, "relation": "defines", "anchor": term, "at": 0, "end": 1}
        assert connection.execute(LINK, {**values, "label": fold_term(term)}).rowcount == 1


def define(
    database: Database, collection: Collection, terms: Iterable[tuple[str, str]], *, form: str = "means"
) -> None:
    """Terms with the passages (chunk_id) that define them."""
    with database.owner(collection.schema_name) as connection:
        for term, chunk in terms:
            values = {"term": term, "folded": fold_term(term), "chunk": chunk, "form": form}
            assert connection.execute(TERM, values).rowcount == 1, chunk
