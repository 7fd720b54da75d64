"""Measures against values worked out by hand."""

import math

import pytest

from agent_server.evaluation import metrics
from agent_server.evaluation.metrics import Interval, Judged

# Results 1 and 4 are relevant with grades 2 and 1, another document of grade 3 is not found.
GRADED = Judged(found=(1, 0, 0, 1, 0), gains=(2.0, 0.0, 0.0, 1.0, 0.0), ideal=(3.0, 2.0, 1.0), total=3)
NOTHING = Judged(found=(0, 0), gains=(0.0, 0.0), ideal=(1.0,), total=1)
EMPTY = Judged(found=(), gains=(), ideal=(1.0,), total=1)


def test_recall_is_the_share_of_relevant_items_among_the_first_k() -> None:
    assert metrics.recall(GRADED, 1) == pytest.approx(1 / 3)
    assert metrics.recall(GRADED, 3) == pytest.approx(1 / 3)
    assert metrics.recall(GRADED, 4) == pytest.approx(2 / 3)
    assert metrics.recall(NOTHING, 10) == metrics.recall(EMPTY, 10) == 0


def test_a_hit_needs_one_relevant_result() -> None:
    late = Judged(found=(0, 0, 1), gains=(0, 0, 1), ideal=(1,), total=1)
    assert [metrics.hit(late, k) for k in (1, 2, 3, 10)] == [0, 0, 1, 1]
    assert metrics.hit(EMPTY, 10) == 0


def test_the_reciprocal_rank_is_that_of_the_first_relevant_result() -> None:
    assert metrics.reciprocal_rank(GRADED) == 1
    assert metrics.reciprocal_rank(Judged((0, 0, 1, 1), (0, 0, 1, 1), (1, 1), 2)) == pytest.approx(1 / 3)
    assert metrics.reciprocal_rank(NOTHING) == metrics.reciprocal_rank(EMPTY) == 0


def test_ndcg_divides_by_the_ideal_ranking_with_graded_gains() -> None:
    found = 2 / math.log2(2) + 1 / math.log2(5)
    ideal = 3 / math.log2(2) + 2 / math.log2(3) + 1 / math.log2(4)
    assert metrics.ndcg(GRADED, 10) == pytest.approx(found / ideal) == pytest.approx(0.51045, abs=1e-5)
    assert metrics.ndcg(GRADED, 1) == pytest.approx(2 / 3)
    assert metrics.ndcg(Judged((1, 1), (3, 1), (3, 1), 2), 10) == 1
    assert metrics.ndcg(EMPTY, 10) == 0


def test_ndcg_of_a_result_that_shows_two_labels_at_once() -> None:
    both_at_rank_2 = Judged(found=(0, 2), gains=(0, 2), ideal=(2.0,), total=2)
    assert metrics.ndcg(both_at_rank_2, 10) == pytest.approx(1 / math.log2(3))
    assert metrics.recall(both_at_rank_2, 10) == 1


def test_average_precision_counts_what_was_not_found_as_zero() -> None:
    # Manning and others: relevant at ranks 1 and 4 of three: (1/1 + 2/4 + 0) / 3.
    assert metrics.average_precision(GRADED) == pytest.approx(0.5)
    assert metrics.average_precision(Judged((0, 1), (0, 1), (1,), 1)) == pytest.approx(0.5)
    assert metrics.average_precision(EMPTY) == 0


def test_a_ranking_cannot_be_judged_without_anything_relevant() -> None:
    with pytest.raises(ValueError, match="0 relevant"):
        Judged((), (), (), 0)
    with pytest.raises(ValueError, match="1 results with 0 gains"):
        Judged((1,), (), (1.0,), 1)


def test_distinct_passages_are_those_that_repeat_none_before_them() -> None:
    first = "the fee for a late payment is 25 dollars and is charged once for each payment"
    assert metrics.distinct([first, first.upper() + ".", "another text about something else"], 10) == 2
    longer = first + ", with more behind it that nobody has read before in any of the others"
    assert metrics.distinct([longer, first], 10) == 1  # all of it stands in the longer one
    assert metrics.distinct([first, longer], 10) == 2  # half of it is new
    assert metrics.distinct([first, longer, "three"], 1) == 1
    assert metrics.distinct([], 10) == 0
    assert metrics.distinct(["yes", "no", "yes"], 10) == 2


def test_refusals_are_right_where_the_question_has_no_answer() -> None:
    refused = [True, True, False, False, True]
    unanswerable = [True, False, True, False, True]
    assert metrics.refusal_precision(refused, unanswerable) == pytest.approx(2 / 3)
    assert metrics.refusal_recall(refused, unanswerable) == pytest.approx(2 / 3)
    assert metrics.refusal_precision([False], [True]) is None
    assert metrics.refusal_recall([True], [False]) is None


def test_a_percentile_is_one_of_the_values() -> None:
    values = [5.0, 1.0, 3.0, 2.0, 4.0]
    assert [metrics.percentile(values, share) for share in (0.2, 0.5, 0.95, 1)] == [1, 3, 5, 5]


def test_the_bootstrap_interval_holds_the_mean_and_is_the_same_for_the_same_seed() -> None:
    values = [0.0, 1.0] * 50
    first = metrics.bootstrap(values, seed=7)
    assert first == metrics.bootstrap(values, seed=7)
    assert first != metrics.bootstrap(values, seed=8)
    assert first.mean == 0.5
    # The standard error is .05: 1.96 of them on both sides, within the error of 1,000 rounds.
    assert first.low == pytest.approx(0.402, abs=0.02)
    assert first.high == pytest.approx(0.598, abs=0.02)
    assert metrics.bootstrap([0.3, 0.3], seed=7) == Interval(0.3, 0.3, 0.3)
    with pytest.raises(ValueError, match="nothing"):
        metrics.bootstrap([], seed=7)


def test_few_differences_are_tested_by_all_ways_to_swap_them() -> None:
    # Three gains of the same size: of 8 ways only +++ and --- are as extreme.
    assert metrics.paired_p_value([0, 0, 0, 1], [1, 1, 1, 1], seed=1) == pytest.approx(0.25)
    # 3 - 1 = 2: of the 4 ways +3+1, -3-1, +3-1 and -3+1 all reach 2.
    assert metrics.paired_p_value([0, 1], [3, 0], seed=1) == 1
    # 5 + 1 = 6: of the 4 ways two reach 6.
    assert metrics.paired_p_value([0, 0], [5, 1], seed=1) == pytest.approx(0.5)
    assert metrics.paired_p_value([0.2, 0.4], [0.2, 0.4], seed=1) == 1


def test_many_differences_are_tested_by_seeded_rounds() -> None:
    before = [0.0] * 40
    assert metrics.paired_p_value(before, [1.0] * 40, seed=3, rounds=2000) == pytest.approx(1 / 2001)
    mixed = [1.0, -1.0] * 20
    assert metrics.paired_p_value(before, mixed, seed=3, rounds=500) == 1
    some = [1.0] * 25 + [-1.0] * 15
    p = metrics.paired_p_value(before, some, seed=3, rounds=5000)
    # Binomial: P(|heads - 20| >= 5) of 40 fair throws is .154.
    assert p == pytest.approx(0.154, abs=0.02)
    assert p == metrics.paired_p_value(before, some, seed=3, rounds=5000)
    assert p == metrics.paired_p_value(some, before, seed=3, rounds=5000)
