"""Citations of a collection, kept as fresh as its passages: the database's side of `references`.

A source is read again when its passages, its name or the rules are others than those that were read, and when it looks
for something that a changed source is, was or has become. First what changed sources are called is written down, then
the sources that look for such names join them, then each is read in a transaction of its own; a run that is broken off
leaves the rest to the next.
"""

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from psycopg import errors as pg

from agent_server import db
from agent_server.catalog import Collection
from agent_server.db import Conn, Database
from agent_server.models import Mark
from nightly.references.books import Book
from nightly.references.edges import Dangling, Edges, Link, edges_of
from nightly.references.manuscript import Passage, assemble
from nightly.statements import execute, fetch_all

#: Raise it when the rules find something else in the same text, or something else is kept of it: every source is then
#: read again.
RULES = 3
#: A source of more passages is neither cited nor read for citations: it would have to be held in memory.
MAX_PASSAGES = 20_000
TRIES = 5
#: Documents held in memory at once, by the characters of their text.
SHELF_CHARS = 40_000_000


@dataclass(slots=True)
class CitationsReport:
    """What a refresh did."""

    sources: int = 0  #: read, because something had changed
    links: int = 0
    dangling: int = 0
    seconds: float = 0.0


def after_ingest(database: Database, collection: Collection, changed: Sequence[str]) -> CitationsReport:  # noqa: ARG001
    """What `kb ingest` and `kb remove` call: what has changed shows itself, also what an earlier run left undone."""
    return refresh(database, collection)


def refresh(
    database: Database,
    collection: Collection,
    *,
    everything: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> CitationsReport:
    """Bring the citations of a collection up to date, or read all of them again.

    Two at once take turns. A source that cannot be read keeps the others from nothing; the first fault is raised when
    all are done, and such a source is tried again next time.
    """
    started = clock()
    report = CitationsReport()
    wanted = {"rules": str(RULES), "everything": "on" if everything else ""}
    with database.owner(collection.schema_name) as connection:
        if not fetch_all(connection, "citations_stale", wanted):
            return report
    with database.owner_autocommit() as lock:
        execute(lock, "citations_lock", {"collection": collection.name})
        shelf = _Shelf(database, collection)
        _announce(shelf, wanted)
        with database.owner(collection.schema_name) as connection:
            stale = [row["source"] for row in fetch_all(connection, "citations_stale", {**wanted, "everything": ""})]
        faults = [fault for source in stale if (fault := _attempt(shelf, source, report)) is not None]
    if faults:
        raise faults[0]
    report.seconds = clock() - started
    return report


def _announce(shelf: "_Shelf", wanted: dict[str, str]) -> None:
    """Write down what changed sources are called; whoever looks for what they are or were called is read again."""
    with shelf.database.owner(shelf.collection.schema_name) as connection:
        stale = fetch_all(connection, "citations_stale", wanted)
        for row in stale:
            book = shelf.load(connection, row["source"]) if row["version"] else None
            names = sorted(book.names) if book is not None else []
            if row["version"]:
                execute(connection, "citations_known", {"source": row["source"], "names": names})
            else:
                execute(connection, "citations_forget", {"source": row["source"]})
            execute(connection, "citations_disturb", {"names": sorted({*names, *row["names"]})})


def _attempt(shelf: "_Shelf", source: str, report: CitationsReport) -> Exception | None:
    """Read one source, again when an ingestion of what it cites was in the way; the fault that kept it from being."""
    try:
        for _ in range(TRIES - 1):
            with suppress(pg.DeadlockDetected):
                _read_source(shelf, source, report)
                return None
        _read_source(shelf, source, report)
    except Exception as error:  # noqa: BLE001  one text must not keep the edges of all others from being made
        error.add_note(f"while the citations of {source} were read")
        return error
    return None


def _read_source(shelf: "_Shelf", source: str, report: CitationsReport) -> None:
    """Replace the citations of one source, in a transaction. An ingestion of it waits, or has come before."""
    with shelf.database.owner(shelf.collection.schema_name) as connection:
        values = {"collection": shelf.collection.name, "source": source}
        db.execute(connection, "file_lock", values)
        version = next(iter(fetch_all(connection, "citations_version", {"rules": str(RULES), "source": source})), None)
        if version is None:
            return
        shelf.connection = connection
        book = shelf.book(source)
        edges = edges_of(book, shelf) if book is not None else Edges()
        execute(connection, "citations_clear_links", {"source": source})
        execute(connection, "citations_clear_dangling", {"source": source})
        rows = json.dumps([_link(one) for one in edges.links])
        config = shelf.collection.text_search_config
        links = execute(connection, "citations_links", {"rows": rows, "config": config})
        rows = json.dumps([_dangling(one) for one in edges.dangling])
        dangling = execute(connection, "citations_dangling", {"rows": rows})
        done = {"source": source, "version": version["version"], "wants": sorted(edges.wants)}
        execute(connection, "citations_done", done)
    report.sources += 1
    report.links += links
    report.dangling += dangling


class _Shelf:
    """The documents of a collection as `references` wants them; the last ones that were used are held."""

    def __init__(self, database: Database, collection: Collection) -> None:
        self.database = database
        self.collection = collection
        self.connection: Conn | None = None  #: the transaction that asks
        self._books: OrderedDict[str, tuple[int, Book | None]] = OrderedDict()
        self._called: dict[str, Sequence[str]] = {}

    def called(self, key: str) -> Sequence[str]:
        """Sources known by that name."""
        assert self.connection is not None  # noqa: S101  asked within _read_source alone
        if key not in self._called:
            rows = fetch_all(self.connection, "citations_called", {"name": key})
            self._called[key] = [row["source"] for row in rows]
        return self._called[key]

    def book(self, source: str) -> Book | None:
        """A document; None when it has gone or is too large."""
        assert self.connection is not None  # noqa: S101  asked within _read_source alone
        return self.load(self.connection, source)

    def load(self, connection: Conn, source: str) -> Book | None:
        """A document from its passages, once as long as they are the same."""
        version = next(iter(fetch_all(connection, "citations_version", {"rules": "", "source": source})), None)
        first = int(version["version"].rpartition(":")[2]) if version else 0
        held = self._books.get(source)
        if held is not None and held[0] == first:
            self._books.move_to_end(source)
            return held[1]
        book = _book(connection, source) if first else None
        self._books[source] = first, book
        self._books.move_to_end(source)
        while len(self._books) > 1 and self._chars() > SHELF_CHARS:
            self._books.popitem(last=False)
        return book

    def _chars(self) -> int:
        return sum(len(book.manuscript.text) for _, book in self._books.values() if book is not None)


def _book(connection: Conn, source: str) -> Book | None:
    rows = fetch_all(connection, "citations_passages", {"source": source, "limit": MAX_PASSAGES + 1})
    if not 0 < len(rows) <= MAX_PASSAGES:
        return None
    passages = [
        Passage(r["id"], r["char_start"], r["char_end"], r["text"], tuple(Mark(*mark) for mark in r["marks"]))
        for r in rows
    ]
    return Book(assemble(source, rows[0]["title"], rows[0]["media_type"], passages))


def _link(one: Link) -> dict[str, object]:
    return {
        "from_chunk": one.origin.passage,
        "to_chunk": one.target.passage,
        "anchor": one.anchor,
        "from_start": one.origin.start,
        "from_end": one.origin.end,
        "to_start": one.target.start,
        "to_end": one.target.end,
        "target_label": one.label,
    }


def _dangling(one: Dangling) -> dict[str, object]:
    return {
        "from_chunk": one.origin.passage,
        "anchor": one.anchor,
        "from_start": one.origin.start,
        "from_end": one.origin.end,
        "target_label": one.label,
        "reason": one.reason,
    }
