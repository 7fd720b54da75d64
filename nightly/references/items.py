"""Lists of numbers behind a word: "4.2, 4.3(a) and (b) through (d)"."""

import re

from nightly.references import signs
from nightly.references.model import Parsed, Reference, Step
from nightly.references.numbering import LOOSE, kinds, normal, tokens
from nightly.references.ranges import members, rises, shared_beginning

MAX_ITEMS = 40
PATH_WORDS = frozenset({"paragraph", "point"})
#: Followed by a single capital they may be plain words: "part A of the plan", "form I".
_WEAK = frozenset(
    {"part", "form", "title", "book", "rule", "point", "table", "figure", "exhibit", "section", "paragraph"}
)
#: "9.ii", and the dot that ends "I.D.3." within a list.
_PARTS = re.compile(r"(?:\.[ivxl]{1,6}|\.[A-Z](?![A-Za-z])){1,4}(?!\w)")
_FULL_STOP = re.compile(r"\.(?=,|[ \n](?:of|and|or)\b)")
_OUTLINED = re.compile(r"[ivxl]+(?:\.[a-z])+\.\d+")
#: "Article 46 or 47, ...", but not "section 4 or 5 loans".
_ENDS_A_LIST = re.compile(rf"(?:\([0-9A-Za-z]{{1,5}}\))*(?:[,;.:)]|{signs.B}(?:of|and|or|shall|applies|apply)\b|\s*\Z)")


def items(text: str, start: int, at: int, word: str, *, many: bool, small: bool) -> Parsed | None:
    """A list of numbers and paths behind a word: "4.2, 4.3(a) and (b) through (d)"."""
    first = _item(text, at, word, small=small)
    if first is None:
        return None
    step, end = first
    found = [Reference(start, end, "place", (step,), plain=word == "section" and text[start] != "§")]
    begins = start
    for _ in range(MAX_ITEMS):
        gap = signs.SEPARATOR.match(text, end + (step.number.count(".") == 2 and text[end : end + 2] == ".,"))
        if gap is None or gap.end() == end or not (gap["word"] or "," in gap[0]):
            break
        if gap["again"] and word != "section":
            break
        further = _item(text, gap.end(), word, small=small, after=step, many=many or bool(gap["again"]))
        if further is None:
            break
        is_range = gap["word"] in signs.RANGE_WORDS
        if is_range and not rises(step, further[0]):
            break
        item_start = gap.start("again") if gap["again"] else gap.end()
        if is_range:
            found += members(step, further[0], begins, further[1])
        step, end = further
        begins = item_start
        found.append(Reference(item_start, end, "place", (step,), plain=found[0].plain))
    return Parsed(tuple(found), end)


def _item(
    text: str, at: int, word: str, *, small: bool, after: Step | None = None, many: bool = False
) -> tuple[Step, int] | None:
    """One number with its path, or a path alone. `after`: the item before it, whose beginning it may share."""
    number = signs.NUMBER.match(text, at)
    if number is None:
        return _path_alone(text, at, word, after)
    if not _is_number(text, number, word, small=small, after=after, many=many):
        return None
    said, end = number[0], number.end()
    values: tuple[str, ...] = ()
    if word in PATH_WORDS and (parts := _PARTS.match(text, end)):
        values, end = tuple(parts[0].strip(".").split(".")), parts.end()
    if after is not None and said.isdigit() and _OUTLINED.fullmatch(after.number):
        said = f"{after.number.rpartition('.')[0]}.{said}"
    if "." in said and said[0].isalpha() and _FULL_STOP.match(text, end):
        end += 1
    path = (signs.SPACED_PATH if number[0][0].isdigit() else signs.PATH).match(text, end)
    if path is not None:
        values, end = values + tokens(path[0]), path.end()
    return Step(word, normal(said), values), end


def _path_alone(text: str, at: int, word: str, after: Step | None) -> tuple[Step, int] | None:
    """ "(a)(1)", of a section that is not said, or that was said before."""
    path = signs.PATH.match(text, at)
    if path is None:
        return None
    values = tokens(path[0])
    if after is None:
        return (Step(word, "", values), path.end()) if word in LOOSE else None
    shared = shared_beginning(after.path, values)
    return None if shared is None else (Step(word, after.number, shared + values), path.end())


def _is_number(text: str, number: re.Match[str], word: str, *, small: bool, after: Step | None, many: bool) -> bool:
    """Whether what looks like a number is one, and goes on with the list."""
    said = number[0]
    if said.isalpha():
        if len(said) > 1 and not kinds(said):
            return False  # "IN", "OR"
        if word in {"paragraph", "section", "article", "rule", "point"} and len(said) > 2 and not kinds(said) & {"I"}:
            return False
        if said in {"A", "I"} and (small or after is not None) and word in _WEAK:
            return (
                re.match(rf"{signs.B}(?:,|\.|;|\)|of\b|to\b|and\b|or\b)", text[number.end() : number.end() + 30])
                is not None
            )
        if after is not None and not (after.number.isalpha() or "-" in after.number):
            return False
        return not (word == "form" and len(said) == 1)
    if word == "form":
        return said[0].isalpha() and "-" in said
    if word == "point":
        return after is None or many
    if after is None:
        return True
    if not after.number:
        return many and word in PATH_WORDS
    if many and said.isdigit() and _OUTLINED.fullmatch(after.number):
        return True  # "I.D.3., 4. and 5."
    alike = said.count(".") == after.number.count(".") and said[0].isdigit() == after.number[0].isdigit()
    return alike and (many or "." in said or "-" in said or _ENDS_A_LIST.match(text, number.end()) is not None)
