"""References in prose: "section 4.2", "§§ 12.9(a)(1) and (2)(i)", "paragraphs (a) through (c) of this section",
"Article 6(1), point (f)", "Appendix B to this part", "comment 2(c)-1", "PEP 8", "the table above".

Read from left to right in one pass; a reference is never longer than a few hundred letters, so time is linear.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from nightly.references import signs
from nightly.references.heads import head
from nightly.references.items import PATH_WORDS
from nightly.references.model import Parsed, Reference
from nightly.references.numbering import APPENDED, WORDS
from nightly.references.outside import document_named

_MAX_NESTING = 4
_CHAINED = {
    "appendix", "annex", "schedule", "supplement", "part", "chapter", "article", "section", "document", "title",
    "subpart", "attachment", "exhibit", "paragraph", "policy",
}  # fmt: skip


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
    parsed = head(text, found)
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


# -- what belongs to it -----------------------------------------------------------------------------------------


def _chained(text: str, parsed: Parsed, nesting: int) -> Parsed:
    """ "Article 6(1), point (f)", "Appendix A, Part I, Paragraph B", "RFC 2119, section 3": the last place is meant."""
    outer = parsed.found[-1]
    word = outer.steps[-1].word if outer.steps else outer.kind
    if outer.kind not in {"place", "document"} or word not in _CHAINED or nesting >= _MAX_NESTING:
        return parsed
    chain = signs.AFTER_DOCUMENT if outer.kind == "document" or word == "policy" else signs.CHAIN
    gap = chain.match(text, parsed.end)
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
    inner = head(text, found)
    if inner is None or not _narrower(outer, inner.found[0]):
        return parsed
    if outer.kind == "document" and (gap := signs.OF.match(text, inner.end)) and gap["word"] == "of":
        return parsed  # "PEP 8, section 2 of RFC 77"
    inner = _chained(text, inner, nesting + 1)
    start = outer.start
    joined = [replace(ref.inside(outer), start=start if n == 0 else ref.start) for n, ref in enumerate(inner.found)]
    return Parsed((*parsed.found[:-1], *joined), inner.end)


_ORDER = (
    *("document", "policy", "title", "part", "subpart", "chapter", "appendix", "section", "article", "paragraph"),
    "point",
)


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
    if one not in _ORDER or other not in _ORDER or _ORDER.index(one) >= _ORDER.index(other):
        return False
    # "§ 12.4(a), paragraph (b)" are two, "Article 6, paragraph 1" and "Article 6(1), point (f)" one.
    last = outer.steps[-1] if outer.steps else None
    return other != "paragraph" or last is None or not (last.path or (one == "section" and inner.steps[-1].number))


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
        within = "that document" if own in {"document", "policy"} else "that"
        return _all(parsed, found.end(), within=within) if own else parsed
    outer = _nested(text, at, nesting)
    if outer is not None and _holds(outer.found[0], word, preposition):
        return _inside(parsed, outer)
    if needs:
        return None
    return _of_name(text, parsed, at, preposition, with_article=gap["the"] is not None)


def _inside(parsed: Parsed, outer: Parsed) -> Parsed:
    """All that was named as parts of what follows; the words of the last one go on to the end."""
    joined = [ref.inside(outer.found[0]) for ref in parsed.found]
    joined[-1] = replace(joined[-1], end=outer.end)
    return Parsed(tuple(joined), outer.end)


def _own_place(text: str, parsed: Parsed, found: re.Match[str], own: str, nesting: int) -> Parsed:
    """ "of this section", and what that may be followed by: "of this paragraph (c)(1)"."""
    outer = _nested(text, found.start("word"), nesting)
    if outer is not None and outer.found[0].kind == "place" and outer.found[0].steps:
        return _inside(parsed, outer)
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
        return word in PATH_WORDS or outer.steps[-1].word in APPENDED
    return bool(outer.steps) or bool(outer.within)


def _all(parsed: Parsed, end: int, *, within: str = "", outside: str = "") -> Parsed:
    """All that was named as parts of one place; the name of another document belongs to the words of the last one."""
    found = [replace(r, within=within or r.within, outside=outside or r.outside, plain=False) for r in parsed.found]
    if outside:
        found[-1] = replace(found[-1], end=end)
    return Parsed(tuple(found), end)


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
