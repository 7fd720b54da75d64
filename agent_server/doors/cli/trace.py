"""`kb trace`: recorded searches, how to run one again in psql, and what the same search brings today."""

from contextlib import ExitStack
from typing import Annotated, Any

import typer

from agent_server.catalog import Collection
from agent_server.db import Database
from agent_server.doors.cli import context, output
from agent_server.doors.cli.collection import Name
from agent_server.doors.cli.output import Json
from agent_server.retrieval import replay as replays
from agent_server.retrieval import trace as traces
from agent_server.retrieval.candidates import SearchOptions, reranker_of

trace = typer.Typer(no_args_is_help=True, help="Recorded searches: list them, show one, run one again.")


TraceId = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="A trace id or its beginning; without it the newest search.")
]


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
    trace_id: TraceId = None,
    psql: Annotated[
        bool,
        typer.Option("--psql", help="Print psql commands that set this search up for agent_server/sql/hybrid.sql."),
    ] = False,
    as_json: Json = False,
) -> None:
    """One recorded search: terms and their weights, what each list brought, what came out."""
    with context.opened() as (_, database):
        found = context.collection_called(database, name)
        row = _recorded(database, found, trace_id)
    script = traces.psql_script(row, found.schema_name)
    if as_json:
        output.emit({**row, "psql": script} if psql else row)
    else:
        output.write(script.rstrip("\n") if psql else render(row))


@trace.command()
def replay(name: Name, trace_id: TraceId = None, as_json: Json = False) -> None:
    """Run a recorded search again as it was asked, on what the collection holds now, and say what changed and why."""
    with ExitStack() as stack:
        settings, database = stack.enter_context(context.opened())
        found = context.collection_called(database, name)
        row = _recorded(database, found, trace_id)
        wanted = replays.wants_embedder(row)
        embedder = stack.enter_context(context.opened_embedder(settings)) if wanted else None
        limits = SearchOptions(
            statement_timeout_s=settings.statement_timeout_s,
            max_query_chars=settings.max_query_chars,
            reranker=reranker_of(settings),
        )
        result = replays.replay(database, found.name, found.schema_name, row, embedder, limits)
    if as_json:
        output.emit(result.to_json())
    else:
        output.write(render_replay(result))


def _recorded(database: Database, collection: Collection, trace_id: str | None) -> dict[str, Any]:
    """The search of that id, or the newest; raises UnknownTrace."""
    newest = [] if trace_id else traces.list_traces(database, collection.schema_name, 1)
    if not trace_id and not newest:
        raise traces.UnknownTrace(f"no search of {collection.name} is recorded yet", hint="`kb search` records one.")
    return traces.get_trace(database, collection.schema_name, trace_id or str(newest[0]["trace_id"]))


def render_replay(result: replays.Replay) -> str:
    """A replay for people: what is the same is not told."""
    lines = [f"{result.trace_id}  {result.at:%Y-%m-%d %H:%M:%S %Z}", output.wrapped(result.query, "")]
    if not result.is_changed:
        return "\n".join([*lines, "", f"nothing changed: the same {len(result.passages)} passages at the same places"])
    cells = [
        [p.kind, p.then, p.now, p.chunk_id, "; ".join([*map(_change, p.figures), *([p.why] if p.why else [])])]
        for p in result.passages
    ]
    if cells:
        lines += ["", output.table(cells, ("", "then", "now", "passage", "what and why"))]
    told = (("settings", result.settings), ("candidates", result.candidates), ("without", result.degraded))
    lines += ["", *(f"{what}: {output.clean(', '.join(map(_change, all_)))}" for what, all_ in told if all_)]
    if result.diagnostic is not None:
        lines.append(output.wrapped(_change(result.diagnostic), ""))
    if result.terms:
        head = ("term", "passages then", "now", "weight then", "now")
        sides = [(t.name, t.then or {}, t.now or {}) for t in result.terms]
        cells = [[term, *(side.get(k) for k in ("passages", "weight") for side in both)] for term, *both in sides]
        lines += ["", output.table(cells, head)]
    return "\n".join(lines)


def _change(change: replays.Change) -> str:
    """`dense_rank 2 -> 5`."""
    then, now = ("none" if value is None else value for value in (change.then, change.now))
    return f"{change.name} {then} -> {now}"


def render(row: dict[str, Any]) -> str:
    """A trace for people."""
    lines = [
        f"{row['trace_id']}  {row['at']:%Y-%m-%d %H:%M:%S %Z}",
        output.wrapped(row["query"], ""),
        "",
        f"asked for     {_asked(row['request'])}",
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


def _asked(request: dict[str, Any]) -> str:
    """What was asked for, without what is off or unset."""
    shown = {k: v for k, v in request.items() if k not in ("session", "collection") and v not in (None, {}, [])}
    return output.clean(", ".join(f"{k} {v}" for k, v in shown.items()))


def _ms(row: dict[str, Any]) -> str:
    return f"{row['timings_ms'].get('total', 0):.0f}"


def _without(row: dict[str, Any]) -> str:
    return ",".join(d["arm"] for d in row["degraded"])
