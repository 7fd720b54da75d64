"""`kb claims`: look through claims, decide on them, take them out and in."""

import getpass
import os
import sys
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from agent_server.doors.cli import context, output
from agent_server.doors.cli.collection import Name
from agent_server.doors.cli.output import Json
from agent_server.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_server.catalog import Collection
    from agent_server.db import Conn, Database
    from nightly.claims_review import Decided, Filter

Result = TypeVar("Result")

claims = typer.Typer(no_args_is_help=True, help="Claims: list, show, verify, reject, import, export.")


class Status(StrEnum):
    """What a claim can be."""

    PROPOSED = "proposed"
    VERIFIED = "verified"
    REJECTED = "rejected"
    STALE = "stale"


class Kind(StrEnum):
    """What a claim says of its subject."""

    DEFINITION = "definition"
    LIMIT = "limit"
    DUTY = "duty"
    EXCLUSION = "exclusion"
    STATEMENT = "statement"


_GREATEST = 2**63 - 1
Numbers = Annotated[
    list[int] | None, typer.Argument(min=1, max=_GREATEST, metavar="[ID]...", help="Numbers of claims.")
]
OfStatus = Annotated[Status | None, typer.Option("--status", help="Only claims of this status.")]
OfKind = Annotated[Kind | None, typer.Option("--kind", help="Only claims of this kind.")]
Subject = Annotated[str, typer.Option(metavar="TERM", help="Only claims about this.")]
Source = Annotated[str, typer.Option(metavar="GLOB", help="Only claims from sources like this, as `rules/**`.")]
Extractor = Annotated[str, typer.Option(help="Only claims made by this: rules, import, ollama:MODEL.")]
Text = Annotated[str, typer.Option(help="Only claims whose statement holds these words.")]
Doubted = Annotated[
    float | None, typer.Option("--max-confidence", min=0, max=1, help="Only claims of at most this confidence.")
]
By = Annotated[str, typer.Option(help="Who decides; unset: the name of the user.")]
Why = Annotated[str, typer.Option(help="Why; kept with the claim.")]


def register(app: typer.Typer) -> None:
    app.add_typer(claims, name="claims")


@claims.command("list")
def list_claims(
    name: Name,
    status: OfStatus = None,
    kind: OfKind = None,
    subject: Subject = "",
    source: Source = "",
    extractor: Extractor = "",
    text: Text = "",
    doubted: Doubted = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="How many at most.")] = 50,
    as_json: Json = False,
) -> None:
    """The claims of a collection, oldest first."""
    from nightly import claims_review as review  # noqa: PLC0415  --help costs nothing

    wanted = _filter(None, status, kind, subject, source, extractor, text, doubted)
    with context.opened() as (_, database):
        found = context.collection_called(database, name)
        with database.owner(found.schema_name) as connection:
            rows = review.select(connection, wanted, limit)
    if as_json:
        output.emit({"collection": found.name, "claims": rows})
    elif rows:
        cells = [[r["id"], r["status"], r["kind"], r["places"], r["conflicts"] or "", r["statement"]] for r in rows]
        output.write(output.table(cells, ("id", "status", "kind", "places", "conflicts", "statement")))
    else:
        output.note(f"no such claim in {found.name}")


@claims.command()
def show(
    name: Name,
    claim: Annotated[int, typer.Argument(min=1, max=_GREATEST, metavar="ID", help="Number of the claim.")],
    as_json: Json = False,
) -> None:
    """One claim: where it stands, and what happened to it."""
    from nightly import claims_review as review  # noqa: PLC0415

    with context.opened() as (_, database):
        found = context.collection_called(database, name)
        with database.owner(found.schema_name) as connection:
            row = review.show(connection, claim)
    if as_json:
        output.emit(row)
    else:
        output.write(render(row))


@claims.command()
def verify(
    name: Name,
    numbers: Numbers = None,
    status: OfStatus = None,
    kind: OfKind = None,
    subject: Subject = "",
    source: Source = "",
    extractor: Extractor = "",
    text: Text = "",
    doubted: Doubted = None,
    by: By = "",
    why: Why = "",
    as_json: Json = False,
) -> None:
    """Verify claims by number or by filter. One whose quote does not stand in its passage cannot be."""
    wanted = _filter(numbers, status, kind, subject, source, extractor, text, doubted)
    _decide(name, wanted, "verified", by, why, as_json=as_json)


@claims.command()
def reject(
    name: Name,
    numbers: Numbers = None,
    status: OfStatus = None,
    kind: OfKind = None,
    subject: Subject = "",
    source: Source = "",
    extractor: Extractor = "",
    text: Text = "",
    doubted: Doubted = None,
    by: By = "",
    why: Why = "",
    as_json: Json = False,
) -> None:
    """Reject claims by number or by filter. They are kept, so that they are not proposed again."""
    wanted = _filter(numbers, status, kind, subject, source, extractor, text, doubted)
    _decide(name, wanted, "rejected", by, why, as_json=as_json)


@claims.command("import")
def import_claims(
    name: Name,
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON lines; `-` reads them from standard input.")],
    by: By = "",
    why: Why = "",
    as_json: Json = False,
) -> None:
    """Take claims in. Each quote must stand in its source; status verified or rejected is then your decision."""
    from nightly import claims_review as review  # noqa: PLC0415

    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument("file", f"{file} cannot be read: {error}") from error
    with context.opened() as (_, database):
        found = context.collection_called(database, name)
        lines = text.removeprefix("\ufeff").split("\n")  # a statement may hold other characters that end lines
        reason = why or ("imported" if file == "-" else f"imported from {Path(file).name}")
        report = _once(database, found, lambda c: review.import_lines(c, found, lines, _who(by), reason))
    if as_json:
        output.emit({"collection": found.name, **asdict(report)})
        return
    told = f"{report.stored} of {report.lines} claims taken in, {report.verified} verified, {report.rejected} rejected"
    output.write(f"{found.name}: {told}")
    for refusal in report.refused:
        output.note(f"! {output.clean(refusal)}")


@claims.command("export")
def export_claims(
    name: Name,
    status: OfStatus = None,
    kind: OfKind = None,
    subject: Subject = "",
    source: Source = "",
    extractor: Extractor = "",
    text: Text = "",
    doubted: Doubted = None,
    as_json: Json = False,
) -> None:
    """Claims as JSON lines, to be read, edited and taken in again; with --json one JSON list."""
    from nightly import claims_review as review  # noqa: PLC0415

    wanted = _filter(None, status, kind, subject, source, extractor, text, doubted)
    with context.opened() as (_, database):
        found = context.collection_called(database, name)
        with database.owner(found.schema_name) as connection:
            lines = list(review.export_lines(connection, wanted))
    if as_json:
        output.write("[" + ",\n".join(lines) + "]")
        return
    for line in lines:
        output.write(line)


def render(row: dict[str, Any]) -> str:
    """A claim for people."""
    lines = [
        output.wrapped(row["statement"], ""),
        "",
        f"claim        {row['id']} · {row['kind']} · {row['status']}"
        + (f" (was {row['stood_as']})" if row["stood_as"] else ""),
        f"subject      {output.clean(row['subject'])}",
        f"made by      {output.clean(row['extractor'])}, confidence {row['confidence']:.2f}",
    ]
    if row["verified_by"]:
        lines.append(f"verified by  {output.clean(row['verified_by'])}, {row['verified_at']:%Y-%m-%d %H:%M}")
    lines.append("")
    for e in row["evidence"]:
        where = e["chunk_id"] or f"gone from {e['lost_from']}"
        lines += [f"{'>' if e['leads'] else ' '} {output.clean(where)}", output.wrapped(e["quote"])]
    cells = [[f"{e['at']:%Y-%m-%d %H:%M}", e["what"], e["who"], e["why"]] for e in row["events"]]
    return "\n".join([*lines, "", output.table(cells, ("at", "what", "who", "why"))])


def _decide(name: str, wanted: "Filter", status: Any, by: str, why: str, *, as_json: bool) -> None:
    from nightly import claims_review as review  # noqa: PLC0415

    with context.opened() as (_, database):
        found = context.collection_called(database, name)
        done = _once(database, found, lambda c: review.decide(c, found, wanted, status, _who(by), why))
    if as_json:
        output.emit({"collection": found.name, **asdict(done)})
    else:
        output.write(f"{found.name}: {told(done)}")


def told(done: "Decided") -> str:
    """A decision in a line."""
    refused = f"; {len(done.refused)} cannot be: their quote stands in no live passage" if done.refused else ""
    return f"{len(done.done)} {done.status}{refused}"


def _once(database: "Database", collection: "Collection", work: "Callable[[Conn], Result]") -> "Result":
    """What `work` makes in a transaction; again when it lost a deadlock with an ingestion."""
    from agent_server.ingest.store import in_transaction  # noqa: PLC0415

    made: list[Result] = []

    def run(connection: "Conn") -> bool:
        made.append(work(connection))
        return True

    in_transaction(database, collection, run)
    return made[-1]


def _filter(
    numbers: list[int] | None,
    status: Status | None,
    kind: Kind | None,
    subject: str,
    source: str,
    extractor: str,
    text: str,
    doubted: float | None,
) -> "Filter":
    from nightly.claims_review import Filter  # noqa: PLC0415

    return Filter(
        ids=tuple(numbers or ()),
        status=None if status is None else status.value,
        kind=None if kind is None else kind.value,
        subject=subject,
        source=source,
        extractor=extractor,
        text=text,
        max_confidence=doubted,
    )


def _who(by: str) -> str:
    if by.strip():
        return by.strip()
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        return f"user {os.getuid()}"
