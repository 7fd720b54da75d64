"""Tables and plots from result files, and nothing else: a number in the README stands in a file.

Results lie in `<folder>/<dataset>.json`. A row refuses a file that says something else than the row's label: another
dataset, settings, model or way of making the collection than the label promises.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_server.errors import RunRefused
from agent_server.evaluation import metrics, results
from agent_server.evaluation.arms import ARMS, Arm, keeps_promise
from agent_server.evaluation.plot import Point, svg
from agent_server.evaluation.runs import SEED

Runs = Mapping[str, Mapping[str, Mapping[str, Any]]]  #: dataset -> arm -> run

MAIN = "ndcg@10"
SIGNIFICANT = 0.05
#: How the files of `kb tune` begin.
TUNING = "tune-"
#: Embedders that exist for tests of speed and plumbing.
_MEANINGLESS = frozenset({"hash"})


def load(folder: Path) -> Runs:
    """All result files of a folder, by name (those of `kb tune` are read by tune_results.py). Raises RunRefused for a
    file that disagrees with its name or with what its arms promise."""
    out: dict[str, dict[str, Mapping[str, Any]]] = {}
    for path in sorted(p for p in folder.glob("*.json") if not p.name.startswith(TUNING)):
        runs = results.read(path)
        out[path.stem] = {run["arm"]: run for run in runs}
        for run in runs:
            if fault := _fault(path.stem, run, runs[0]):
                raise RunRefused(f"{path.name}, {run['arm']}: {fault}", hint="Measure it again: `make eval`.")
    return out


def _fault(name: str, run: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    """What keeps a run from standing in a table under its label; '' when nothing does."""
    arm = ARMS.get(run["arm"])
    if arm is None:
        return "no arm has this name"
    if run["dataset"]["name"] != name:
        return f"its dataset is {run['dataset']['name']!r}, the file is named {name!r}"
    if run["label"] != arm.label:
        return f"its label is {run['label']!r}, expected {arm.label!r}"
    if run["embedder"]["model"] in _MEANINGLESS:
        return f"{run['embedder']['model']} is no embedder that a figure of quality may rest on"
    if (run["dataset"]["sha256"], run["seed"]) != (first["dataset"]["sha256"], first["seed"]):
        return f"it was not asked the questions of {first['arm']}"
    if "limit" in run["dataset"]:
        return f"it was asked the first {run['dataset']['limit']} questions only"
    return keeps_promise(arm, run["settings"]) or _made_differently(arm, run, first)


def _made_differently(arm: Arm, run: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    """What of the collection or the model contradicts the arm's variant."""
    made, base = run["collection"], first["collection"]
    size = arm.variant.removeprefix("size-")
    if size != arm.variant and str(made["chunk_size"]) != size:
        return f"its chunks are of {made['chunk_size']} characters"
    if arm.variant == "no-stemming" and made["text_search_config"] != "simple":
        return f"its text search configuration is {made['text_search_config']!r}"
    if arm.variant != "weak" and run["embedder"] != first["embedder"]:
        return f"its model is {run['embedder']['model']!r}, that of {first['arm']} {first['embedder']['model']!r}"
    if arm.variant == "weak" and run["embedder"]["dimensions"] >= first["embedder"]["dimensions"]:
        return "its model is not the weak one"
    in_place = not arm.variant or (size != arm.variant and made["name"] == base["name"])
    if not in_place and not made["name"].endswith(f"-{arm.variant}"):
        return f"it was measured on collection {made['name']!r}"
    return ""


# -- tables -----------------------------------------------------------------------------------------------------


def table(runs: Runs, order: Sequence[str], shown: Sequence[str]) -> str:
    """A Markdown table: a row for each arm of `order` that was measured, for each dataset the metrics of `shown`, the
    first of them (MAIN) with its interval, and a star where it differs from the first row's."""
    names = list(runs)
    heads = [f"{name} {metric}" for name in names for metric in shown]
    lines = ["| | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for arm in (ARMS[a] for a in order):
        if any(arm.name in runs[name] for name in names):
            cells = [cell for name in names for cell in _cells(runs[name], arm.name, order[0], shown)]
            lines.append(f"| {arm.label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cells(of: Mapping[str, Mapping[str, Any]], arm: str, first: str, shown: Sequence[str]) -> list[str]:
    run = of.get(arm)
    if run is None:
        return ["" for _ in shown]
    cells = [number(run["metrics"][metric]["mean"]) for metric in shown]
    edges = [number(run["metrics"][shown[0]][edge], 2) for edge in ("low", "high")]
    star = "\\*" if arm != first and first in of and differs(of[first], run, shown[0]) else ""
    cells[0] += f"{star} ({edges[0]}–{edges[1]})"
    return cells


def differs(before: Mapping[str, Any], after: Mapping[str, Any], metric: str) -> bool:
    """Whether chance is an unlikely cause of the difference (paired randomisation test)."""
    was = {row["id"]: row[metric] for row in before["questions"] if metric in row}
    now = {row["id"]: row[metric] for row in after["questions"] if metric in row}
    pairs = [(was[id_], now[id_]) for id_ in was if id_ in now]
    return metrics.paired_p_value([a for a, _ in pairs], [b for _, b in pairs], seed=SEED) < SIGNIFICANT


def source_line(runs: Runs) -> str:
    """What was measured: model, questions, date."""
    some = next(iter(next(iter(runs.values())).values()))
    dates = sorted({run["date"] for of in runs.values() for run in of.values()})
    counts = ", ".join(
        f"{name} {sum(MAIN in row for row in next(iter(of.values()))['questions'])}" for name, of in runs.items()
    )
    days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"Model {some['embedder']['model']}; answerable questions: {counts}; measured {days}."


def number(value: float, digits: int = 3) -> str:
    """A figure as tables show it: `.554`."""
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def plot(runs: Runs, order: Sequence[str], title: str) -> str:
    """`table`'s first metric as an SVG."""
    arms = [a for a in order if any(a in of for of in runs.values())]
    panels = [(name, [_point(of[a]["metrics"][MAIN]) if a in of else None for a in arms]) for name, of in runs.items()]
    return svg(title, [ARMS[a].label for a in arms], panels)


def _point(metric: Mapping[str, float]) -> Point:
    return Point(metric["mean"], metric["low"], metric["high"])


def between_markers(text: str, name: str, inside: str) -> str:
    """`text` with what stands between `<!-- name -->` and `<!-- /name -->` replaced. Raises ValueError without them."""
    pattern = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(\n<!-- /{re.escape(name)} -->)", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f"expected one stretch between <!-- {name} --> and <!-- /{name} -->")
    return pattern.sub(lambda m: m[1] + inside + m[2], text)
