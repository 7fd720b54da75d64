"""Roles: each collection's reader logs in, reads its own passages, and nothing of anybody else."""

from collections.abc import Iterator, Mapping
from typing import Any

import psycopg

from agent_server.catalog import Collection
from agent_server.db import Database, fetch_one, translated
from agent_server.doctor.check import Check, cure, psql, quoted
from agent_server.errors import KnowledgeBankError

#: Cures a role that cannot do what it should; one that can do more is another matter.
ROLES = cure("db", "roles")


def check_reader(database: Database, collection: Collection) -> Iterator[Check]:
    """What the role can do is asked as the role itself, on a connection that logged in as it."""
    name, schema = f"{collection.name} reader role", collection.schema_name
    try:
        with translated(), database.reader(collection.reader_role, schema) as connection:
            fetch_one(connection, "doctor_readable")
            reach = fetch_one(connection, "doctor_reach", {"schema": schema}) or {}
    except psycopg.errors.InsufficientPrivilege as error:
        found = f"may not read its own collection: {str(error).splitlines()[0]}"
        yield Check(name, "error", found, ROLES)
        return
    except KnowledgeBankError as error:
        yield Check(name, "error", error.message, ROLES)
        return
    yield from check_reach(name, collection.reader_role, schema, reach)


def check_reach(name: str, role: str, schema: str, reach: Mapping[str, Any]) -> Iterator[Check]:
    """`reach` is the row of doctor_reach.sql. Widening a role was somebody's decision: the cure says what it undoes."""
    sound = True
    if reach["powerful"]:
        sound = False
        statement = f"ALTER ROLE {quoted(role)} NOSUPERUSER NOCREATEROLE NOCREATEDB NOBYPASSRLS NOREPLICATION"
        yield Check(f"{name} powers", "error", "may do more than read: it has powers over the server", psql(statement))
    if reach["member_of"]:
        sound = False
        groups = ", ".join(quoted(g) for g in reach["member_of"])
        found = f"is member of {', '.join(reach['member_of'])}: it may become more than a reader"
        yield Check(f"{name} membership", "error", found, psql(f"REVOKE {groups} FROM {quoted(role)}"))
    if reach["reachable"]:
        sound = False
        schemas = ", ".join(quoted(s) for s in reach["reachable"])
        found = f"may enter other schemas: {', '.join(reach['reachable'])}"
        statement = f"REVOKE ALL ON SCHEMA {schemas} FROM PUBLIC, {quoted(role)}"
        yield Check(f"{name} reach", "error", found, psql(statement))
    if reach["writable"]:
        sound = False
        found = f"may change {', '.join(reach['writable'])}"
        rights = "INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA"
        statement = f"REVOKE {rights} {quoted(schema)} FROM PUBLIC, {quoted(role)}"
        yield Check(f"{name} writing", "error", found, psql(statement))
    if sound:
        yield Check(name, "ok", "logs in, reads its collection, and is denied everywhere else")
