"""The quality gate: whether a run fell under its recorded figures by more than its noise."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent_server.evaluation.compare import MAIN, SIGNIFICANT, compare, matching


def fallen(recorded: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]], *, seed: int) -> tuple[str, ...]:
    """What is wrong with the runs `now` against the `recorded` ones, a sentence each; () when nothing is. Pure.

    A run fell when its mean of MAIN is lower and the paired randomisation test over its questions says that chance
    would not do that (p < SIGNIFICANT). It is compared with what its dataset and arm measured before; questions that
    are no longer asked are a fault too, as a gate that asks less notices less. Raises RunRefused where nothing matches.
    """
    faults = []
    for before, after in matching(recorded, now):
        found = compare(before, after, seed=seed)
        main = next(d for d in found.metrics if d.metric == MAIN)
        where = f"{found.dataset}, {after['arm']}"
        if found.only_before:
            faults.append(f"{where}: {found.only_before} of the recorded questions were not asked")
        if main.change < 0 and main.p < SIGNIFICANT:
            questions = ", ".join(list(found.fell)[:5])
            faults.append(
                f"{where}: {MAIN} fell from {main.before:.3f} to {main.after:.3f} over {found.shared} questions "
                f"(p = {main.p:.3f}), most in {questions}"
            )
    missing = {(r["dataset"]["name"], r["arm"]) for r in recorded} - {(r["dataset"]["name"], r["arm"]) for r in now}
    return (*faults, *(f"{name}, {arm}: not measured" for name, arm in sorted(missing)))
