"""A run against an earlier one, question by question."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from agent_server.errors import RunRefused
from agent_server.evaluation import metrics
from agent_server.evaluation.results import METRICS

#: Which metric says whether a question fell.
MAIN = METRICS[0]
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric over the questions that both runs asked; `p` is that of the paired randomisation test."""

    metric: str
    before: float
    after: float
    p: float

    @property
    def change(self) -> float:
        return self.after - self.before


@dataclass(frozen=True, slots=True)
class Comparison:
    """`kinds`: kind -> difference of MAIN; `fell` and `rose`: question -> (before, after) of MAIN, largest first."""

    dataset: str
    before: str
    after: str
    shared: int
    only_before: int
    only_after: int
    metrics: tuple[Difference, ...]
    kinds: Mapping[str, Difference]
    fell: Mapping[str, tuple[float, float]]
    rose: Mapping[str, tuple[float, float]]

    def to_json(self) -> dict[str, Any]:
        """As `kb eval --compare --json` prints it."""
        return asdict(self)


def compare(before: Mapping[str, Any], after: Mapping[str, Any], *, seed: int) -> Comparison:
    """The difference of two runs over the questions that both have; pure.

    Raises RunRefused for runs of different datasets and for runs that share no question.
    """
    old, new = before["dataset"], after["dataset"]
    if (old["name"], old["kind"]) != (new["name"], new["kind"]):
        raise RunRefused(f"a run on {new['name']} cannot be compared with one on {old['name']}")
    was, now = _rows(before), _rows(after)
    shared = [id_ for id_ in now if id_ in was]
    if not shared:
        raise RunRefused(f"the two runs on {new['name']} share no question")
    kinds = dict.fromkeys(now[id_]["kind"] for id_ in shared)
    by_kind = {kind: [id_ for id_ in shared if now[id_]["kind"] == kind] for kind in kinds}
    moved = sorted(shared, key=lambda id_: (now[id_][MAIN] - was[id_][MAIN], id_))
    pairs = {id_: (was[id_][MAIN], now[id_][MAIN]) for id_ in moved}
    return Comparison(
        dataset=new["name"],
        before=_title(before),
        after=_title(after),
        shared=len(shared),
        only_before=len(was) - len(shared),
        only_after=len(now) - len(shared),
        metrics=tuple(_difference(name, was, now, shared, seed) for name in METRICS),
        kinds={kind: _difference(MAIN, was, now, ids, seed) for kind, ids in by_kind.items() if len(by_kind) > 1},
        fell={id_: pair for id_, pair in pairs.items() if pair[1] < pair[0]},
        rose={id_: pairs[id_] for id_ in reversed(moved) if pairs[id_][1] > pairs[id_][0]},
    )


def matching(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]
) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Which runs to compare: those of the same dataset and arm, or, where each side has one run of a dataset, these
    two. Raises RunRefused when nothing matches."""
    pairs: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
    for run in after:
        old = [r for r in before if r["dataset"]["name"] == run["dataset"]["name"]]
        new = [r for r in after if r["dataset"]["name"] == run["dataset"]["name"]]
        same = [r for r in old if r["arm"] == run["arm"]]
        if not same and len(old) == len(new) == 1:
            same = old
        pairs += [(r, run) for r in same[:1]]
    if not pairs:
        raise RunRefused(
            "the earlier file has no run to compare with",
            hint="It needs one on the same dataset, with the same arm or as the only one.",
            details={"there": [f"{r['dataset']['name']} {r['arm']}" for r in before]},
        )
    return pairs


def _rows(run: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Rows of the questions that were judged, by id."""
    return {row["id"]: row for row in run["questions"] if MAIN in row}


def _difference(
    name: str,
    was: Mapping[str, Mapping[str, Any]],
    now: Mapping[str, Mapping[str, Any]],
    ids: Sequence[str],
    seed: int,
) -> Difference:
    old, new = [float(was[i][name]) for i in ids], [float(now[i][name]) for i in ids]
    return Difference(name, metrics.mean(old), metrics.mean(new), metrics.paired_p_value(old, new, seed=seed))


def _title(run: Mapping[str, Any]) -> str:
    return f"{run['label']} ({run.get('date', 'undated')}, {run['embedder']['model']})"
