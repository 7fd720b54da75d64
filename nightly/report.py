"""`kb report`: one HTML page that needs nothing else: collections, growth, nights, recall, evaluation, slow searches.

Names and reasons come from documents that anybody may have written: everything is escaped by the template engine, and
the page forbids itself scripts and requests.
"""

import unicodedata
from dataclasses import asdict
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from agent_server import __version__
from agent_server.doors.cli import context, output
from agent_server.doors.cli.output import Json
from agent_server.evaluation.compare import MAIN
from nightly.evaluate_verdict import Finding, said
from nightly.nightly_cli import counts
from nightly.report_data import CollectionFigures, Figures, Row, gather
from nightly.report_plot import Points, lines


def register(app: typer.Typer) -> None:
    app.command()(report)


def report(
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page into this file; unset: standard output.")
    ] = None,
    as_json: Json = False,
) -> None:
    """One HTML page of what the bank holds, how its nights went and what the search is worth, with plots."""
    with context.opened() as (_, database):
        figures = gather(database, datetime.now(UTC))
    if out is not None:
        out.write_text(render(figures), encoding="utf-8")
        output.note(f"written to {out}")
    if as_json:
        output.emit(asdict(figures))
    elif out is None:
        output.write(render(figures))


def render(figures: Figures) -> str:
    """The page; pure."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"time": _time, "size": _size, "ms": _ms}
    template = environment.get_template("report.html")
    return template.render(
        figures=figures,
        version=__version__,
        shown=[_shown(c) for c in figures.collections],
        took=_took,
        late=_late,
        counts=counts,
        MAIN=MAIN,
    )


def _shown(collection: CollectionFigures) -> dict[str, Any]:
    """A collection with its plots."""
    plots = {
        "growth": lines("passages by the day on which their files were last read", _growth(collection), low=0),
        "recall": lines("recall@10 of the dense index", _recall(collection), low=0.9, high=1),
        "evaluation": lines(f"{MAIN} by kind of question", _kinds(collection), low=0, high=1),
    }
    latest = collection.evaluations[-1] if collection.evaluations else None
    return {
        "figures": collection,
        **{name: Markup(svg) for name, svg in plots.items()},  # noqa: S704  built and escaped in report_plot
        "latest": latest,
        "findings": [said(Finding(**f)) for f in latest["findings"]] if latest else [],
    }


def _growth(collection: CollectionFigures) -> dict[str, Points]:
    """Passages of today, summed up by the day on which their files were last read."""
    total = 0
    points = []
    for row in collection.growth:
        total += row["passages"]
        points.append((datetime.combine(row["day"], time(), UTC), float(total)))
    return {"passages": points} if points else {}


def _recall(collection: CollectionFigures) -> dict[str, Points]:
    of: dict[str, list[tuple[datetime, float]]] = {}
    for row in collection.recall:
        of.setdefault("with a filter" if row["filtered"] else "without a filter", []).append((row["at"], row["recall"]))
    return {**of}


def _kinds(collection: CollectionFigures) -> dict[str, Points]:
    """The main metric over all questions, then of each kind."""
    of: dict[str, list[tuple[datetime, float]]] = {}
    for row in collection.evaluations:
        for kind, metrics in {"all questions": row["metrics"]["all"], **row["metrics"]["kinds"]}.items():
            of.setdefault(kind, []).append((row["at"], metrics[MAIN]["mean"]))
    return {**of}


# -- words ------------------------------------------------------------------------------------------------------


def _cleaned(value: Any) -> Any:
    """Text without control characters and without those that turn its direction; None as nothing."""
    if value is None:
        return ""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return "".join(c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf") else "\N{REPLACEMENT CHARACTER}"
                   for c in value)  # fmt: skip


def _time(at: datetime | None) -> str:
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def _late(run: Row) -> bool:
    """Whether a run of the schedule started so long after its hour that a reader wants to know."""
    return bool(run["started_at"] - run["due_at"] >= timedelta(minutes=1))


def _took(row: Row) -> str:
    """How long a run or step took."""
    if row["ended_at"] is None:
        return ""
    seconds = (row["ended_at"] - row["started_at"]).total_seconds()
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"
