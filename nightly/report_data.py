"""What a report shows, read from the database: figures and texts, nothing drawn yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent_server import db
from agent_server.catalog import Collection, list_collections
from agent_server.db import Database
from nightly.statements import fetch_all

RUNS = 30
FILES = 100  #: files not indexed, of each collection
SLOWEST = 10

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CollectionFigures:
    """One collection: what it holds, how it grew, and what its nights measured."""

    name: str
    description: str
    model: str
    ef_search: int | None
    stats: Row  #: as `kb stats`
    statuses: Sequence[Row]  #: status, files, passages
    growth: Sequence[Row]  #: day, files, passages; by the day on which files were last read
    not_indexed: Sequence[Row]  #: source, status, reason, indexed_at; at most FILES
    slowest: Sequence[Row]  #: at, query, total_ms, embed_ms, sql_ms
    recall: Sequence[Row]  #: at, filtered, recall, ef_search, …
    evaluations: Sequence[Row]  #: at, good, metrics, findings

    @property
    def left_out(self) -> int:
        """Files not indexed beyond those listed."""
        all_of_them = sum(s["files"] for s in self.statuses if s["status"] not in ("indexed", "removed"))
        return int(all_of_them) - len(self.not_indexed)


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything of a report. Times are aware."""

    at: datetime
    collections: Sequence[CollectionFigures]
    runs: Sequence[Row]  #: newest first, each with its `steps`


def gather(database: Database, at: datetime) -> Figures:
    """Read all figures. Raises DatabaseUnavailable."""
    with database.owner() as connection:
        collections = list_collections(connection)
        runs = fetch_all(connection, "report_runs", {"limit": RUNS})
        steps = fetch_all(connection, "report_steps", {"run_ids": [r["run_id"] for r in runs]})
    by_run: dict[int, list[Row]] = {}
    for step in steps:
        by_run.setdefault(step["run_id"], []).append(step)
    return Figures(
        at=at,
        collections=[_of(database, c) for c in collections],
        runs=[{**r, "steps": by_run.get(r["run_id"], [])} for r in runs],
    )


def _of(database: Database, collection: Collection) -> CollectionFigures:
    with database.owner(collection.schema_name) as connection:
        return CollectionFigures(
            name=collection.name,
            description=collection.description,
            model=collection.model,
            ef_search=collection.ef_search,
            stats=db.fetch_one(connection, "stats") or {},
            statuses=db.fetch_all(connection, "stats_status"),
            growth=fetch_all(connection, "report_growth"),
            not_indexed=fetch_all(connection, "report_files", {"limit": FILES}),
            slowest=fetch_all(connection, "report_slow", {"limit": SLOWEST}),
            recall=fetch_all(connection, "report_recall", {"collection": collection.name}),
            evaluations=fetch_all(connection, "report_evaluations", {"collection": collection.name}),
        )
