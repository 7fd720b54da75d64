"""`kb reembed` and `kb reindex`: vectors of another model, and new indexes, while searches go on."""

from typing import Annotated

import typer

from agent_server.doors.cli import context, output, progress
from agent_server.doors.cli.collection import Name
from agent_server.doors.cli.output import Json


def register(app: typer.Typer) -> None:
    app.command()(reembed)
    app.command()(reindex)


def reembed(
    name: Name,
    abort: Annotated[
        bool, typer.Option("--abort", help="Give up a re-embedding that was interrupted, and free its room.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Also when it has this model: embed everything anew, reuse no vector.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Give a collection the embedding model that the settings name.

    Searches and ingestion go on with the old model until all is ready; then the new one takes its place at once.
    Interrupted, it changes nothing: run it again to go on, or with --abort to give it up.
    """
    from agent_server.ingest import reembed as work  # noqa: PLC0415  readers of all formats

    with context.opened() as (settings, database):
        found = context.collection_called(database, name)  # before a model is loaded
        if abort:
            gone = work.abort(database, name)
            if as_json:
                output.emit({"collection": found.name, "state": "aborted" if gone else "unchanged"})
            else:
                what = "the unfinished vectors are gone" if gone else "no re-embedding was under way"
                output.write(f"{found.name}: {what}; the model is {found.model}")
            return
        with context.opened_embedder(settings) as embedder, progress.bar() as watch:
            report = work.reembed(
                database, name, embedder, again=again, batch_size=settings.embed_batch_size, watch=watch
            )
    if as_json:
        output.emit(report.to_json())
        return
    after = f"{report.after.model}, {report.after.dimensions} wide"
    if report.state == "unchanged":
        output.write(f"{report.collection}: the model is {after} already")
        return
    output.write(f"{report.collection}: {report.before.model}, {report.before.dimensions} wide -> {after}")
    told = f"{report.passages} passages, {report.embedded} embedded, {report.reused} vectors reused"
    if report.resumed:
        told += f", {report.resumed} filled by an earlier run"
    output.note(f"{told}; {sum(report.seconds.values()):.1f} s")
    if report.without_vector:
        output.note(f"{report.without_vector} passages have no vector: see `kb files {report.collection}`")


def reindex(name: Name, as_json: Json = False) -> None:
    """Build a collection's indexes anew, whatever state they are in.

    Neither searches nor ingestion stop: each index is built beside the old one, which stays until then.
    """
    from agent_server.ingest import reindex as work  # noqa: PLC0415  with its neighbours

    with context.opened() as (_, database), progress.bar() as watch:
        report = work.reindex(database, name, watch=watch)
    if as_json:
        output.emit(report.to_json())
        return
    for what in ("dropped", "repaired", "rebuilt"):
        for index in getattr(report, what):
            seconds = f"  {report.seconds[index]:.1f} s" if index in report.seconds else ""
            output.write(f"{what} {index}{seconds}")
