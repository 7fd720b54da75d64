"""Cross-validation of a choice: what the choosing is worth on questions that had no say in it; pure.

Every question is held out once in each round, its score there is that of the setting which was best on the others
(Stone, 1974; rounds over several divisions: Burman, 1989).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]  #: (settings, questions)


@dataclass(frozen=True, slots=True)
class OutOfFold:
    """`scores` (questions,): each question's mean over the rounds; `rounds`: the mean of each round; `picks`: how often
    each row was chosen."""

    scores: Scores
    rounds: tuple[float, ...]
    picks: dict[int, int]


def divided(kinds: Sequence[str], folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The fold (0 to folds - 1) of each question: sizes differ by one at most, and each kind is spread over all."""
    order = [
        int(at)
        for kind in dict.fromkeys(kinds)
        for at in rng.permutation([n for n, other in enumerate(kinds) if other == kind])
    ]
    out = np.empty(len(kinds), np.int64)
    out[order] = np.arange(len(order)) % folds
    return out


def out_of_fold(scores: Scores, kinds: Sequence[str], *, folds: int, rounds: int, seed: int) -> OutOfFold:
    """Cross-validate choosing the row with the best mean; of equal ones the first. Same seed, same result.

    Raises ValueError for fewer questions than folds.
    """
    count = scores.shape[1]
    if not 2 <= folds <= count:
        raise ValueError(f"{folds} folds of {count} questions")
    rng = np.random.default_rng(seed)
    held_out = np.zeros((rounds, count))
    picks: dict[int, int] = {}
    for turn in range(rounds):
        fold = divided(kinds, folds, rng)
        for n in range(folds):
            best = int(scores[:, fold != n].mean(axis=1).argmax())
            picks[best] = picks.get(best, 0) + 1
            held_out[turn, fold == n] = scores[best, fold == n]
    return OutOfFold(held_out.mean(axis=0), tuple(float(m) for m in held_out.mean(axis=1)), dict(sorted(picks.items())))
