"""What a reference begins with: a word and its numbers, a comment, a series of documents, a code of law."""

import re
from dataclasses import replace

from nightly.references import signs
from nightly.references.items import MAX_ITEMS, items
from nightly.references.model import Parsed, Reference, Step
from nightly.references.numbering import WORDS, normal, tokens
from nightly.references.ranges import MAX_MEMBERS

_ABBREVIATED = frozenset({"sec", "secs", "sect", "art", "arts", "para", "paras", "fig", "figs", "app"})


def head(text: str, found: re.Match[str]) -> Parsed | None:
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
    if found["word"] and text[found.end("word")] == "." and found["word"].lower() not in _ABBREVIATED:
        return None  # the end of a sentence: "under this policy. A member ..."
    word = "section" if found["sign"] else WORDS[found["word"].lower()]
    if word == "comment":
        return _comments(text, start, at)
    many = found["sign"] == "§§" if found["sign"] else found["word"].lower().endswith("s")
    return items(text, start, at, word, many=many, small=bool(found["word"]) and found["word"][0].islower())


def _comments(text: str, start: int, at: int) -> Parsed | None:
    """ "comments 4(a)-2 through -4 and 5(b)-1.ii": places of a commentary, by paragraph and count."""
    found: list[Reference] = []
    end, joined = start, ""
    while len(found) < MAX_ITEMS:
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
    while len(out) < MAX_ITEMS:
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
    parsed = items(text, found.start(), found.end(), "section", many=True, small=False)
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
