"""Upkeep of a collection: counts that ranking rests on are recounted, drift is restated, dead rows go, worn indexes are
built anew, old traces and claims long gone are forgotten, and what takes the time is told.

Nothing here keeps a search from its answer; what is in order costs a look.
"""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg

from agent_server import sql
from agent_server.catalog import Collection
from agent_server.db import Database, execute, fetch_all, fetch_one
from agent_server.ingest import index
from agent_server.ingest.reindex import REBUILT, reindex
from agent_server.retrieval import trace
from nightly import statements
from nightly.jobs import NightContext, StepReport

#: A vacuum is due when dead rows are this share of a table, and so many that it matters.
DEAD_SHARE = 0.2
LEAST_DEAD = 1000
#: The dense index is built anew when this share of it serves no passage: walks pass through what is dead.
HNSW_DEAD_SHARE = 0.3
LEAST_HNSW_PAGES = 64
#: Recall that a new index did not cure is not tried again every night.
RECALL_REBUILD_DAYS = 7
SLOWEST = 10
#: How long what became of a claim is kept after its last words have gone.
STALE_CLAIMS_DAYS = 90

#: Of pgvector's src/hnsw.h, 8 kB pages: an element is 72 bytes and its vector (halfvec: 8 + 2 a dimension), its links
#: 4 + 6 a link, 2 m of them on the ground layer and m on each of the 1 / (m - 1) layers above that it has on average;
#: both are aligned to 8 bytes, have a line pointer of 4 each, and stand on one page when they fit.
_PAGE_ROOM = 8192 - 24 - 8
_ELEMENT = 72
_VECTOR = 8
_LINK = 6
_POINTER = 4


@dataclass(frozen=True, slots=True)
class DenseIndex:
    """What there is of a dense index, and what it serves."""

    pages: int
    rows: int
    dimensions: int
    m: int

    @property
    def dead_share(self) -> float:
        """Share of the index that serves no passage, from the room that its rows would need; 0 to 1."""
        return max(0.0, 1 - least_pages(self.rows, self.dimensions, self.m) / self.pages) if self.pages else 0.0


def least_pages(rows: int, dimensions: int, m: int) -> int:
    """Pages of a dense index that was just built over `rows` vectors (the formulas above), its head included."""
    element = _aligned(_ELEMENT + _VECTOR + 2 * dimensions)
    links = _aligned(4 + round((2 + 1 / (m - 1)) * m) * _LINK)
    together = element + links + 2 * _POINTER
    if together <= _PAGE_ROOM:
        return 1 + math.ceil(rows / (_PAGE_ROOM // together))
    return 1 + rows + math.ceil(rows / (_PAGE_ROOM // (links + _POINTER)))


def _aligned(size: int) -> int:
    return (size + 7) // 8 * 8


def job(database: Database, collection: Collection, context: NightContext) -> StepReport:
    """All upkeep of one collection. Raises CollectionBusy when a re-embedding or reindexing is at work on it."""
    counts: dict[str, int | float | str] = {}
    findings: list[str] = []
    counts["lexemes_mended"] = mend_lexemes(database, collection)
    counts["claim_lexemes_mended"] = mend_claim_lexemes(database, collection)
    # Merges counts, restates lengths that drifted, builds a dense index that is missing, and runs ANALYZE.
    loaded = index.finish_load(database, collection, changed_rows=1)
    counts["restated"] = int(loaded.restated)
    counts["dense_index_built"] = int(loaded.built_hnsw)
    counts |= mend_indexes(database, collection, context)
    counts["vacuumed"] = vacuum(database, collection)
    with database.owner(collection.schema_name) as connection:
        pruned = trace.prune(connection, context.settings.trace_retention_days, context.clock())
    counts |= {f"{name}_forgotten": n for name, n in pruned.items()}
    counts["stale_claims_forgotten"] = forget_stale_claims(database, collection, context.clock())
    findings += slowest(database, collection)
    counts["slow_statements"] = len(findings)
    done = [f"{name.replace('_', ' ')} {n}" for name, n in counts.items() if n and name != "dead_share"]
    return StepReport(counts, summary=", ".join(done) or "all in order", findings=tuple(findings))


def mend_lexemes(database: Database, collection: Collection) -> int:
    """Compare document frequencies with a recount, and take the recount; how many lexemes were wrong."""
    with database.owner(collection.schema_name) as connection:
        wrong = int((fetch_one(connection, "doctor_lexemes") or {})["wrong"])
        if wrong:
            execute(connection, "lexemes_lock", {"collection": collection.name})
            execute(connection, "doctor_fix_lexemes")
    return wrong


def mend_claim_lexemes(database: Database, collection: Collection) -> int:
    """The same for the frequencies over verified claims."""
    with database.owner(collection.schema_name) as connection:
        wrong = int((fetch_one(connection, "doctor_claim_lexemes") or {})["wrong"])
        if wrong:
            statements.execute(connection, "claims_lock", {"collection": collection.name})
            execute(connection, "doctor_fix_claim_lexemes")
    return wrong


def forget_stale_claims(database: Database, collection: Collection, now: datetime) -> int:
    """Forget claims of rules whose words have been gone for long; how many. Each version of a document leaves some."""
    before = (now - timedelta(days=STALE_CLAIMS_DAYS)).isoformat()
    with database.owner(collection.schema_name) as connection:
        statements.execute(connection, "claims_lock", {"collection": collection.name})
        return int(statements.fetch_all(connection, "maintain_stale_claims", {"before": before})[0]["claims"])


def mend_indexes(database: Database, collection: Collection, context: NightContext) -> dict[str, int | float | str]:
    """Build anew, beside the old ones, indexes that are not valid, and the dense one where it is worn or finds too
    little. Counts: what was done, the dead share found, and why the dense index was rebuilt."""
    with database.owner(collection.schema_name) as connection:
        indexes = fetch_all(connection, "doctor_indexes")
        rows = statements.fetch_all(connection, "maintain_index")
    invalid = [row["name"] for row in indexes if not row["valid"]]
    dense = DenseIndex(**rows[0]) if rows else None
    share = round(dense.dead_share, 3) if dense is not None else 0.0
    why = ""
    if dense is not None and dense.pages >= LEAST_HNSW_PAGES and dense.dead_share >= HNSW_DEAD_SHARE:
        why = "dead share"
    elif dense is not None and _finds_too_little(database, collection, context.settings.recall_target, context.clock()):
        why = "recall"
    counts: dict[str, int | float | str] = {"invalid_indexes": len(invalid), "dead_share": share, "indexes_rebuilt": 0}
    if invalid or why:
        only = [name for name in REBUILT if name in invalid or (why and name == "chunks_embedding")]
        report = reindex(database, collection.name, only=only)
        counts["indexes_rebuilt"] = len(report.rebuilt) + len(report.repaired)
    if why:
        counts["rebuilt_for"] = why
    return counts


def _finds_too_little(database: Database, collection: Collection, target: float, now: datetime) -> bool:
    """Whether the newest audit left recall below the target, and no rebuild has been tried for that lately."""
    values = {"collection": collection.name, "now": now, "days": RECALL_REBUILD_DAYS}
    with database.owner() as connection:
        rows = statements.fetch_all(connection, "maintain_recall", values)
    return bool(rows) and rows[0]["recall"] < target


def vacuum(database: Database, collection: Collection) -> int:
    """VACUUM and ANALYZE what many rows were deleted or replaced from; how many tables."""
    with database.owner_autocommit(collection.schema_name) as connection:
        tables = statements.fetch_all(connection, "maintain_dead", {"least": LEAST_DEAD, "share": DEAD_SHARE})
        for table in tables:
            statement = sql.load("maintain_vacuum", statements.FOLDER)
            connection.execute(statement.query(identifiers={"table": table["name"]}), {})
    return len(tables)


def slowest(database: Database, collection: Collection) -> list[str]:
    """The statements that the collection's searches spent most time in, a line each; none without
    pg_stat_statements. Their texts are shown to a role that may read them (pg_read_all_stats)."""
    with database.owner() as connection:
        there = statements.fetch_all(connection, "maintain_statements_there")
        if not there:
            return []
        statement = sql.load("maintain_statements", statements.FOLDER)
        query = statement.query(identifiers={"schema": there[0]["schema"]})
        values = {"role": collection.reader_role, "limit": SLOWEST}
        with (
            suppress(psycopg.errors.ObjectNotInPrerequisiteState),  # installed, and the server does not load it
            connection.transaction(),
            connection.cursor(row_factory=psycopg.rows.dict_row) as cursor,
        ):
            return [_line(row) for row in cursor.execute(query, values).fetchall()]
    return []


def _line(row: Mapping[str, Any]) -> str:
    said = " ".join(line for line in row["query"].splitlines() if line.strip() and not line.lstrip().startswith("--"))
    return f"{row['total_ms'] / 1000:.1f} s in {row['calls']} calls, {row['mean_ms']:.1f} ms each: {said.strip()[:160]}"
