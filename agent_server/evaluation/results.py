"""Result files: per question what came back and what it was worth, means with intervals, and all it takes to repeat it.

A file is `{"format": 1, "runs": [run, …]}`; one line a question, so that a change of a file can be read.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_server.errors import RunRefused
from agent_server.evaluation import metrics
from agent_server.evaluation.metrics import Judged

FORMAT = 1
#: What is measured per question, in the order of reports. `mrr` and `map` are cut where the run's list ends.
METRICS = ("ndcg@10", "recall@5", "recall@10", "hit@1", "hit@10", "mrr", "map", "distinct@10")
_DIGITS = 5


def scores(judged: Judged, texts: Sequence[str]) -> dict[str, float]:
    """All metrics of one question, `texts` being those of its results; keys as METRICS."""
    values = {
        "ndcg@10": metrics.ndcg(judged, 10),
        "recall@5": metrics.recall(judged, 5),
        "recall@10": metrics.recall(judged, 10),
        "hit@1": metrics.hit(judged, 1),
        "hit@10": metrics.hit(judged, 10),
        "mrr": metrics.reciprocal_rank(judged),
        "map": metrics.average_precision(judged),
        "distinct@10": float(metrics.distinct(texts, 10)),
    }
    return {name: round(values[name], _DIGITS) for name in METRICS}


def summary(rows: Sequence[Mapping[str, Any]], seed: int) -> dict[str, dict[str, float]]:
    """Mean and 95 % bootstrap interval of each metric over question rows; {} for none."""
    out: dict[str, dict[str, float]] = {}
    for name in METRICS if rows else ():
        found = metrics.bootstrap([row[name] for row in rows], seed=seed)
        out[name] = {edge: round(getattr(found, edge), _DIGITS) for edge in ("mean", "low", "high")}
    return out


def by_kind(rows: Sequence[Mapping[str, Any]], seed: int) -> dict[str, dict[str, Any]]:
    """`summary` of each kind's rows with their number, in the order in which kinds first appear."""
    kinds = dict.fromkeys(row["kind"] for row in rows)
    groups = {kind: [row for row in rows if row["kind"] == kind] for kind in kinds}
    return {kind: {"questions": len(group), **summary(group, seed)} for kind, group in groups.items()}


def refusals(refused: Sequence[bool | None], unanswerable: Sequence[bool]) -> dict[str, Any] | None:
    """Precision and recall of refusals; None while the collection is not calibrated (nothing is ever refused)."""
    known = [(said, no) for said, no in zip(refused, unanswerable, strict=True) if said is not None]
    if not known:
        return None
    said, no = [a for a, _ in known], [b for _, b in known]
    return {
        "questions": len(known),
        "unanswerable": sum(no),
        "precision": metrics.refusal_precision(said, no),
        "recall": metrics.refusal_recall(said, no),
    }


# -- files ------------------------------------------------------------------------------------------------------


def write(path: Path, runs: Sequence[Mapping[str, Any]]) -> None:
    """Store runs; the folder is made when it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dumps(runs), encoding="utf-8")


def without_rankings(run: Mapping[str, Any]) -> dict[str, Any]:
    """The run without its questions' ranked ids: scores suffice for tables and comparisons."""
    return {**run, "questions": [{k: v for k, v in row.items() if k != "ranked"} for row in run["questions"]]}


def dumps(runs: Sequence[Mapping[str, Any]]) -> str:
    """The text of a result file."""
    parts = []
    for run in runs:
        head = {key: value for key, value in run.items() if key != "questions"}
        text = json.dumps(head, ensure_ascii=False, indent=1)
        lines = [json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in run["questions"]]
        parts.append(text[: text.rindex("\n}")] + ',\n "questions": [\n  ' + ",\n  ".join(lines) + "\n ]\n}")
    return f'{{"format": {FORMAT}, "runs": [\n' + ",\n".join(parts) + "\n]}\n"


def read(path: Path) -> list[dict[str, Any]]:
    """The runs of a result file. Raises RunRefused for anything else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunRefused(f"{path} is no result file: {error}", hint="`kb eval --out FILE` writes one.") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT or not isinstance(found.get("runs"), list):
        raise RunRefused(f"{path} is no result file of format {FORMAT}", hint="`kb eval --out FILE` writes one.")
    needed = {"dataset", "arm", "settings", "embedder", "metrics", "questions"}
    for run in found["runs"]:
        if not isinstance(run, dict) or needed - set(run):
            raise RunRefused(f"{path} holds a run without {', '.join(sorted(needed - set(run)))}")
    return list(found["runs"])
