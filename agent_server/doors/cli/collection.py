"""`kb collection`: make, list, show and drop collections."""

import sys
from typing import Annotated, Any

import typer

from agent_server import catalog
from agent_server.catalog import Collection
from agent_server.db import Database, fetch_one
from agent_server.doors.cli import context, output
from agent_server.doors.cli.output import Json

collection = typer.Typer(no_args_is_help=True, help="Collections: create, list, show, expand, drop.")

Name = Annotated[str, typer.Argument(metavar="COLLECTION", help="Name of the collection; case does not matter.")]


def register(app: typer.Typer) -> None:
    app.add_typer(collection, name="collection")


@collection.command()
def create(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A letter, then up to 39 letters, digits, _ or -; unique ignoring case."),
    ],
    description: Annotated[
        str, typer.Option(help="What it holds, in a sentence: models read it to choose a collection.")
    ] = "",
    config: Annotated[
        str, typer.Option(help="Postgres text search configuration: simple, english, german, french …")
    ] = "english",
    chunk_size: Annotated[int, typer.Option(min=100, max=8000, help="Longest passage, in characters.")] = 800,
    chunk_overlap: Annotated[
        int, typer.Option(min=0, help="Characters that a passage repeats of the one before.")
    ] = 100,
    as_json: Json = False,
) -> None:
    """Make a collection for the embedding model that the settings name."""
    with context.opened() as (settings, database), context.opened_embedder(settings) as embedder:
        made = catalog.create_collection(
            database,
            name,
            embedder.identity(),
            description=description,
            text_search_config=config,
            chunk_size=chunk_size,
            chunk_overlap=chunk_overlap,
        )
    if as_json:
        output.emit(made.to_json())
        return
    output.write(
        f"created {made.name}: {made.model} ({made.embedder}), {made.dimensions} wide, {made.text_search_config}"
    )
    output.write(f"next: kb ingest {made.name} FOLDER")


@collection.command("list")
def list_all(as_json: Json = False) -> None:
    """All collections with what they hold."""
    with context.opened() as (_, database):
        with database.owner() as connection:
            found = catalog.list_collections(connection)
        rows = [{**c.to_json(), **_counts(database, c)} for c in found]
    if as_json:
        output.emit({"collections": rows})
    elif rows:
        columns = ("name", "files", "passages", "model", "text_search_config", "description")
        output.write(output.table([[r[c] for c in columns] for r in rows], columns))
    else:
        output.write("there is no collection yet: `kb collection create NAME`")


@collection.command()
def show(name: Name, as_json: Json = False) -> None:
    """One collection: its model, how it is cut and ranked, what it holds."""
    with context.opened() as (_, database):
        found = context.collection_called(database, name)
        with database.owner() as connection:
            tuning = catalog.tuning_of(connection, found.name)
        row = {**found.to_json(), **_counts(database, found), "tuning": tuning}
    if as_json:
        output.emit(row)
        return
    if tuning is not None:
        from agent_server.evaluation.tune import summary  # noqa: PLC0415  loads the whole read path

        row["tuning"] = summary(tuning, found.model_digest)
    width = max(map(len, row))
    for key, value in row.items():
        output.write(f"{key.ljust(width)}  {output.clean(str('' if value is None else value))}".rstrip())


@collection.command()
def expand(
    name: Name,
    cites: Annotated[
        bool | None, typer.Option("--cites/--no-cites", help="Add the passages that the first hits cite.")
    ] = None,
    defines: Annotated[
        bool | None, typer.Option("--defines/--no-defines", help="Put definitions of what is asked for first.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which edges searches of a collection follow, unless they are told otherwise; without options show it."""
    with context.opened() as (_, database):
        found = catalog.set_expansion(database, name, cites=cites, defines=defines)
    relations = {"cites": found.expand_cites, "defines": found.expand_defines}
    if as_json:
        output.emit({"collection": found.name, **relations})
    else:
        output.write(f"{found.name}: " + ", ".join(f"{k} {'on' if on else 'off'}" for k, on in relations.items()))


@collection.command()
def drop(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; needed where nobody can answer.")] = False,
    as_json: Json = False,
) -> int:
    """Remove a collection with its passages, vectors, traces and reader role. The documents stay where they are."""
    with context.opened() as (_, database):
        found = context.collection_called(database, name)
        counts = _counts(database, found)
        if not yes:
            if not sys.stdin.isatty():
                raise typer.BadParameter("nobody can be asked here; say --yes", param_hint="--yes")
            question = f"Drop {found.name} with {counts['files']} files and {counts['passages']} passages?"
            if not typer.confirm(question, err=True):
                output.note("nothing was dropped")
                return 1
        catalog.drop_collection(database, found.name)
    if as_json:
        output.emit({"dropped": found.name, **counts})
    else:
        output.write(f"dropped {found.name}: {counts['files']} files, {counts['passages']} passages")
    return 0


def _counts(database: Database, found: Collection) -> dict[str, Any]:
    with database.owner(found.schema_name) as connection:
        return fetch_one(connection, "stats") or {}
