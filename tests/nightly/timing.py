"""Whether time grows with the text or with its square, on a machine that is busy with other things."""

from collections.abc import Callable

GROWTH = 8
#: Linear time makes a text of 8 times the size take 8 times as long, quadratic time 64 times.
LIMIT = 24
TRIES = 5


def assert_linear(seconds: Callable[[int], float], chars: int) -> None:
    """`seconds(size)` is the processor time for a text of that size."""
    seconds(chars)  # what is loaded or compiled at first use
    ratios = []
    for _ in range(TRIES):
        small, large = min(seconds(chars), seconds(chars)), seconds(chars * GROWTH)
        ratios.append(large / max(small, 0.002))
        if ratios[-1] < LIMIT:
            return
    raise AssertionError(f"{GROWTH} times the text took {', '.join(f'{r:.0f}' for r in ratios)} times as long")
