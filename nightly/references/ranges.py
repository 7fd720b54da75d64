"""What a number shares with the one before it, and what lies between the ends of a range."""

from dataclasses import replace

from nightly.references.model import Reference, Step
from nightly.references.numbering import kinds, readings

MAX_MEMBERS = 40  #: of a range; a longer one is linked by its ends


def shared_beginning(before: tuple[str, ...], values: tuple[str, ...]) -> tuple[str, ...] | None:
    """What of the path `before` also leads to `values`: () for "(a)(1) and (b)", ("a",) for "(a)(1) and (2)".

    None when nothing in `before` is numbered like the first of `values`, or the order would fall.
    """
    for depth in range(len(before) - 1, -1, -1):
        known = _kind_at(before, depth)
        for old in readings(before[depth], ""):
            for new in readings(values[0], ""):
                if old.style == new.style and old.style[-1] == known and new.ordinal > old.ordinal:
                    return before[:depth]
    same = [d for d in range(len(before)) if before[d] == values[0]]
    return before[: same[0]] if same else None


def _kind_at(path: tuple[str, ...], depth: int) -> str:
    """How a value is numbered there: "i" is a numeral below letters, and a letter at the beginning."""
    options = sorted(kinds(path[depth]))  # "A" < "I", "a" < "i"
    if len(options) < 2:
        return options[0] if options else ""
    letters = {options[0]}
    return options[1] if any(kinds(value) & letters for value in path[:depth]) or len(path[depth]) > 1 else options[0]


def rises(first: Step, last: Step) -> bool:
    """Whether two items can be the ends of a range."""
    one, other = _last(first), _last(last)
    if one is None or other is None or first.path[:-1] != last.path[: len(first.path) - 1]:
        return _number_range(first, last) is not None
    return any(a.style == b.style and a.ordinal < b.ordinal for a in readings(one, "") for b in readings(other, ""))


def _last(step: Step) -> str | None:
    return step.path[-1] if step.path else None


def _number_range(first: Step, last: Step) -> tuple[str, int, int] | None:
    """Stem and ends of a range of numbers: "12.3" to "12.5" is ("12.", 3, 5)."""
    if first.path or last.path:
        return None
    mark = max(first.number.rfind("."), first.number.rfind("-")) + 1
    stem, low, high = first.number[:mark], first.number[mark:], last.number[mark:]
    if not last.number.startswith(stem) or not (low.isdigit() and high.isdigit()) or int(low) >= int(high):
        return None
    return stem, int(low), int(high)


def members(first: Step, last: Step, start: int, end: int) -> list[Reference]:
    """What lies between the ends of a range."""
    numbers = _number_range(first, last)
    if numbers is not None:
        stem, low, high = numbers
        between = [replace(first, number=f"{stem}{n}") for n in range(low + 1, high)]
    else:
        between = [
            replace(first, path=(*first.path[:-1], value)) for value in _values_between(first.path[-1], last.path[-1])
        ]
    if len(between) > MAX_MEMBERS:
        return []
    return [Reference(start, end, "place", (step,), member=True) for step in between]


_NUMERALS = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")


def _values_between(first: str, last: str) -> list[str]:
    for a in readings(first, ""):
        for b in readings(last, ""):
            if a.style == b.style and a.ordinal < b.ordinal:
                return [_written(n, a.style[-1]) for n in range(a.ordinal + 1, b.ordinal)]
    return []


def _written(ordinal: int, kind: str) -> str:
    if kind == "1":
        return str(ordinal)
    if kind in "aA":
        letter = chr((ordinal - 1) % 26 + (97 if kind == "a" else 65))
        return letter * ((ordinal - 1) // 26 + 1)
    numeral = "x" * (ordinal // 10) + _NUMERALS[ordinal % 10]
    return numeral if kind == "i" else numeral.upper()
