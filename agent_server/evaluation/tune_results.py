"""Files of `kb tune`, and the README's table from them: what tuning is worth on questions that had no say in it.

A file is `{"format": 1, "tuning": record}`, one line a question. Files lie beside those of `kb eval`, as
`tune-<dataset>.json`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_server.errors import RunRefused
from agent_server.evaluation import metrics
from agent_server.evaluation.report import SIGNIFICANT, TUNING, Runs, number

FORMAT = 1
REFERENCE = "rrf-ts-and"
_NEEDED = {"dataset", "embedder", "metric", "figures", "chosen", "better_arm", "questions"}

Tunings = Mapping[str, Mapping[str, Any]]  #: dataset -> record


def write(path: Path, record: Mapping[str, Any]) -> None:
    """Store a record; the folder is made when it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = json.dumps({k: v for k, v in record.items() if k != "questions"}, ensure_ascii=False, indent=1)
    lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in record["questions"]]
    body = head[: head.rindex("\n}")] + ',\n "questions": [\n  ' + ",\n  ".join(lines) + "\n ]\n}"
    path.write_text(f'{{"format": {FORMAT}, "tuning":\n{body}\n}}\n', encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    """The record of a file. Raises RunRefused for anything else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunRefused(f"{path} is no tuning: {error}", hint="`kb tune --out FILE` writes one.") from None
    record = found.get("tuning") if isinstance(found, dict) and found.get("format") == FORMAT else None
    if not isinstance(record, dict) or _NEEDED - set(record):
        raise RunRefused(f"{path} is no tuning of format {FORMAT}", hint="`kb tune --out FILE` writes one.")
    return record


def load(folder: Path, runs: Runs) -> Tunings:
    """All tunings of a folder by dataset, each held against the runs on the same dataset.

    Raises RunRefused for a file that disagrees with its name, with the runs' questions, documents or model, or with
    its own questions' scores.
    """
    out = {}
    for path in sorted(folder.glob(f"{TUNING}*.json")):
        name = path.stem.removeprefix(TUNING)
        record = read(path)
        if fault := _fault(name, record, runs.get(name, {})):
            raise RunRefused(f"{path.name}: {fault}", hint="Measure it again: `make eval-beir`.")
        out[name] = record
    return out


def _fault(name: str, record: Mapping[str, Any], runs: Mapping[str, Mapping[str, Any]]) -> str:
    if record["dataset"]["name"] != name:
        return f"its dataset is {record['dataset']['name']!r}, the file is named {name!r}"
    for column, figure in record["figures"].items():
        if abs(metrics.mean([row[column] for row in record["questions"]]) - figure["mean"]) > 1e-4:
            return f"its figure of {column} is not the mean of its questions"
    for arm, run in runs.items():
        for key in ("sha256", "corpus_sha256"):
            if run["dataset"].get(key) != record["dataset"].get(key):
                return f"it was not measured on the questions and documents of {arm}"
        if run["embedder"] != record["embedder"]:
            return f"its model is {record['embedder']['model']!r}, that of {arm} {run['embedder']['model']!r}"
    return ""


def table(tunings: Tunings, runs: Runs) -> str:
    """A Markdown table, a row for each dataset: the tuned hybrid out of fold with its interval, the better arm, RRF,
    the reference of plain Postgres, and what is set. A star: different from the tuned hybrid."""
    lines = [
        "| nDCG@10 | tuned, out of fold | better arm alone | RRF k = 60 | dense and `ts_rank_cd` AND | gain | set |",
        "|---|---|---|---|---|---|---|",
    ]
    gains = []
    for name, record in tunings.items():
        figures, metric = record["figures"], record["metric"]
        tuned, arm = figures["tuned"], record["better_arm"]
        cells = [
            f"{number(tuned['mean'])} ({number(tuned['low'], 2)}–{number(tuned['high'], 2)})",
            f"{arm} {_starred(figures[arm]['mean'], figures[arm]['p'])}",
            _starred(figures["rrf"]["mean"], figures["rrf"]["p"]),
            *("", ""),
            _chosen(record["chosen"]),
        ]
        reference = runs.get(name, {}).get(REFERENCE)
        if reference is not None:
            mean = reference["metrics"][metric]["mean"]
            gains.append(tuned["mean"] / mean - 1)
            cells[3:5] = [_starred(mean, _p_value(record, reference, metric)), f"{gains[-1]:+.0%}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    if gains:
        lines.append(f"| mean | | | | | {metrics.mean(gains):+.0%} | |")
    return "\n".join(lines)


def _p_value(record: Mapping[str, Any], run: Mapping[str, Any], metric: str) -> float:
    was = {row["id"]: row[metric] for row in run["questions"] if metric in row}
    pairs = [(was[row["id"]], row["tuned"]) for row in record["questions"] if row["id"] in was]
    return metrics.paired_p_value([a for a, _ in pairs], [b for _, b in pairs], seed=record["seed"])


def _starred(mean: float, p: float) -> str:
    return number(mean) + ("\\*" if p < SIGNIFICANT else "")


def _chosen(chosen: Mapping[str, Any]) -> str:
    weight = chosen["fusion_weight"]
    return f"{chosen['fusion']}" + ("" if weight is None else f", {number(weight, 1)} dense")
