"""`kb mcp`: the tools for a model, over standard input and output."""

from typing import Annotated

import typer

from agent_server import tools
from agent_server.doors.cli import context, output
from agent_server.doors.cli.output import Json


def register(app: typer.Typer) -> None:
    app.command()(mcp)


def mcp(
    only: Annotated[
        list[str] | None,
        typer.Option("--collection", "-c", help="Only this collection may be seen; may be given several times."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Serve the search tools to a model over MCP (standard input and output). With --json: print their schemas."""
    if not as_json:
        from agent_server.doors import mcp_app  # noqa: PLC0415  the SDK takes most of a second

        wire = mcp_app.claim_stdout()
    with context.opened() as (settings, database):
        allowed = frozenset(context.collection_called(database, name).name for name in only) if only else None
        if as_json:
            box = tools.Toolbox(database, None, settings, allowed)
            output.emit({"tools": tools.schemas(box)})
            return
        with context.opened_embedder(settings) as embedder:
            box = tools.Toolbox(database, embedder, settings, allowed)
            mcp_app.serve(lambda: tools.schemas(box), lambda name, given: tools.dispatch(box, name, given), wire)
