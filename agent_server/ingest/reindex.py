"""New indexes for a collection that is searched meanwhile: built beside the old ones, then put in their place."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agent_server import sql
from agent_server.catalog import Collection, get_collection
from agent_server.db import Conn, Database, execute, fetch_all, fetch_one, translated
from agent_server.ingest import rebuild
from agent_server.ingest.rebuild import Pause

#: index -> the statement that makes its successor, called <index>_new
REBUILT = {
    "chunks_tsv": "reindex_tsv",
    "chunks_paragraphs": "reindex_paragraphs",
    "chunks_embedding": "reindex_embedding",
}
#: What builds that were killed leave behind: ours, those of a re-embedding, those of REINDEX CONCURRENTLY.
_LEFTOVER = re.compile(r"chunks_(tsv|paragraphs|embedding)_new|.*_cc(new|old)\d*")
_LEFT_INVALID = re.compile(r"chunks_embedding_next")

#: Told which index is being worked on, how many are done, and how many there are.
Watcher = Callable[[str, int, int], None]


@dataclass(slots=True)
class ReindexReport:
    """What was done, by index name."""

    collection: str
    dropped: list[str] = field(default_factory=list)  #: left behind by builds that were killed
    repaired: list[str] = field(default_factory=list)  #: other indexes that were not valid
    rebuilt: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "seconds": {k: round(v, 3) for k, v in self.seconds.items()}}


def reindex(
    database: Database,
    collection_name: str,
    *,
    only: Sequence[str] | None = None,
    watch: Watcher = lambda *_: None,
    pause: Pause = time.sleep,
    clock: Callable[[], float] = time.perf_counter,
) -> ReindexReport:
    """Build the dense index and both GIN indexes anew, or those of `only`, whatever state they are in; neither searches
    nor ingestion stop.

    A run that was killed leaves the old indexes in place, and the next one cleans up after it. Raises
    UnknownCollection, CollectionBusy.
    """
    with translated():
        with database.owner() as connection:
            collection = get_collection(connection, collection_name)
        with rebuild.rebuilding(database, collection) as session:
            report = ReindexReport(collection.name)
            _clean_up(session, report)
            searched = (fetch_one(session, "chunk_count") or {})["canonical"]
            names = [n for n in REBUILT if only is None or n in only]
            names = [n for n in names if searched or n != "chunks_embedding"]  # made at the end of the first load
            for done, name in enumerate(names):
                watch(name, done, len(names))
                started = clock()
                rebuild.build_concurrently(session, REBUILT[name], f"{name}_new")
                _swap(database, collection, name, pause)
                report.seconds[name] = clock() - started
                report.rebuilt.append(name)
            watch("", len(names), len(names))
            execute(session, "analyze_chunks")
    return report


def _clean_up(session: Conn, report: ReindexReport) -> None:
    """Drop what killed builds have left, and mend what is not valid and not rebuilt anyway."""
    for row in fetch_all(session, "doctor_indexes"):
        name = row["name"]
        if _LEFTOVER.fullmatch(name) or (not row["valid"] and _LEFT_INVALID.fullmatch(name)):
            rebuild.drop_index(session, name)
            report.dropped.append(name)
        elif not row["valid"] and name not in REBUILT:
            session.execute(sql.load("index_repair").query(identifiers={"name": name}), {})
            report.repaired.append(name)


def _swap(database: Database, collection: Collection, name: str, pause: Pause) -> None:
    def swap(connection: Conn) -> None:
        execute(connection, "chunks_lock")
        statement = sql.load("index_swap").query(identifiers={"name": name, "new_name": f"{name}_new"})
        connection.execute(statement, {})

    rebuild.in_a_moment(database, collection, swap, pause=pause)
