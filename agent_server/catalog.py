"""Collections: look one up, create it, drop it as a unit; each has its schema and its reader role."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import psycopg
from psycopg import errors as pg

from agent_server import sql
from agent_server.db import Conn, Database, execute, fetch_all, fetch_one
from agent_server.embedding import EmbedderIdentity
from agent_server.errors import CollectionExists, InvalidArgument, ServiceError, UnknownCollection

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
HNSW_MAX_DIMENSIONS = 4000  # pgvector's limit for an HNSW index over halfvec

Fusion = Literal["rrf", "score", "dense", "lexical"]


@dataclass(frozen=True, slots=True)
class Collection:
    """A row of kb.collections, and whether a valid HNSW index stands now."""

    name: str
    schema_name: str
    reader_role: str
    description: str
    text_search_config: str
    lexical_ranker: str
    embedder: Literal["ollama", "local"]
    model: str
    model_digest: str
    dimensions: int
    context_tokens: int
    query_prefix: str
    passage_prefix: str
    chunk_size: int
    chunk_overlap: int
    avg_length: float | None
    fusion: Fusion
    fusion_weight: float
    authority_weight: float
    refusal_threshold: float | None
    expand_cites: bool  #: searches add what their hits cite
    expand_defines: bool  #: searches put the definition of what is asked for first
    #: Candidates that a walk through the HNSW graph keeps at least; None: twice those asked for. The recall audit of
    #: the nights raises it.
    ef_search: int | None
    has_hnsw: bool
    vector_column: int = 0  #: number of chunks.embedding: another one holds vectors of another model

    @property
    def contract(self) -> EmbedderIdentity:
        """The model that this collection's vectors come from."""
        return EmbedderIdentity(
            kind=self.embedder,
            model=self.model,
            digest=self.model_digest,
            dimensions=self.dimensions,
            query_prefix=self.query_prefix,
            passage_prefix=self.passage_prefix,
            context_tokens=self.context_tokens,
        )

    def to_json(self) -> dict[str, Any]:
        """What a caller may want to know of it."""
        return {k: v for k, v in asdict(self).items() if k != "vector_column"}


def list_collections(connection: Conn) -> list[Collection]:
    """All collections, by name."""
    return [_collection(row) for row in fetch_all(connection, "collection_list")]


def get_collection(connection: Conn, name: str) -> Collection:
    """The collection called `name`, ignoring case. Raises UnknownCollection with the names there are."""
    row = fetch_one(connection, "collection_get", {"name": name}) if NAME.fullmatch(name) else None
    if row is None:
        known = [c.name for c in list_collections(connection)]
        raise UnknownCollection(
            f"no collection is called {name!r}",
            hint=f"Known: {', '.join(known)}." if known else "There is none yet: `kb collection create NAME`.",
            details={"known": known},
        )
    return _collection(row)


def create_collection(
    database: Database,
    name: str,
    identity: EmbedderIdentity,
    *,
    description: str = "",
    text_search_config: str = "english",
    chunk_size: int = 800,
    chunk_overlap: int = 100,
) -> Collection:
    """Make a collection for vectors of `identity`: row, schema and reader role in one transaction.

    Raises InvalidArgument, CollectionExists.
    """
    if not NAME.fullmatch(name):
        raise InvalidArgument(
            "name",
            f"{name!r} is not a collection name; expected a letter, then up to 39 letters, digits, _ or -",
        )
    check_width(identity)
    if not 0 <= chunk_overlap < chunk_size:
        raise InvalidArgument("chunk_overlap", f"{chunk_overlap} must be at least 0 and less than {chunk_size}")
    schema = f"kb_{name.lower()}"
    role = reader_role_name(_database_name(database), name)
    values = {
        "name": name,
        "schema_name": schema,
        "reader_role": role,
        "description": description,
        "text_search_config": text_search_config,
        "embedder": identity.kind,
        "model": identity.model,
        "model_digest": identity.digest,
        "dimensions": identity.dimensions,
        "context_tokens": identity.context_tokens,
        "query_prefix": identity.query_prefix,
        "passage_prefix": identity.passage_prefix,
        "chunk_size": chunk_size,
        "chunk_overlap": chunk_overlap,
    }
    try:
        with database.owner() as connection:
            execute(connection, "collection_insert", values)
            statement = sql.load("collection").query(identifiers={"schema": schema}, dimensions=identity.dimensions)
            connection.execute(statement, {})
            _ensure_role(database, connection, role, schema)
            return get_collection(connection, name)
    except pg.UniqueViolation:
        raise CollectionExists(
            f"a collection called {name!r} exists (names are unique ignoring case)",
            hint="Choose another name, or `kb collection drop` the old one.",
        ) from None
    except pg.UndefinedObject as error:
        if "text search configuration" not in str(error):
            raise
        raise InvalidArgument(
            "text_search_config", f"Postgres has no text search configuration {text_search_config!r}",
            hint="Try simple, english, german, french, spanish …: `\\dF` in psql lists them.",
        ) from None  # fmt: skip
    except pg.InsufficientPrivilege as error:
        raise ServiceError(
            f"the owner role may not make the collection: {str(error).splitlines()[0]}",
            hint="It needs CREATEROLE and CREATE on the database: see ops/roles.sql.",
        ) from None


def check_width(identity: EmbedderIdentity) -> None:
    """Raise InvalidArgument for a model whose vectors are too wide for an index."""
    if not 1 <= identity.dimensions <= HNSW_MAX_DIMENSIONS:
        raise InvalidArgument(
            "dimensions",
            f"model {identity.model} is {identity.dimensions} wide; an HNSW index over halfvec holds at most "
            f"{HNSW_MAX_DIMENSIONS}",
            hint="Choose a narrower model.",
        )


def drop_collection(database: Database, name: str) -> Collection:
    """Remove a collection with all it holds, its schema and its reader role, in one transaction."""
    with database.owner() as connection:
        collection = get_collection(connection, name)
        database.forget_reader(collection.reader_role)
        execute(connection, "collection_delete", {"name": collection.name})
        statement = sql.load("collection_drop").query(identifiers=_identifiers(database, collection))
        connection.execute(statement, {})
    return collection


def set_expansion(database: Database, name: str, *, cites: bool | None, defines: bool | None) -> Collection:
    """Switch the edges that searches of a collection follow; None leaves a relation as it is. The collection as it is
    then. Raises UnknownCollection."""
    values = {k: "" if v is None else str(v).lower() for k, v in (("cites", cites), ("defines", defines))}
    with database.owner() as connection:
        found = get_collection(connection, name)
        execute(connection, "collection_expand", {"name": found.name, **values})
        return get_collection(connection, name)


def set_fusion(
    database: Database, name: str, fusion: Fusion, fusion_weight: float | None, tuning: Mapping[str, Any]
) -> None:
    """Say how a collection fuses its lists, and what was measured for it; `fusion_weight` None leaves it as it is.
    Raises UnknownCollection."""
    weight = "" if fusion_weight is None else str(fusion_weight)
    with database.owner() as connection:
        found = get_collection(connection, name)
        values = {"name": found.name, "fusion": fusion, "fusion_weight": weight, "tuning": json.dumps(tuning)}
        execute(connection, "collection_tune", values)


def tuning_of(connection: Conn, name: str) -> dict[str, Any] | None:
    """What `kb tune` measured when it last set the collection's fusion; None where it never did."""
    row = fetch_one(connection, "collection_tuning", {"name": name})
    return None if row is None else row["tuning"]


def ensure_roles(database: Database) -> list[str]:
    """Make missing reader roles and set all passwords to this host's secret; their names."""
    with database.owner() as connection:
        collections = list_collections(connection)
        for c in collections:
            _ensure_role(database, connection, c.reader_role, c.schema_name)
    return [c.reader_role for c in collections]


def reader_role_name(database: str, collection: str) -> str:
    """Name of a collection's reader role. Roles are cluster-wide, so the database is part of it; the hash keeps
    names apart that are cut to fit 63 bytes."""
    digest = hashlib.sha256(f"{database}\0{collection.lower()}".encode()).hexdigest()[:10]
    return f"kb_read_{_plain(database)[:18]}_{_plain(collection)[:22]}_{digest}"


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower())


def _database_name(database: Database) -> str:
    with database.owner() as connection:
        return connection.info.dbname


def _identifiers(database: Database, collection: Collection) -> dict[str, str]:
    return {
        "schema": collection.schema_name,
        "reader": collection.reader_role,
        "database": _database_name(database),
    }


def _ensure_role(database: Database, connection: Conn, role: str, schema: str) -> None:
    values = {"role": role, "password": database.reader_password(role)}
    with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
        for (statement,) in cursor.execute(sql.load("reader_role").query(), values).fetchall():
            connection.execute(statement)
    grants = sql.load("reader_grants").query(
        identifiers={"schema": schema, "reader": role, "database": connection.info.dbname}
    )
    connection.execute(grants, {})


def _collection(row: dict[str, Any]) -> Collection:
    return Collection(**{f.name: row[f.name] for f in fields(Collection)})
