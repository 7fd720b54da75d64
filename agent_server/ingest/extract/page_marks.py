"""Links and anchors of a page, carried through its reading as letters that no text holds.

The reader of a page tidies, joins and reorders text many times before its offsets are known. So the places are written
into the tree as noncharacters of Unicode, travel with the text, and are lifted out of it at the end; without them the
text is the same letter by letter.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias

from lxml import etree

from agent_server.ingest.extract.shared import Span
from agent_server.models import Mark

_Node: TypeAlias = etree._Element

_OPEN, _CLOSE, _ANCHOR = "\ufdd0", "\ufdd1", "\ufdd2"
_DIGITS = "\ufde0\ufde1\ufde2\ufde3\ufde4\ufde5\ufde6\ufde7\ufde8\ufde9"
_ANY = re.compile("[\ufdd0-\ufdef]+")
_ONE = re.compile(f"[{_OPEN}{_ANCHOR}][{_DIGITS}]+|{_CLOSE}")
_BLANKS = "[ \t\n\u00a0]"
_BEFORE_BLANKS = re.compile(f"((?:[{_OPEN}{_ANCHOR}][{_DIGITS}]+)+)({_BLANKS}+)")
_AFTER_BLANKS = re.compile(f"(?<!{_BLANKS})({_BLANKS}+)({_CLOSE}+)")
_BETWEEN = re.compile("[ ]([\ufdd0-\ufdef]+)[ ]")
_FIRST = re.compile("\\A([\ufdd0-\ufdef]+)[ ]")
_LAST = re.compile("[ ]([\ufdd0-\ufdef]+)\\Z")
_MAX_CHARS = 2_000  #: of an address or a name; longer ones are data


def visible(text: str) -> str:
    """`text` without marks."""
    return _ANY.sub("", text)


def alone(text: str | None) -> str:
    """The marks of `text` without its letters."""
    return "".join(_ANY.findall(text or ""))


def outside_blanks(text: str) -> str:
    """`text` with blanks moved out of links, so that they meet the blanks around them."""
    if _ANY.search(text) is None:
        return text
    return _AFTER_BLANKS.sub(r"\2\1", _BEFORE_BLANKS.sub(r"\2\1", text))


def one_blank(line: str) -> str:
    """A tidied line in which marks do not stand between two blanks, nor a blank behind or before them at its ends."""
    if _ANY.search(line) is None:
        return line
    return _LAST.sub(r"\1", _FIRST.sub(r"\1", _BETWEEN.sub(r" \1", line)))


def _number(sign: str, number: int) -> str:
    return sign + "".join(_DIGITS[int(digit)] for digit in str(number))


def write(body: _Node, blocks: frozenset[str]) -> list[str]:
    """Write links and anchors into the tree below `body`; what their numbers stand for. Marks of others go.

    A link around whole blocks is not marked.
    """
    values: list[str] = []
    around = _holding(body, blocks)
    for node in body.iter(etree.Element):
        if node.text and _ANY.search(node.text):
            node.text = _legal(visible(node.text))
        if node.tail and _ANY.search(node.tail):
            node.tail = _legal(visible(node.tail))
    for node in list(body.iter(etree.Element)):
        name = node.get("id") or (node.get("name") if node.tag == "a" else None) or ""
        target = (node.get("href") or "").strip() if node.tag == "a" and node not in around else ""
        with suppress(ValueError):  # what entities stand for may be read, and not be written again
            if 0 < len(target) <= _MAX_CHARS:
                _enclose(node, _number(_OPEN, len(values)))
                values.append(target)
            if 0 < len(name) <= _MAX_CHARS:
                node.text = _number(_ANCHOR, len(values)) + (node.text or "")
                values.append(name)
    return values


def _legal(text: str) -> str:
    """`text` as the tree takes it: letters that entities brought in and XML does not know are gone."""
    return "".join(letter for letter in text if letter >= " " or letter in "\t\n\r")


def _enclose(node: _Node, opening: str) -> None:
    if len(node):
        node[-1].tail = (node[-1].tail or "") + _CLOSE
        node.text = opening + (node.text or "")
    else:
        node.text = opening + (node.text or "") + _CLOSE


def _holding(body: _Node, blocks: frozenset[str]) -> set[_Node]:
    """Links that hold blocks: found from the blocks upwards, each element looked at once."""
    seen: set[_Node] = set()
    for node in body.iter(etree.Element):
        if node.tag not in blocks:
            continue
        above = node.getparent()
        while above is not None and above not in seen:
            seen.add(above)
            above = above.getparent()
    return {node for node in seen if node.tag == "a"}


def lift(text: str, spans: Sequence[Span], values: Sequence[str]) -> tuple[str, list[Span], tuple[Mark, ...]]:
    """Text and spans without marks, and the marks in order. An anchor stands for the block that it is in."""
    parts: list[str] = []
    ends: list[int] = []  # where each run of marks ends in `text`
    gone: list[int] = []  # how many letters have gone up to there
    at = removed = 0
    raw: list[tuple[str, int]] = []
    for run in _ANY.finditer(text):
        parts.append(text[at : run.start()])
        raw += [(found[0], run.start() - removed) for found in _ONE.finditer(run[0])]
        at = run.end()
        removed += len(run[0])
        ends.append(at)
        gone.append(removed)
    parts.append(text[at:])
    lifted = "".join(parts)

    def moved(offset: int) -> int:
        run = bisect_left(ends, offset + 1) - 1
        return offset - (gone[run] if run >= 0 else 0)

    new_spans = [
        replace(s, start=moved(s.start), end=moved(s.end), title=visible(s.title) if s.title else s.title)
        for s in spans
    ]
    return lifted, new_spans, _marks(raw, lifted, new_spans, values)


def _marks(raw: list[tuple[str, int]], text: str, spans: Sequence[Span], values: Sequence[str]) -> tuple[Mark, ...]:
    found: list[Mark] = []
    opened: tuple[int, str] | None = None
    starts = [span.start for span in spans]
    for sign, at in raw:
        if sign[0] == _CLOSE:
            if opened is not None and text[opened[0] : at].strip():
                found.append(Mark("link", opened[0], at, opened[1]))
            opened = None
            continue
        value = values[int("".join(str(_DIGITS.index(letter)) for letter in sign[1:]))]
        if sign[0] == _OPEN:
            opened = at, value
            continue
        block = bisect_left(starts, at + 1) - 1
        if block >= 0 and starts:
            start, end = spans[block].start, spans[block].end
            first = at if start < at < end and text[at:end].strip() else start  # at its end, it stands for all of it
            if text[first:end].strip():
                found.append(Mark("anchor", first, end, value))
    return tuple(sorted(found, key=lambda mark: (mark.start, mark.end)))
