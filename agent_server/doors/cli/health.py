"""`kb stats` and `kb doctor`: what is there, and whether it is sound."""

from typing import Annotated, Any

import typer

from agent_server import doctor as checks
from agent_server.catalog import list_collections
from agent_server.db import fetch_all, fetch_one
from agent_server.doors.cli import context, output
from agent_server.doors.cli.output import Json
from agent_server.settings import load_settings


def register(app: typer.Typer) -> None:
    app.command()(stats)
    app.command()(doctor)


def stats(
    name: Annotated[
        str | None, typer.Argument(metavar="[COLLECTION]", help="One collection; without it all of them.")
    ] = None,
    as_json: Json = False,
) -> None:
    """How much each collection holds, how much room it takes, how often it was asked."""
    with context.opened() as (_, database):
        if name is None:
            with database.owner() as connection:
                found = list_collections(connection)
        else:
            found = [context.collection_called(database, name)]
        rows: list[dict[str, Any]] = []
        for c in found:
            with database.owner(c.schema_name) as connection:
                counted = fetch_one(connection, "stats") or {}
                statuses = fetch_all(connection, "stats_status")
            by_status = {r["status"]: r["files"] for r in statuses}
            rows.append({"collection": c.name, **counted, "has_hnsw": c.has_hnsw, "files_by_status": by_status})
    if as_json:
        output.emit({"collections": rows} if name is None else rows[0])
    elif name is None:
        head = ("collection", "files", "passages", "searched", "size", "searches", "last search")
        cells = [
            [
                r["collection"],
                r["files"],
                r["passages"],
                r["searched"],
                _size(r["bytes"]),
                r["searches"],
                _time(r["last_search"]),
            ]
            for r in rows
        ]
        output.write(output.table(cells, head) if cells else "there is no collection yet: `kb collection create NAME`")
    else:
        row = rows[0]
        row["files_by_status"] = ", ".join(f"{n} {status}" for status, n in row["files_by_status"].items()) or "none"
        for key in ("bytes", "index_bytes"):
            row[key] = _size(row[key])
        width = max(map(len, row))
        for key, value in row.items():
            output.write(f"{key.ljust(width)}  {'' if value is None else value}".rstrip())


def doctor(
    fix: Annotated[
        bool,
        typer.Option(
            "--fix", help="Mend what is safe to mend: term counts, missing dense indexes, copies, reader roles."
        ),
    ] = False,
    as_json: Json = False,
) -> int:
    """Check Postgres, schema, indexes, counts, roles and the embedder; each finding names its cure. 1 on errors."""
    settings = load_settings()
    mended = checks.fix(settings) if fix else []
    found = checks.examine(settings)
    worst = "error" if any(c.status == "error" for c in found) else "ok"
    if as_json:
        output.emit(
            {"checks": [c.to_json() for c in found], "settings": settings.shown(), "fixed": mended, "status": worst}
        )
        return int(worst == "error")
    for what in mended:
        output.write(f"fixed  {what}")
    for check in found:
        label = check.status if check.status == "ok" else output.style(check.status, "red")
        output.write(f"{label}{' ' * (7 - len(check.status))}{check.name}: {output.clean(check.found)}")
        if check.cure:
            output.write(f"       cure: {check.cure}")
    output.write("\nsettings:")
    for key, value in settings.shown().items():
        output.write(f"  {key}={'' if value == 'None' else output.clean(value)}")
    return int(worst == "error")


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"


def _time(value: Any) -> str:
    return "" if value is None else f"{value:%Y-%m-%d %H:%M}"
