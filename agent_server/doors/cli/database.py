"""`kb init` and `kb db`: the database itself."""

import os
import shutil
import sys
from typing import Annotated, Any

import psycopg
import typer
from psycopg import conninfo

from agent_server.catalog import ensure_roles, list_collections
from agent_server.db import Database, current_revision, head_revision, migrate, open_database, translated
from agent_server.doors.cli import context, output
from agent_server.doors.cli.output import Json
from agent_server.errors import KnowledgeBankError, SettingsError
from agent_server.postgres import EmbeddedServer, find_binaries
from agent_server.settings import Settings, load_settings

db = typer.Typer(no_args_is_help=True, help="The Postgres behind it: start, stop, look inside.")


def register(app: typer.Typer) -> None:
    app.command()(init)
    app.add_typer(db, name="db")


def init(as_json: Json = False) -> None:
    """Start or reach the database and bring it to the newest schema. Safe to run again."""
    with context.opened(migrated=False) as (settings, database):
        revision = migrate(database)
        with database.owner() as connection:
            versions = _versions(connection)
            names = [c.name for c in list_collections(connection)]
    waiting = _waiting(settings, names)
    if as_json:
        output.emit(
            {**versions, "server": _kind(settings), "home": settings.home, "migration": revision, "collections": names}
        )
        return
    where = f"embedded under {settings.home}" if settings.database_url is None else "at KB_DATABASE_URL"
    output.write(f"Postgres {versions['postgres']} with pgvector {versions['pgvector']}, {where}")
    output.write(f"schema at migration {revision}; collections: {', '.join(names) or 'none yet'}")
    output.write("next:")
    name = waiting[0] if waiting else "NAME"
    folder = settings.bank / "documents" / name if waiting else "FOLDER"
    if not names or waiting:
        output.write(f'  kb collection create {name} --description "what it holds"')
        output.write(f"  kb ingest {name} {folder}")
    output.write(f'  kb search {names[0] if names else name} "a question"')


@db.command()
def start(as_json: Json = False) -> None:
    """Start the embedded server. Other commands do so by themselves."""
    server = _embedded(load_settings())
    was_running = server.status().running
    server.start()
    found = server.status()
    if as_json:
        output.emit({"running": found.running, "started": not was_running, "pid": found.pid, "data": found.data})
    else:
        output.write(f"{'runs already' if was_running else 'started'}: pid {found.pid}, data in {found.data}")


@db.command()
def stop(as_json: Json = False) -> None:
    """Stop the embedded server."""
    stopped = _embedded(load_settings()).stop()
    if as_json:
        output.emit({"running": False, "stopped": stopped})
    else:
        output.write("stopped" if stopped else "was not running")


@db.command()
def status(as_json: Json = False) -> None:
    """Whether the server answers, and at which migration its schema stands. Starts nothing."""
    settings = load_settings()
    found: dict[str, Any] = {"server": _kind(settings), "running": True, "pid": None, "data": None}
    if settings.database_url is None:
        embedded = EmbeddedServer(settings.home).status()
        found |= {"running": embedded.running, "pid": embedded.pid, "data": embedded.data}
    found |= {"dsn": _without_password(_dsn(settings)), "problem": ""}
    if found["running"]:
        try:
            with translated(), open_database(settings, migrated=False) as database, database.owner() as connection:
                found |= {**_versions(connection), "migration": current_revision(connection)}
        except KnowledgeBankError as error:
            found |= {"running": False, "problem": error.message}
    found["needs"] = head_revision()
    if as_json:
        output.emit(found)
        return
    output.write(f"{found['server']} server: {'running' if found['running'] else 'not running'}")
    for key in ("problem", "pid", "data", "dsn", "postgres", "pgvector", "migration"):
        if found.get(key):
            output.write(f"  {key}: {found[key]}")
    if found["running"] and found.get("migration") != found["needs"]:
        output.write(f"  this program needs migration {found['needs']}: run `kb init`")


@db.command()
def roles(as_json: Json = False) -> None:
    """Make missing reader roles, set their passwords to this host's secret and grant what a search reads."""
    with context.opened() as (_, database):
        names = ensure_roles(database)
    if as_json:
        output.emit({"roles": names})
    else:
        output.write("\n".join(names) or "there is no collection yet")


@db.command(context_settings={"ignore_unknown_options": True})
def psql(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COLLECTION] [PSQL ARGUMENTS]...", help="A collection to look into; the rest is psql's."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Open psql on the database; with a collection, its tables are found without a schema before them."""
    given = arguments or []
    schema = ""
    with context.opened(migrated=False) as (settings, database):
        if given and not given[0].startswith("-"):
            schema = context.collection_called(database, given[0]).schema_name
            given = given[1:]
        command, environment = psql_call(settings, database, schema)
    if as_json:
        output.emit({"command": [*command, *given], "search_path": f"{schema}, public" if schema else None})
        return
    sys.stdout.flush()
    os.execve(command[0], [*command, *given], {**os.environ, **environment})  # noqa: S606  no shell is wanted


def psql_call(settings: Settings, database: Database, schema: str) -> tuple[list[str], dict[str, str]]:
    """Command and environment of psql. A password goes through the environment, where `ps` does not show it."""
    parts = {k: str(v) for k, v in conninfo.conninfo_to_dict(database.dsn).items() if v is not None}
    environment = {"PGAPPNAME": "kb psql"}
    if "password" in parts:
        environment["PGPASSWORD"] = parts.pop("password")
    if schema:
        parts["options"] = f'{parts.get("options", "")} -c search_path="{schema}",public'.strip()
    if settings.database_url is None:
        program = str(EmbeddedServer(settings.home).binary("psql"))
    else:
        program = shutil.which("psql") or str(find_binaries() / "psql")
    return [program, conninfo.make_conninfo("", **parts)], environment


def _embedded(settings: Settings) -> EmbeddedServer:
    if settings.database_url is not None:
        raise SettingsError(
            "KB_DATABASE_URL names a server of yours; `kb db start` and `kb db stop` are for the embedded one",
            hint="Start and stop it where it runs, or unset KB_DATABASE_URL.",
        )
    return EmbeddedServer(settings.home)


def _kind(settings: Settings) -> str:
    return "embedded" if settings.database_url is None else "external"


def _dsn(settings: Settings) -> str:
    url = settings.database_url
    return EmbeddedServer(settings.home).dsn if url is None else url.get_secret_value()


def _without_password(dsn: str) -> str:
    try:
        parts = conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        return "(not a DSN)"
    parts.pop("password", None)
    return conninfo.make_conninfo("", **parts)


def _versions(connection: psycopg.Connection[Any]) -> dict[str, str]:
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    number = connection.info.server_version
    return {"postgres": f"{number // 10000}.{number % 10000}", "pgvector": "none" if row is None else str(row[0])}


def _waiting(settings: Settings, names: list[str]) -> list[str]:
    """Folders of the bank's documents that are no collection yet."""
    folder = settings.bank / "documents"
    there = sorted(p.name for p in folder.iterdir() if p.is_dir()) if folder.is_dir() else []
    known = {n.lower() for n in names}
    return [name for name in there if name.lower() not in known and not name.startswith(".")]
