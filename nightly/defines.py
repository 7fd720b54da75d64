"""Terms and definition edges of a collection, kept as fresh as its passages: the database's side of `definitions`.

A source is read again when its passages are others than those that were read, or the rules are; one transaction a
source. Edges stay within a source, because a definition holds in the document that states it: `links` lead from the
words that use a term to the words that define it. A question finds definitions everywhere, through `terms`.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agent_server import db
from agent_server.catalog import Collection
from agent_server.db import Conn, Database
from agent_server.terms import fold_term
from nightly.definitions.passages import Located, Passage, definitions_of
from nightly.definitions.uses import Use, uses_of
from nightly.statements import execute, fetch_all

#: Raise it when the rules find something else in the same text: every source is then read again.
RULES = 2
PASSAGES_AT_ONCE = 500
#: Sources of more passages get terms and no edges: their uses would have to be held in memory.
MAX_PASSAGES_WITH_USES = 20_000


@dataclass(slots=True)
class DefinesReport:
    """What a refresh did."""

    sources: int = 0  #: read, because something had changed
    terms: int = 0
    edges: int = 0
    seconds: float = 0.0


def after_ingest(database: Database, collection: Collection, changed: Sequence[str]) -> DefinesReport:  # noqa: ARG001
    """What `kb ingest` and `kb remove` call: terms go with their passages, and what is not read yet shows itself."""
    return refresh(database, collection)


def refresh(
    database: Database,
    collection: Collection,
    *,
    everything: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> DefinesReport:
    """Read the sources whose passages or rules have changed, or all of them."""
    started = clock()
    report = DefinesReport()
    with database.owner(collection.schema_name) as connection:
        wanted = {"rules": str(RULES), "everything": "on" if everything else ""}
        stale = [row["source"] for row in fetch_all(connection, "defines_stale", wanted)]
    for source in stale:
        with database.owner(collection.schema_name) as connection:
            _read_source(connection, collection, source, report)
    report.seconds = clock() - started
    return report


def _read_source(connection: Conn, collection: Collection, source: str, report: DefinesReport) -> None:
    """Replace the terms and edges of one source. An ingestion of it waits, or has come before."""
    db.execute(connection, "file_lock", {"collection": collection.name, "source": source})
    row = next(iter(fetch_all(connection, "defines_version", {"rules": str(RULES), "source": source})), None)
    if row is None:
        return
    execute(connection, "defines_clear_terms", {"source": source})
    execute(connection, "defines_clear_links", {"source": source})
    defined = list(definitions_of(_passages(connection, source)))
    uses = uses_of(_few_passages(connection, source), defined) if defined else []
    execute(connection, "defines_terms", {"rows": json.dumps([_term(one) for one in defined])})
    report.edges += execute(connection, "defines_links", {"rows": json.dumps([_link(use) for use in uses])})
    execute(connection, "defines_done", {"source": source, "version": row["version"]})
    report.sources += 1
    report.terms += len(defined)


def _passages(connection: Conn, source: str) -> Iterator[Passage]:
    """The passages of a source in order, a part of them in memory at a time."""
    after = -1
    while rows := fetch_all(
        connection, "defines_passages", {"source": source, "after": after, "limit": PASSAGES_AT_ONCE}
    ):
        for row in rows:
            yield Passage(
                id=row["id"],
                text=row["text"],
                heading_path=tuple(row["heading_path"]),
                label=row["label"],
                char_start=row["char_start"],
                char_end=row["char_end"],
                lead=row["lead"],
            )
        after = rows[-1]["chunk_index"]


def _few_passages(connection: Conn, source: str) -> Iterator[Passage]:
    for number, passage in enumerate(_passages(connection, source)):
        if number == MAX_PASSAGES_WITH_USES:
            return
        yield passage


def _term(one: Located) -> dict[str, object]:
    found = one.definition
    return {
        "term": found.term,
        "folded": fold_term(found.term),
        "chunk": one.passage.id,
        "form": found.form,
        "scope": found.scope,
        "from_start": one.start,
        "from_end": one.end,
    }


def _link(use: Use) -> dict[str, object]:
    return {
        "from_chunk": use.passage.id,
        "to_chunk": use.defined.passage.id,
        "anchor": use.passage.text[use.start : use.end],
        "from_start": use.start,
        "from_end": use.end,
        "to_start": use.defined.start,
        "to_end": use.defined.end,
        "target_label": use.key,
    }
