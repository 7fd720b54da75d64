"""Measures of a ranking and of the difference between two; pure, each with its source.

A ranking is judged before it is measured: `Judged` says of each result, best first, how many relevant items it shows
that no result before it has shown, and what it gains. On a BEIR collection an item is a document; on a gold file it is
a label (a quote), so that the copy of a passage, or a quote that overlapping passages repeat, counts once.
"""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Words in a row that two texts are compared by, and the share of them that makes a text a repetition.
SHINGLE_WORDS = 3
REPEATED_SHARE = 0.8
#: Rounds of a test that are reckoned together.
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Judged:
    """One question's ranking against what is relevant.

    `found[i]` counts relevant items shown first by result i, `gains[i]` is what that is worth, `ideal` are the gains of
    the best possible ranking in order, `total` is the number of relevant items (at least 1).
    """

    found: tuple[int, ...]
    gains: tuple[float, ...]
    ideal: tuple[float, ...]
    total: int

    def __post_init__(self) -> None:
        if self.total < 1 or len(self.found) != len(self.gains):
            raise ValueError(f"{self.total} relevant items, {len(self.found)} results with {len(self.gains)} gains")


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean and its confidence interval."""

    mean: float
    low: float
    high: float


# -- one question -----------------------------------------------------------------------------------------------


def recall(judged: Judged, k: int) -> float:
    """Share of the relevant items among the first `k` results (Manning, Raghavan and Schütze, 2008, section 8.4)."""
    return sum(judged.found[:k]) / judged.total


def hit(judged: Judged, k: int) -> float:
    """1 when a relevant item is among the first `k` results, else 0 ("success at k": Craswell and Hawking, 2004)."""
    return float(any(judged.found[:k]))


def reciprocal_rank(judged: Judged) -> float:
    """1 / rank of the first relevant result, 0 without one; its mean is MRR (Voorhees, TREC-8, 1999)."""
    return next((1 / rank for rank, found in enumerate(judged.found, 1) if found), 0.0)


def dcg(gains: Sequence[float], k: int) -> float:
    """Sum of gain / log2(rank + 1) over the first `k` (Järvelin and Kekäläinen, 2002, with the discount of rank 1 at 1
    as trec_eval's ndcg_cut has it: gains linear, not 2^gain - 1)."""
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:k], 1))


def ndcg(judged: Judged, k: int) -> float:
    """DCG over that of the ideal ranking, at most 1 (as `dcg`; where one result shows several items this is alpha-nDCG
    with alpha = 1: Clarke and others, 2008)."""
    return min(1.0, dcg(judged.gains, k) / dcg(judged.ideal, k))


def average_precision(judged: Judged) -> float:
    """Mean over the relevant items of the precision at the rank that shows each, 0 for those not shown; its mean is MAP
    (Manning, Raghavan and Schütze, 2008, section 8.4)."""
    total = 0.0
    relevant = 0
    for rank, found in enumerate(judged.found, 1):
        if found:
            relevant += 1
            total += found * relevant / rank
    return total / judged.total


def distinct(texts: Sequence[str], k: int) -> int:
    """How many of the first `k` texts do not repeat an earlier one: less than 80 % of their three-word shingles stand
    in it (containment: Broder, 1997)."""
    seen: list[frozenset[tuple[str, ...]]] = []
    for text in texts[:k]:
        shingles = _shingles(text)
        if not any(len(shingles & other) >= REPEATED_SHARE * len(shingles) for other in seen):
            seen.append(shingles)
    return len(seen)


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    count = max(1, len(words) - SHINGLE_WORDS + 1)
    return frozenset(tuple(words[at : at + SHINGLE_WORDS]) for at in range(count))


# -- refusals ---------------------------------------------------------------------------------------------------


def refusal_precision(refused: Sequence[bool], unanswerable: Sequence[bool]) -> float | None:
    """Share of the refusals that were right; None when nothing was refused (van Rijsbergen, 1979, chapter 7)."""
    right = [no for said, no in zip(refused, unanswerable, strict=True) if said]
    return sum(right) / len(right) if right else None


def refusal_recall(refused: Sequence[bool], unanswerable: Sequence[bool]) -> float | None:
    """Share of the unanswerable questions that were refused; None when there are none (as above)."""
    said = [yes for yes, no in zip(refused, unanswerable, strict=True) if no]
    return sum(said) / len(said) if said else None


# -- many questions ---------------------------------------------------------------------------------------------


def mean(values: Sequence[float]) -> float:
    """Arithmetic mean. Raises ValueError for no values."""
    if not values:
        raise ValueError("the mean of nothing")
    return math.fsum(values) / len(values)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed (nearest rank). `share` in (0, 1]."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def bootstrap(values: Sequence[float], *, seed: int, rounds: int = 1000, level: float = 0.95) -> Interval:
    """Mean with the percentile interval of means of resamples with replacement (Efron and Tibshirani, 1993, chapter
    13). Same seed, same interval."""
    middle = mean(values)
    if min(values) == max(values):
        return Interval(middle, middle, middle)
    rng = np.random.default_rng(seed)
    known = np.asarray(values, np.float64)
    means = [float(known[rng.integers(0, len(known), len(known))].mean()) for _ in range(rounds)]
    tail = (1 - level) / 2
    return Interval(middle, percentile(means, tail), percentile(means, 1 - tail))


def paired_p_value(before: Sequence[float], after: Sequence[float], *, seed: int, rounds: int = 10_000) -> float:
    """How often chance alone makes the mean of two runs over the same questions differ as much: two-sided paired
    randomisation test (Fisher, 1935; for retrieval: Smucker, Allan and Carterette, 2007).

    Each round swaps the two scores of a question or not. All ways are tried when there are no more than `rounds`, else
    `rounds` of them by `seed`, where the observed one counts as a round: never 0.
    """
    differences = np.array([b - a for a, b in zip(before, after, strict=True) if a != b], np.float64)
    if not len(differences):
        return 1.0
    observed = abs(differences.sum()) - 1e-9  # equal sums may differ in their last digits
    if 2 ** len(differences) <= rounds:
        ways = np.array(list(itertools.product((-1.0, 1.0), repeat=len(differences))))
        return float((np.abs(ways @ differences) >= observed).mean())
    rng = np.random.default_rng(seed)
    extreme = 0
    for at in range(0, rounds, _AT_ONCE):
        signs = np.where(rng.random((min(_AT_ONCE, rounds - at), len(differences))) < 0.5, 1.0, -1.0)
        extreme += int((np.abs(signs @ differences) >= observed).sum())
    return (extreme + 1) / (rounds + 1)
