"""What of a comparison is a drop, and how it is said; pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from agent_server.evaluation.compare import MAIN, SIGNIFICANT, Comparison, Difference

#: Smaller drops of the mean do not matter, significant or not: over all questions, and within a kind.
LEAST_DROP = 0.02
LEAST_KIND_DROP = 0.05
#: Questions named, worst first.
NAMED = 10

About = Literal["overall", "kind", "question", "lost", "changed"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that fell, or that may be why. `before`, `after` and `p` where there are figures."""

    about: About
    name: str
    before: float | None = None
    after: float | None = None
    p: float | None = None
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        return {k: v for k, v in asdict(self).items() if v not in (None, "")}


def drops(found: Comparison) -> list[Finding]:
    """The drops of a comparison: overall, kinds, the questions that fell most; [] when there is none.

    A night is bad when the mean over all questions fell significantly, or that of one kind did, where each of the
    n kinds is held to SIGNIFICANT / n (Bonferroni: of many kinds one falls by chance). Once it is bad, every kind that
    fell significantly by itself is named.
    """
    main = next(d for d in found.metrics if d.metric == MAIN)
    overall = _fell(main, LEAST_DROP, SIGNIFICANT)
    alone = SIGNIFICANT / max(1, len(found.kinds))
    if not overall and not any(_fell(d, LEAST_KIND_DROP, alone) for d in found.kinds.values()):
        return []
    kinds = {k: d for k, d in found.kinds.items() if _fell(d, LEAST_KIND_DROP, SIGNIFICANT)}
    out = [Finding("overall", MAIN, round(main.before, 5), round(main.after, 5), round(main.p, 5))]
    for kind, d in sorted(kinds.items(), key=lambda item: item[1].change):
        out.append(Finding("kind", kind, round(d.before, 5), round(d.after, 5), round(d.p, 5)))
    out += [Finding("question", id_, before, after) for id_, (before, after) in list(found.fell.items())[:NAMED]]
    return out


def _fell(difference: Difference, least: float, level: float) -> bool:
    return difference.change <= -least and difference.p < level


def lost_quotes(lost: Sequence[tuple[str, str]]) -> list[Finding]:
    """Questions whose quotes stand in no passage: (id, source) pairs."""
    return [
        Finding("lost", id_, text=f"its quote stands in no passage of {source} any more")
        for id_, source in lost[:NAMED]
    ] + ([Finding("lost", f"{len(lost) - NAMED} more")] if len(lost) > NAMED else [])


def said(finding: Finding) -> str:
    """A finding as a line for people."""
    moved = f"{finding.before:.3f} -> {finding.after:.3f}" if finding.before is not None else ""
    p = f" (p = {finding.p:.3g})" if finding.p is not None else ""
    match finding.about:
        case "overall":
            return f"{finding.name} fell: {moved}{p}"
        case "kind":
            return f"kind {finding.name} fell: {moved}{p}"
        case "question":
            return f"question {finding.name}: {moved}"
        case "lost":
            return f"question {finding.name}: {finding.text}" if finding.text else f"question: {finding.name}"
        case "changed":
            return f"changed since: {finding.name}: {finding.text}"
