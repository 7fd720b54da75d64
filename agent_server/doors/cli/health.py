"""`kb stats` and `kb doctor`: what is there, and whether it is sound."""

from typing import Annotated, Any

import typer

from agent_server.catalog import list_collections
from agent_server.db import fetch_all, fetch_one
from agent_server.doors.cli import context, output
from agent_server.doors.cli.output import Json
from agent_server.settings import load_settings

#: Days with new files that `kb stats` tells of.
DAYS = 7


def register(app: typer.Typer) -> None:
    app.command()(stats)
    app.command()(doctor)


def stats(
    name: Annotated[
        str | None, typer.Argument(metavar="[COLLECTION]", help="One collection; without it all of them.")
    ] = None,
    as_json: Json = False,
) -> None:
    """How much each collection holds and grows, the room it takes, how often it was asked and how fast it answers."""
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
                use = fetch_one(connection, "stats_use", {"collection": c.name}) or {}
                growth = fetch_all(connection, "stats_growth", {"days": DAYS})
            by_status = {r["status"]: r["files"] for r in statuses}
            row = {"collection": c.name, **counted, "has_hnsw": c.has_hnsw, "files_by_status": by_status}
            rows.append({**row, **use, "growth": growth})
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
        row["growth"] = "; ".join(f"{g['day']} {g['files']} files, {g['passages']} passages" for g in row["growth"])
        for key in ("bytes", "index_bytes"):
            row[key] = _size(row[key])
        for key in ("median_ms", "p95_ms"):
            row[key] = None if row[key] is None else round(row[key], 1)
        width = max(map(len, row))
        for key, value in row.items():
            output.write(f"{key.ljust(width)}  {'' if value is None else value}".rstrip())


def doctor(
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Mend what needs no decision and stops nobody: indexes, vectors, copies, counts, edges, reader roles.",
        ),
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Tell also what is well, and the settings with secrets hidden.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Whether the bank is well; each finding names the command that cures it. Exit code 1 on errors."""
    from agent_server import doctor as checks  # noqa: PLC0415  with readers of all formats

    settings = load_settings()
    mended = checks.fix(settings) if fix else checks.Mended()
    found = checks.examine(settings)
    worst = "error" if any(c.status == "error" for c in found) else "ok"
    if as_json:
        told = {"checks": [c.to_json() for c in found], "settings": settings.shown()}
        output.emit({**told, "fixed": mended.done, "left": mended.left, "status": worst})
        return int(worst == "error")
    for label, whats in (("fixed", mended.done), ("left", mended.left)):
        for what in whats:
            output.write(f"{label.ljust(7)}{output.clean(what)}")
    shown = [check for check in found if everything or check.status != "ok"]
    for n, check in enumerate(shown):
        label = check.status if check.status == "ok" else output.style(check.status, "red")
        output.write(f"{label}{' ' * (7 - len(check.status))}{check.name}: {output.clean(check.found)}")
        if check.cure and [check.cure] != [c.cure for c in shown[n + 1 : n + 2]]:  # once for all that it cures
            output.write(f"       cure: {output.clean(check.cure)}")
    if everything:
        output.write("\nsettings:")
        for key, value in settings.shown().items():
            output.write(f"  {key}={'' if value == 'None' else output.clean(value)}")
    else:
        well = sum(c.status == "ok" for c in found)
        output.write(f"{well} of {len(found)} checks are well" + ("" if well == len(found) else "; cures are above"))
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
