"""Rows of one file: old passages out, new ones in, copies folded, ledger row written, in one transaction."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any

from psycopg import errors as pg

from agent_server.catalog import Collection
from agent_server.db import Conn, Database, execute, fetch_all, fetch_one
from agent_server.embedding import Vectors
from agent_server.errors import ContractMismatch
from agent_server.ingest.halfvecs import half_vectors
from agent_server.ingest.lengths import kept_length, settled_length
from agent_server.ingest.prepare import prepare
from agent_server.ingest.spool import EmbeddedPart
from agent_server.models import Chunk, FileStatus

LOCK_GROUPS = 1024  #: of passages, by their hash
LOCKED_SINGLY = 500  #: passages at most that a transaction locks one by one
TRIES = 5
FOLD_PASSAGES = 5_000  #: in one statement


class NameTaken(Exception):
    """A source belongs to a file of another root, named by the first argument."""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What `files` says of one source."""

    source: str
    root: str
    sha256: str
    size_bytes: int
    media_type: str
    status: FileStatus
    reason: str
    pipeline_version: str
    chunk_count: int = 0
    title: str = ""
    dated: date | None = None
    metadata: str = "{}"  #: JSON
    authority: float = 0.0


def in_transaction(
    database: Database, collection: Collection, work: Callable[[Conn], bool], *, durable: bool = True
) -> bool:
    """Run `work` in one transaction; again when Postgres chose it as the loser among writers of the same rows (a
    unique violation is two runs choosing the canonical copy of one passage). `durable` as for `Database.owner`."""
    for _ in range(TRIES - 1):
        with (
            suppress(pg.SerializationFailure, pg.DeadlockDetected, pg.UniqueViolation),
            database.owner(collection.schema_name, durable=durable) as connection,
        ):
            return work(connection)
    with database.owner(collection.schema_name, durable=durable) as connection:
        return work(connection)


def store_file(database: Database, collection: Collection, work: Callable[[Conn], bool]) -> bool:
    """Run `work` on the rows of one file, in one transaction that the disk is not waited for: a run has `finish_load`
    wait for all of its files at once before it says what it did."""
    return in_transaction(database, collection, work, durable=False)


def read_ledger(connection: Conn) -> dict[str, LedgerRow]:
    """All ledger rows of the collection in the search path, by source."""
    return {
        row["source"]: LedgerRow(
            source=row["source"],
            root=row["root"],
            sha256=row["sha256"],
            size_bytes=row["size_bytes"],
            media_type=row["media_type"],
            status=FileStatus(row["status"]),
            reason=row["reason"],
            pipeline_version=row["pipeline_version"],
            chunk_count=row["chunk_count"],
            title=row["title"],
            dated=row["dated"],
            authority=row["authority"],
        )
        for row in fetch_all(connection, "file_list", {"status": ""})
    }


def replace_file(
    connection: Conn,
    collection: Collection,
    row: LedgerRow,
    chunks: Sequence[Chunk] = (),
    vectors: Vectors | None = None,
    *,
    retired: bool = False,
) -> bool:
    """`replace_parts` for passages that are at hand: `vectors` is (n, d) in the order of `chunks`."""
    parts = [EmbeddedPart(prepare(chunks), vectors)] if chunks else []
    return replace_parts(connection, collection, row, parts, retired=retired)


def replace_parts(
    connection: Conn,
    collection: Collection,
    row: LedgerRow,
    parts: Iterable[EmbeddedPart],
    *,
    retired: bool = False,
    again: bool = False,
) -> bool:
    """Make the collection hold exactly the passages of `parts` for `row.source`, and say so in the ledger.

    `parts` is gone through twice, one part in memory at a time. The caller owns the transaction: all of it becomes
    visible at once, or nothing. False, and nothing done, when another run has stored this very version meanwhile,
    unless `again` says that what is stored is not to be relied on.
    Raises NameTaken when the source has come to be a file of another root.
    """
    execute(connection, "file_lock", {"collection": collection.name, "source": row.source})
    there = fetch_one(connection, "file_get", {"source": row.source})
    if there is not None and not again and _is_same(there, row):
        return False
    if there is not None and there["root"] != row.root and there["status"] != FileStatus.REMOVED:
        raise NameTaken(there["root"])
    new_hashes = {h for p in parts for h in p.part.hashes}
    old_hashes: set[bytes] = set()
    if there is not None:  # a source without a row has no passages: they refer to it
        old_hashes = {bytes(r["passage_hash"]) for r in fetch_all(connection, "chunk_hashes", {"source": row.source})}
    touched = sorted(new_hashes | old_hashes)
    _lock_passages(connection, collection, touched)
    if new_hashes:
        _require_same_vectors(connection, collection)
    execute(connection, "file_upsert", _ledger_values(row))
    if old_hashes:
        execute(connection, "chunk_delete", {"source": row.source})
    stored = _insert_all(connection, collection, row, parts, retired=retired) if new_hashes else 0
    if stored != row.chunk_count:
        raise ValueError(f"{stored} passages of {row.source} were stored, {row.chunk_count} were expected")
    fold_copies(connection, touched)
    return True


def _insert_all(
    connection: Conn, collection: Collection, row: LedgerRow, parts: Iterable[EmbeddedPart], *, retired: bool
) -> int:
    stored = 0
    length = kept_length(connection, collection)
    for embedded in parts:
        values = {
            "source": row.source,
            "config": collection.text_search_config,
            "avg_length": "" if length is None else str(length),
            "retired": retired,
            "authority": row.authority,
            "rows": embedded.part.rows,
            "embeddings": half_vectors(connection, embedded.vectors, len(embedded.part.hashes)),
        }
        stored += execute(connection, "chunk_insert", values)
        if length is None:
            length = settled_length(connection, collection)
    return stored


def rename_file(
    connection: Conn, collection: Collection, old: LedgerRow, source: str, root: str, authority: float
) -> bool:
    """Give a file and its passages another name; nothing is embedded.

    False, and nothing done, when the plan is out of date: the old name holds another version or nothing, or the new
    one has a file by now.
    """
    for name in sorted({old.source, source}):
        execute(connection, "file_lock", {"collection": collection.name, "source": name})
    here = fetch_one(connection, "file_get", {"source": old.source})
    if here is None or (here["sha256"], here["status"]) != (old.sha256, str(old.status)):
        return False
    there = fetch_one(connection, "file_get", {"source": source})
    if there is not None:
        if there["status"] != FileStatus.REMOVED:
            return False
        execute(connection, "file_forget", {"source": source})  # of a file that stood there once
    values = {"source": old.source, "new_source": source, "root": root, "authority": authority}
    execute(connection, "file_rename", values)
    set_authority(connection, collection, source, authority)
    return True


def set_authority(connection: Conn, collection: Collection, source: str, authority: float) -> int:
    """Carry a source's authority to its passages; how many changed. Copies are weighed against each other again."""
    hashes = sorted(bytes(r["passage_hash"]) for r in fetch_all(connection, "chunk_hashes", {"source": source}))
    execute(connection, "file_lock", {"collection": collection.name, "source": source})
    _lock_passages(connection, collection, hashes)
    changed = execute(connection, "chunk_authority", {"source": source, "authority": authority})
    execute(connection, "file_authority", {"source": source, "authority": authority})
    fold_copies(connection, hashes)
    return changed


def _lock_passages(connection: Conn, collection: Collection, hashes: Sequence[bytes]) -> None:
    """Keep others from choosing the canonical copy of any of these passages before the transaction ends."""
    slots = [int.from_bytes(h[:4], "big") >> 1 for h in hashes]
    values = {
        "collection": collection.name,
        "groups": [slot % LOCK_GROUPS for slot in slots],
        "passages": slots if len(slots) <= LOCKED_SINGLY else [],
    }
    execute(connection, "passages_lock", values)


def fold_copies(connection: Conn, hashes: Sequence[bytes]) -> None:
    """Let the best live copy stand for each of these passages, one and only one."""
    for at in range(0, len(hashes), FOLD_PASSAGES):
        some = {"hashes": list(hashes[at : at + FOLD_PASSAGES])}
        if copies := [row["passage_hash"] for row in fetch_all(connection, "fold_open", some)]:
            execute(connection, "fold_unset", {"hashes": copies})
            execute(connection, "fold_set", {"hashes": copies})


def _require_same_vectors(connection: Conn, collection: Collection) -> None:
    """Raise ContractMismatch when the collection's vectors have come from another model since `collection` was read."""
    now = (fetch_one(connection, "vector_column") or {}).get("vector_column")
    if now != collection.vector_column:
        raise ContractMismatch(
            f"collection {collection.name} was re-embedded with another model meanwhile",
            hint="Run `kb ingest` again with that model: what is stored already is not read again.",
        )


# -- values -----------------------------------------------------------------------------------------------------


def _is_same(there: dict[str, Any], row: LedgerRow) -> bool:
    keys = ("sha256", "pipeline_version", "root", "chunk_count")
    return there["status"] == str(row.status) and all(there[k] == getattr(row, k) for k in keys)


def _ledger_values(row: LedgerRow) -> dict[str, Any]:
    return {
        "source": row.source,
        "root": row.root,
        "sha256": row.sha256,
        "size_bytes": row.size_bytes,
        "media_type": row.media_type,
        "title": row.title,
        "dated": "" if row.dated is None else row.dated.isoformat(),
        "metadata": row.metadata,
        "authority": row.authority,
        "status": str(row.status),
        "reason": row.reason,
        "pipeline_version": row.pipeline_version,
        "chunk_count": row.chunk_count,
    }
