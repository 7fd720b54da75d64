"""References in prose: "section 4.2", "§§ 12.9(a)(1) and (2)(i)", "paragraphs (a) through (c) of this section",
"Article 6(1), point (f)", "Appendix B to this part", "comment 2(c)-1", "PEP 8", "the table above".

Read from left to right in one pass; a reference is never longer than a few hundred letters, so time is linear.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from nightly.references import signs
from nightly.references.model import Parsed, Reference, Step
from nightly.references.numbering import APPENDED, LOOSE, WORDS, kinds, normal, readings, tokens
from nightly.references.outside import document_named

MAX_MEMBERS = 40  #: of a range; a longer one is linked by its ends
_MAX_ITEMS = 40
_MAX_NESTING = 4
_PATH_WORDS = frozenset({"paragraph", "point"})
#: Followed by a single capital they may be plain words: "part A of the plan", "form I".
_WEAK = frozenset(
    {"part", "form", "title", "book", "rule", "point", "table", "figure", "exhibit", "section", "paragraph"}
)
_CHAINED = {
    "appendix", "annex", "schedule", "supplement", "part", "chapter", "article", "section", "document", "title",
    "subpart", "attachment", "exhibit", "paragraph",
}  # fmt: skip
#: "9.ii", and the dot that ends "I.D.3." within a list.
_PARTS = re.compile(r"(?:\.[ivxl]{1,6}|\.[A-Z](?![A-Za-z])){1,4}(?!\w)")
_FULL_STOP = re.compile(r"\.(?=,|[ \n](?:of|and|or)\b)")
_OUTLINED = re.compile(r"[ivxl]+(?:\.[a-z])+\.\d+")
#: "Article 46 or 47, ...", but not "section 4 or 5 loans".
_ENDS_A_LIST = re.compile(rf"(?:\([0-9A-Za-z]{{1,5}}\))*(?:[,;.:)]|{signs.B}(?:of|and|or|shall|applies|apply)\b|\s*\Z)")


def references(text: str) -> Iterator[Reference]:
    """All references of `text`, in order."""
    at = 0
    for found in signs.TRIGGER.finditer(text):
        if found.start() < at:
            continue
        parsed = _parse(text, found, 0)
        if parsed is not None:
            at = parsed.end
            yield from parsed.found


def _parse(text: str, found: re.Match[str], nesting: int) -> Parsed | None:
    """The references that begin with a trigger, with all that belongs to them."""
    parsed = _head(text, found)
    if parsed is None:
        return None
    parsed = _chained(text, parsed, nesting)
    return _suffixed(text, parsed, found, nesting)


def _nested(text: str, at: int, nesting: int) -> Parsed | None:
    """References that begin right here."""
    if nesting >= _MAX_NESTING:
        return None
    found = signs.TRIGGER.match(text, at)
    return _parse(text, found, nesting + 1) if found else None


# -- what a trigger begins --------------------------------------------------------------------------------------


def _head(text: str, found: re.Match[str]) -> Parsed | None:
    start, at = found.start(), found.end()
    if found["law"]:
        return Parsed((Reference(start, at, "document", outside=" ".join(found["law"].split())),), at)
    if found["near"]:
        step = Step(found["near"].lower(), found["side"].lower())
        return Parsed((Reference(start, at, "near", (step,)),), at)
    if found["nth"]:
        return Parsed((Reference(start, at, "place"),), at)
    if found["series"]:
        return _series(text, found)
    if found["book"]:
        return _book(text, found)
    word = "section" if found["sign"] else WORDS[found["word"].lower()]
    if word == "comment":
        return _comments(text, start, at)
    many = found["sign"] == "§§" if found["sign"] else found["word"].lower().endswith("s")
    return _items(text, start, at, word, many=many, small=bool(found["word"]) and found["word"][0].islower())


def _items(text: str, start: int, at: int, word: str, *, many: bool, small: bool) -> Parsed | None:
    """A list of numbers and paths behind a word: "4.2, 4.3(a) and (b) through (d)"."""
    first = _item(text, at, word, small=small)
    if first is None:
        return None
    step, end = first
    found = [Reference(start, end, "place", (step,), plain=word == "section" and text[start] != "§")]
    begins = start
    for _ in range(_MAX_ITEMS):
        gap = signs.SEPARATOR.match(text, end + (step.number.count(".") == 2 and text[end : end + 2] == ".,"))
        if gap is None or gap.end() == end or not (gap["word"] or "," in gap[0]):
            break
        if gap["again"] and word != "section":
            break
        further = _item(text, gap.end(), word, small=small, after=step, many=many or bool(gap["again"]))
        if further is None:
            break
        is_range = gap["word"] in signs.RANGE_WORDS
        if is_range and not _rises(step, further[0]):
            break
        item_start = gap.end()
        if is_range:
            found += _members(step, further[0], begins, further[1])
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
    if word in _PATH_WORDS and (parts := _PARTS.match(text, end)):
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
        return many and word in _PATH_WORDS
    if many and said.isdigit() and _OUTLINED.fullmatch(after.number):
        return True  # "I.D.3., 4. and 5."
    alike = said.count(".") == after.number.count(".") and said[0].isdigit() == after.number[0].isdigit()
    return alike and (many or "." in said or "-" in said or _ENDS_A_LIST.match(text, number.end()) is not None)


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


def _rises(first: Step, last: Step) -> bool:
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


def _members(first: Step, last: Step, start: int, end: int) -> list[Reference]:
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


# -- comments, series, codes ------------------------------------------------------------------------------------


def _comments(text: str, start: int, at: int) -> Parsed | None:
    """ "comments 4(a)-2 through -4 and 5(b)-1.ii": places of a commentary, by paragraph and count."""
    found: list[Reference] = []
    end, joined = start, ""
    while len(found) < _MAX_ITEMS:
        match = signs.COMMENT.match(text, at)
        steps = _comment_steps(match, found[-1].steps if found else ()) if match else None
        if match is None or steps is None:
            break
        if joined in signs.RANGE_WORDS and found:
            found += _comment_members(found[-1], steps, found[-1].start, match.end())
        begins, end = (match.start() if found else start), match.end()
        found.append(Reference(begins, end, "comment", steps))
        gap = signs.SEPARATOR.match(text, end)
        if gap is None or not (gap["word"] or "," in gap[0]):
            break
        joined, at = gap["word"] or ",", gap.end()
    return Parsed(tuple(found), end) if found else None


def _comment_steps(match: re.Match[str], before: tuple[Step, ...]) -> tuple[Step, ...] | None:
    """The steps of one comment; "-2" and ".ii" share the beginning of the one before."""
    counts = match["entry"] or ""
    if match["number"]:
        if not (counts or match["path"]):
            return None
        base = Step("comment", normal(match["number"]), tokens(match["path"]))
    elif before and counts and not match["path"]:
        base = before[0]
    else:
        return None
    if not counts:
        return (base,)
    if counts.startswith("."):
        if len(before) < 2:
            return None
        return base, Step("entry", "", (*before[1].path[:1], *counts[1:].split(".")))
    return base, Step("entry", "", tuple(counts[1:].split(".")))


def _comment_members(first: Reference, steps: tuple[Step, ...], start: int, end: int) -> list[Reference]:
    one, other = first.steps[-1].path, steps[-1].path
    if first.steps[0] != steps[0] or len(one) != 1 or len(other) != 1 or not (one[0].isdigit() and other[0].isdigit()):
        return []
    between = range(int(one[0]) + 1, int(other[0]))
    if len(between) > MAX_MEMBERS:
        return []
    return [Reference(start, end, "comment", (steps[0], Step("entry", "", (str(n),))), member=True) for n in between]


_SERIES_NUMBER = re.compile(r"#?(\d{1,5}(?:-\d{1,3})?)(?![\w-]|\.\d)")


def _series(text: str, found: re.Match[str]) -> Parsed | None:
    """ "PEP 8", "PEPs 8, 20 and 257"."""
    name = signs.SERIES[found["series"].lower()]
    many = found[0].rstrip(" -#\u00a0\n").lower().endswith("s")
    out: list[Reference] = []
    start, at = found.start(), found.end()
    while len(out) < _MAX_ITEMS:
        number = _SERIES_NUMBER.match(text, at)
        if number is None:
            break
        out.append(
            Reference(
                start if not out else at, number.end(), "document", outside=f"{name} {int(number[1].partition('-')[0])}"
            )
        )
        gap = signs.SEPARATOR.match(text, number.end())
        if not many or gap is None or gap["word"] in signs.RANGE_WORDS or not (gap["word"] or "," in gap[0]):
            break
        at = gap.end()
    return Parsed(tuple(out), out[-1].end) if out else None


def _book(text: str, found: re.Match[str]) -> Parsed | None:
    """ "12 CFR 1026.4(b)", "12 CFR part 1026", "15 U.S.C. 1691"."""
    code = re.sub(r"[^A-Z]", "", found["code"].upper())
    word = "part" if (found["bookword"] or "").lower().startswith("part") else "section"
    parsed = _items(text, found.start(), found.end(), "section", many=True, small=False)
    if parsed is None:
        return None
    out: list[Reference] = []
    for ref in parsed.found:
        step = ref.steps[0]
        part = step.number.partition(".")[0] if code == "CFR" else ""
        name = " ".join(x for x in (found["book"], code, part) if x)
        whole = code == "CFR" and (word == "part" or "." not in step.number) and not step.path
        out.append(
            replace(
                ref, kind="document" if whole else "place", steps=() if whole else ref.steps, outside=name, plain=False
            )
        )
    return Parsed(tuple(out), parsed.end)


# -- what belongs to it -----------------------------------------------------------------------------------------


def _chained(text: str, parsed: Parsed, nesting: int) -> Parsed:
    """ "Article 6(1), point (f)", "Appendix A, Part I, Paragraph B", "RFC 2119, section 3": the last place is meant."""
    outer = parsed.found[-1]
    word = outer.steps[-1].word if outer.steps else outer.kind
    if outer.kind not in {"place", "document"} or word not in _CHAINED or nesting >= _MAX_NESTING:
        return parsed
    gap = signs.CHAIN.match(text, parsed.end)
    found = signs.TRIGGER.match(text, gap.end()) if gap else None
    if (
        gap is None
        or found is None
        or found["near"]
        or found["law"]
        or found["series"]
        or found["nth"]
        or found["book"]
    ):
        return parsed
    inner = _head(text, found)
    if inner is None or not _narrower(outer, inner.found[0]):
        return parsed
    inner = _chained(text, inner, nesting + 1)
    start = outer.start
    joined = [replace(ref.inside(outer), start=start if n == 0 else ref.start) for n, ref in enumerate(inner.found)]
    return Parsed((*parsed.found[:-1], *joined), inner.end)


_ORDER = ("document", "title", "part", "subpart", "chapter", "appendix", "section", "article", "paragraph", "point")


def _narrower(outer: Reference, inner: Reference) -> bool:
    """Whether the second lies in the first, and is not just the next of an enumeration."""
    if inner.kind != "place" or not inner.steps:
        return False
    one = "document" if outer.kind == "document" else outer.steps[-1].word
    other = inner.steps[-1].word
    if one in APPENDED:
        return (
            other not in APPENDED and other != "article" and not (other == "section" and "." in inner.steps[-1].number)
        )
    if other in APPENDED:
        return one == "document"
    known = one in _ORDER and other in _ORDER
    return (
        known
        and _ORDER.index(one) < _ORDER.index(other)
        and not (one == "section" and other == "paragraph" and inner.steps[-1].number != "")
    )


def _suffixed(text: str, parsed: Parsed, trigger: re.Match[str], nesting: int) -> Parsed | None:
    """What follows: "of this section", "of Article 6(1)", "to Part 12", "of the Lending Act", "thereof"."""
    first = parsed.found[0]
    needs = trigger["nth"] is not None  # "the first subparagraph" names nothing by itself
    if first.kind in {"document", "near"}:
        return parsed
    if not needs and (found := signs.THEREOF.match(text, parsed.end)):
        return _all(parsed, found.end(), within="that")
    gap = signs.OF.match(text, parsed.end)
    if gap is None:
        return None if needs else _followed_by_name(text, parsed)
    at, preposition = gap.end(), gap["word"]
    word = first.steps[-1].word if first.steps else "paragraph"
    if preposition == "to" and word not in APPENDED | {"comment"}:
        return None if needs else parsed
    if found := signs.OWN.match(text, at):
        own = _own(found["word"].lower())
        if own:
            return _own_place(text, parsed, found, own, nesting)
        return None if needs else parsed
    if preposition in {"under", "from", "within"}:
        return None if needs else parsed
    if found := signs.THAT.match(text, at):
        own = _own(found["word"].lower())
        within = "that" if own and own not in {"document"} else ""
        outside = "" if within else f"that {found['word']}"
        return _all(parsed, found.end(), within=within, outside=outside) if own else parsed
    outer = _nested(text, at, nesting)
    if outer is not None and _holds(outer.found[0], word, preposition):
        return Parsed(tuple(ref.inside(outer.found[0]) for ref in _stretched(parsed, first)), outer.end)
    if needs:
        return None
    return _of_name(text, parsed, at, preposition, with_article=gap["the"] is not None)


def _stretched(parsed: Parsed, first: Reference) -> tuple[Reference, ...]:
    return (replace(first), *parsed.found[1:])


def _own_place(text: str, parsed: Parsed, found: re.Match[str], own: str, nesting: int) -> Parsed:
    """ "of this section", and what that may be followed by: "of this paragraph (c)(1)"."""
    outer = _nested(text, found.start("word"), nesting)
    if outer is not None and outer.found[0].kind == "place" and outer.found[0].steps:
        return Parsed(tuple(ref.inside(outer.found[0]) for ref in parsed.found), outer.end)
    return _all(parsed, found.end(), within=own)


def _own(word: str) -> str:
    """The kind of place that "this ..." means; "" when the word is none."""
    canonical = WORDS.get(word, "")
    if word in {"part", "article"}:
        return word
    if canonical and canonical not in {"comment", "form", "table", "figure", "step", "book", "title"}:
        return canonical
    return "document" if word in signs.OWN_DOCUMENT else ""


def _holds(outer: Reference, word: str, preposition: str) -> bool:
    """Whether what follows "of" can hold a place of that kind."""
    if outer.kind == "document":
        return True
    if outer.kind != "place" or (preposition == "in" and not outer.steps):
        return False
    if preposition == "in":
        return word in _PATH_WORDS or outer.steps[-1].word in APPENDED
    return bool(outer.steps) or bool(outer.within)


def _all(parsed: Parsed, end: int, *, within: str = "", outside: str = "") -> Parsed:
    return Parsed(
        tuple(replace(r, within=within or r.within, outside=outside or r.outside, plain=False) for r in parsed.found),
        end,
    )


def _followed_by_name(text: str, parsed: Parsed) -> Parsed:
    """ "Article 263 TFEU"."""
    first = parsed.found[0]
    if first.outside or first.kind != "place" or not first.steps or first.steps[-1].word not in {"article", "section"}:
        return parsed
    found = signs.ACRONYM.match(text, parsed.end)
    if found is None or found["name"] in {"AND", "OR", "NOT"}:
        return parsed
    return _all(parsed, found.end(), outside=" ".join(found["name"].split()))


def _of_name(text: str, parsed: Parsed, at: int, preposition: str, *, with_article: bool) -> Parsed:
    """ "of the Consumer Credit Act", "of the act": another document."""
    found = signs.SMALL_NAME.match(text, at)
    if found is not None and with_article and preposition == "of":
        return _all(parsed, found.end(), outside=found[0])
    name = document_named(text, at)
    if name is None or (preposition != "of" and not with_article):
        return parsed
    return _all(parsed, at + len(name), outside=" ".join(name.split()))
