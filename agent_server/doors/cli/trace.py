"""`kb trace`: recorded searches, and how to run one again in psql."""

from typing import Annotated, Any

import typer

from agent_server.doors.cli import context, output
from agent_server.doors.cli.collection import Name
from agent_server.doors.cli.output import Json
from agent_server.retrieval import trace as traces

trace = typer.Typer(no_args_is_help=True, help="Recorded searches: list them, show one, run one again in psql.")


def register(app: typer.Typer) -> None:
    app.add_typer(trace, name="trace")


@trace.command("list")
def list_newest(
    name: Name,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many.")] = 20,
    as_json: Json = False,
) -> None:
    """The newest searches of a collection."""
    with context.opened() as (_, database):
        found = context.collection_called(database, name)
        rows = traces.list_traces(database, found.schema_name, limit)
    if as_json:
        output.emit({"collection": found.name, "traces": rows})
    elif rows:
        cells = [
            [str(r["trace_id"])[:8], f"{r['at']:%Y-%m-%d %H:%M:%S}", r["hits"], _ms(r), _without(r), r["query"]]
            for r in rows
        ]
        output.write(output.table(cells, ("trace", "at", "hits", "ms", "without", "query")))
    else:
        output.note(f"no search of {found.name} is recorded yet")


@trace.command()
def show(
    name: Name,
    trace_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A trace id or its beginning; without it the newest search.")
    ] = None,
    psql: Annotated[
        bool,
        typer.Option("--psql", help="Print psql commands that set this search up for agent_server/sql/hybrid.sql."),
    ] = False,
    as_json: Json = False,
) -> None:
    """One recorded search: terms and their weights, what each list brought, what came out."""
    with context.opened() as (_, database):
        found = context.collection_called(database, name)
        newest = [] if trace_id else traces.list_traces(database, found.schema_name, 1)
        if not trace_id and not newest:
            raise traces.UnknownTrace(f"no search of {found.name} is recorded yet", hint="`kb search` records one.")
        row = traces.get_trace(database, found.schema_name, trace_id or str(newest[0]["trace_id"]))
    script = traces.psql_script(row, found.schema_name)
    if as_json:
        output.emit({**row, "psql": script} if psql else row)
    else:
        output.write(script.rstrip("\n") if psql else render(row))


def render(row: dict[str, Any]) -> str:
    """A trace for people."""
    lines = [
        f"{row['trace_id']}  {row['at']:%Y-%m-%d %H:%M:%S %Z}",
        output.wrapped(row["query"], ""),
        "",
        f"asked for     {', '.join(f'{k} {v}' for k, v in row['request'].items() if k != 'session')}",
        f"candidates    {', '.join(f'{k} {v}' for k, v in row['candidates'].items())}",
        f"milliseconds  {', '.join(f'{k} {v:g}' for k, v in row['timings_ms'].items())}",
    ]
    lines += [f"without {d['arm']}: {output.clean(d['reason'])}" for d in row["degraded"]]
    if row["diagnostic"]:
        lines.append(output.wrapped(row["diagnostic"], ""))
    if row["terms"]:
        lines += ["", output.table(row["terms"], ("term", "in question", "passages", "weight"))]
    if row["passages"]:
        cells = [
            [n, p["score"], p["dense_rank"], p["lexical_rank"], p["chunk_id"]] for n, p in enumerate(row["passages"], 1)
        ]
        lines += ["", output.table(cells, ("rank", "score", "dense", "words", "passage"))]
    return "\n".join(lines)


def _ms(row: dict[str, Any]) -> str:
    return f"{row['timings_ms'].get('total', 0):.0f}"


def _without(row: dict[str, Any]) -> str:
    return ",".join(d["arm"] for d in row["degraded"])
