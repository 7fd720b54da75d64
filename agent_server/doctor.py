"""Examines an installation. Every finding comes with its cure: a command that exists.

Layer: beside retrieval and ingestion, knows neither. The statements are `sql/doctor_*.sql`.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any, Literal

import psycopg

from agent_server.catalog import Collection, ensure_roles, list_collections
from agent_server.db import (
    Conn,
    Database,
    current_revision,
    execute,
    fetch_all,
    fetch_one,
    head_revision,
    open_database,
    translated,
)
from agent_server.embedding import check_contract, make_embedder
from agent_server.errors import ContractMismatch, KnowledgeBankError
from agent_server.settings import Settings

Status = Literal["ok", "warn", "error"]

LEAST_POSTGRES = 160000
LEAST_PGVECTOR = (0, 8)
#: As at the end of a load: mean lengths that differ by less do not move BM25.
LENGTH_DRIFT = 0.10
FIX = "kb doctor --fix"
#: GIN indexes that a search relies on, with what it would do without.
GIN = {
    "chunks_tsv": "every word search reads all passages",
    "chunks_paragraphs": "near copies are found by reading all",
}
_COPIES_MENDED = 50_000


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: what was found, and the command that cures it ('' where nothing is wrong)."""

    name: str
    status: Status
    found: str
    cure: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def examine(settings: Settings) -> list[Check]:
    """All checks that can be made; one that finds the ground missing ends the list."""
    try:
        with translated(), open_database(settings, migrated=False) as database:
            with database.owner() as connection:
                out = list(check_server(connection))
                if any(c.status == "error" for c in out):
                    return out
                collections = list_collections(connection)
            for collection in collections:
                with database.owner(collection.schema_name) as connection:
                    out += check_collection(connection, collection)
                out.append(check_reader(database, collection))
    except KnowledgeBankError as error:
        return [Check("postgres", "error", error.message, error.hint)]
    return [*out, *check_embedder(settings, collections)]


def fix(settings: Settings) -> list[str]:
    """Mend what needs no decision: reader roles, term counts, copies, the dense index. What was done, in order."""
    done: list[str] = []
    with translated(), open_database(settings) as database:
        roles = ensure_roles(database)
        if roles:
            done.append(f"reader roles: {len(roles)} made sure of")
        with database.owner() as connection:
            collections = list_collections(connection)
        for collection in collections:
            with database.owner(collection.schema_name) as connection:
                # Held to the end: no ingestion merges counts or builds an index meanwhile.
                execute(connection, "lexemes_lock", {"collection": collection.name})
                done += [f"{collection.name}: {what}" for what in _mend(connection)]
    return done


def _mend(connection: Conn) -> Iterator[str]:
    broken = fetch_all(connection, "doctor_copies")[:_COPIES_MENDED]
    if broken:
        hashes = [bytes(r["passage_hash"]) for r in broken]
        execute(connection, "fold_unset", {"hashes": hashes})
        execute(connection, "fold_set", {"hashes": hashes})
        yield f"chose the copy that stands for {len(hashes)} passages"
    counts = fetch_one(connection, "doctor_lexemes") or {}
    if counts["wrong"] or counts["pending"]:
        execute(connection, "doctor_fix_lexemes")
        yield f"term counts made anew, {counts['wrong']} were wrong"
    searched = (fetch_one(connection, "doctor_passages") or {})["searched"]
    if searched and _dense_problem(fetch_all(connection, "doctor_indexes")):
        execute(connection, "hnsw_drop")
        # A parallel build keeps the graph in shared memory, which containers limit to 64 MB by default.
        connection.execute("SET LOCAL max_parallel_maintenance_workers = 0")
        execute(connection, "hnsw_create")
        yield f"dense index built over {searched} passages"


# -- the server -------------------------------------------------------------------------------------------------


def check_server(connection: Conn) -> Iterator[Check]:
    """Versions and migrations; later checks need all of them."""
    version = connection.info.server_version
    text = f"version {version // 10000}.{version % 10000}"
    if version >= LEAST_POSTGRES:
        yield Check("postgres", "ok", text)
    else:
        yield Check(
            "postgres", "error", f"{text}; 16 or newer is needed", "Upgrade the server that KB_DATABASE_URL names."
        )
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    if row is None:
        yield Check("pgvector", "error", "the extension is not installed in this database", "kb init")
    elif tuple(int(n) for n in str(row[0]).split(".")[:2]) >= LEAST_PGVECTOR:
        yield Check("pgvector", "ok", f"version {row[0]}")
    else:
        cure = 'Install pgvector 0.8 on the server, then: kb db psql -c "ALTER EXTENSION vector UPDATE"'
        yield Check("pgvector", "error", f"version {row[0]}; 0.8 or newer is needed", cure)
    at = current_revision(connection)
    if at == head_revision():
        yield Check("migrations", "ok", f"at {at}, the newest")
    elif at is not None and at > head_revision():
        found = f"at {at}, which this program does not know; it needs {head_revision()}"
        yield Check("migrations", "error", found, "pip install --upgrade knowledge-bank")
    else:
        yield Check("migrations", "error", f"at {at or 'none'}; {head_revision()} is needed", "kb init")


# -- a collection -----------------------------------------------------------------------------------------------


def check_collection(connection: Conn, collection: Collection) -> Iterator[Check]:
    """Indexes, vectors, copies, counts and the ledger of the collection in the connection's search path."""
    name = collection.name
    passages = fetch_one(connection, "doctor_passages") or {}
    indexes = fetch_all(connection, "doctor_indexes")
    yield from check_indexes(name, indexes, passages["searched"])
    yield check_vectors(name, passages)
    if fetch_one(connection, "shadow_get") is not None:
        found = "another model's vectors are unfinished: a re-embedding runs, or was interrupted"
        yield Check(f"{name} re-embedding", "warn", found, f"kb reembed {name}, or kb reembed {name} --abort")
    yield check_copies(name, fetch_all(connection, "doctor_copies"))
    yield check_counts(name, fetch_one(connection, "doctor_lexemes") or {})
    yield check_length(collection, fetch_one(connection, "length_measure") or {})
    statuses = {r["status"]: r["files"] for r in fetch_all(connection, "stats_status")}
    yield check_ledger(name, statuses, passages["unfiled"])


def check_indexes(name: str, indexes: Sequence[dict[str, Any]], searched: int) -> Iterator[Check]:
    """`indexes` are rows of doctor_indexes.sql."""
    problem = _dense_problem(indexes)
    if not problem:
        yield Check(f"{name} dense index", "ok", "HNSW, cosine, over the searched passages")
    elif not searched:
        yield Check(f"{name} dense index", "ok", "none yet: nothing is searched")
    else:
        yield Check(f"{name} dense index", "error", f"{problem}; searches compare all vectors", FIX)
    by_name = {i["name"]: i for i in indexes}
    for index, without in GIN.items():
        found = by_name.get(index)
        if found is None or found["method"] != "gin":
            yield Check(f"{name} {index}", "error", f"the index is missing: {without}", f"kb reindex {name}")
        elif found["valid"]:
            yield Check(f"{name} {index}", "ok", "GIN, valid")
    for row in indexes:
        if not row["valid"] and row["name"] != "chunks_embedding":
            problem = "the index is not valid: it is not used"
            yield Check(f"{name} {row['name']}", "error", problem, f"kb reindex {name}")


def _dense_problem(indexes: Sequence[dict[str, Any]]) -> str:
    """Why the dense index cannot serve a search; '' when it can."""
    index = next((i for i in indexes if i["name"] == "chunks_embedding"), None)
    if index is None:
        return "there is no dense index"
    if not index["valid"]:
        return "the dense index is not valid (its build was interrupted)"
    if index["method"] != "hnsw" or index["opclasses"] != "halfvec_cosine_ops":
        return f"the dense index is {index['method']} with {index['opclasses']}, not hnsw with halfvec_cosine_ops"
    if index["predicate"].strip("()") != "canonical":
        return f"the dense index covers {index['predicate'] or 'all rows'}, not the searched ones"
    return ""


def check_vectors(name: str, row: dict[str, Any]) -> Check:
    """`row` is that of doctor_passages.sql."""
    searched, without, zero = row["searched"], row["without_vector"], row["zero"]
    if zero:
        ddl = "UPDATE chunks SET embedding = NULL WHERE l2_norm(embedding) = 0"
        cure = f'kb db psql {name} -c "{ddl}"'
        return Check(f"{name} vectors", "error", f"{zero} of {searched} are zero: no question is near them", cure)
    if without:
        status: Status = "error" if without == searched else "warn"
        found = f"{without} of {searched} passages have none: only their words find them"
        return Check(f"{name} vectors", status, found, f"kb files {name} --status partial")
    return Check(f"{name} vectors", "ok", f"{searched} searched passages, each with one")


def check_copies(name: str, broken: Sequence[dict[str, Any]]) -> Check:
    """`broken` are rows of doctor_copies.sql."""
    if not broken:
        return Check(f"{name} copies", "ok", "one passage stands for each text")
    lost = sum(1 for r in broken if not r["standing"])
    found = f"{lost} texts have no passage that is searched, {len(broken) - lost} have several or only retired ones"
    return Check(f"{name} copies", "error", found, FIX)


def check_counts(name: str, row: dict[str, Any]) -> Check:
    """`row` is that of doctor_lexemes.sql."""
    if row["wrong"]:
        example = f", such as {row['example']!r}" if row["example"] else ""
        found = (
            f"{row['wrong']} term counts are wrong{example}; {row['stated']} passages stated, {row['counted']} counted"
        )
        return Check(f"{name} term counts", "error", found, FIX)
    if row["pending"]:
        return Check(f"{name} term counts", "warn", f"true, with {row['pending']} changes not merged yet", FIX)
    return Check(f"{name} term counts", "ok", f"true over {row['counted']} passages")


def check_length(collection: Collection, row: dict[str, Any]) -> Check:
    """`row` is that of length_measure.sql: the mean length that the BM25 vectors should be made with."""
    name, stored, measured = f"{collection.name} mean length", collection.avg_length, row["avg_length"]
    if not measured:
        return Check(name, "ok", "nothing to measure yet")
    if stored is None:
        found = f"never set, {float(measured):.1f} measured: the first load was not finished"
        return Check(name, "error", found, f"kb ingest {collection.name} FOLDER")
    if abs(math.log(float(measured) / stored)) > LENGTH_DRIFT:
        found = f"{stored:.1f} stored, {float(measured):.1f} measured: word ranking leans to long or short passages"
        return Check(name, "warn", found, f"kb ingest {collection.name} FOLDER")
    return Check(name, "ok", f"{stored:.1f} words, {float(measured):.1f} measured")


def check_ledger(name: str, statuses: dict[str, int], unfiled: int) -> Check:
    """`statuses` counts files by status; `unfiled` counts those that hold other passages than the ledger says."""
    if unfiled:
        found = f"{unfiled} files hold another number of passages than the ledger says"
        return Check(f"{name} files", "error", found, f"kb files {name}, then kb remove and kb ingest those files")
    told = ", ".join(f"{n} {status}" for status, n in statuses.items()) or "none yet"
    if statuses.get("failed"):
        return Check(f"{name} files", "warn", f"{told}: failed ones are tried again", f"kb ingest {name} FOLDER")
    if statuses.get("partial"):
        return Check(f"{name} files", "warn", told, f"kb files {name} --status partial")
    return Check(f"{name} files", "ok", told)


def check_reader(database: Database, collection: Collection) -> Check:
    """Whether the collection's reader role logs in, reads its own passages, and nothing of anybody else."""
    name, schema = f"{collection.name} reader role", collection.schema_name
    try:
        with translated(), database.reader(collection.reader_role, schema) as connection:
            connection.execute("SELECT FROM chunks, lexemes, files LIMIT 0")
            reach = fetch_one(connection, "doctor_reach", {"schema": schema}) or {}
    except psycopg.errors.InsufficientPrivilege as error:
        return Check(name, "error", f"may not read its own collection: {str(error).splitlines()[0]}", "kb db roles")
    except KnowledgeBankError as error:
        return Check(name, "error", error.message, "kb db roles")
    role = collection.reader_role
    if reach["too_strong"]:
        cure = (
            f'kb db psql -c "ALTER ROLE {role} NOSUPERUSER NOCREATEROLE NOCREATEDB NOBYPASSRLS", and revoke its roles'
        )
        return Check(name, "error", "is more than a reader: it has powers or is member of another role", cure)
    if reach["reachable"]:
        other = reach["reachable"][0]
        found = f"may enter other schemas: {', '.join(reach['reachable'])}"
        return Check(name, "error", found, f'kb db psql -c "REVOKE ALL ON SCHEMA {other} FROM PUBLIC, {role}"')
    return Check(name, "ok", "logs in, and is denied everywhere else")


# -- the embedder -----------------------------------------------------------------------------------------------


def check_embedder(settings: Settings, collections: Sequence[Collection]) -> list[Check]:
    """Whether the embedder answers, and is the one that each collection was made with."""
    try:
        with closing(make_embedder(settings)) as embedder:
            offered = embedder.identity()
    except KnowledgeBankError as error:
        return [Check("embedder", "error", error.message, error.hint or "kb doctor, when it answers again")]
    out = [Check("embedder", "ok", f"{offered.model} ({offered.kind}), {offered.dimensions} wide")]
    for collection in collections:
        try:
            check_contract(collection.contract, offered)
        except ContractMismatch as error:
            out.append(Check(f"{collection.name} model", "error", error.message, error.hint))
    return out
