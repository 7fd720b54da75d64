"""Plain text: blocks by blank lines, headings by their looks."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from agent_server.ingest.extract.headings import (
    MAX_CHARS,
    LineHeading,
    is_list_item,
    levels,
    looks_like_title,
    read_heading,
)
from agent_server.ingest.extract.shared import Span, make_document, parse_date, readable_name
from agent_server.ingest.hygiene import clean, decode
from agent_server.models import BlockKind, Document, Rejected, SourceFile

_UNDERLINE = re.compile(r"\s*([=\-~^*#_+])\1{2,}\s*")
_RULE_ROW = re.compile(r"\s*[-=]{2,}(?:\s+[-=]{2,})+\s*")
_PIPE_RULE = re.compile(r"[\s:|+-]*")
_COLUMNS = re.compile(r"[^\s.!?](?: {2,}|\t+)\S|^\s*\|.*\|\s*$")
_DATE_LINE = re.compile(r"^Dated?:\s*(\d{4}-\d{2}-\d{2})\s*$", re.MULTILINE)
_HEAD_LINES = 30
_NARROW = 0.75  #: share of the usual width below which a line has been ended by its author


@dataclass(frozen=True, slots=True)
class Line:
    start: int
    end: int
    text: str


def groups_of_lines(text: str) -> list[list[Line]]:
    """Runs of lines that are not blank."""
    groups: list[list[Line]] = [[]]
    at = 0
    for raw in text.split("\n"):
        if raw.strip():
            groups[-1].append(Line(at, at + len(raw), raw))
        elif groups[-1]:
            groups.append([])
        at += len(raw) + 1
    return groups if groups[-1] else groups[:-1]


def _underlined(group: list[Line]) -> int:
    """How many lines at the start of the group are an underlined heading, its line included; 0 if none."""
    for index, line in enumerate(group[1:3], start=1):
        if not _UNDERLINE.fullmatch(line.text):
            continue
        titles = [above.text.strip() for above in group[:index]]
        width = max(map(len, titles))
        drawn = len(line.text.strip())
        fits = 0.5 * width <= drawn <= 2 * width + 2 and width <= MAX_CHARS
        return index + 1 if fits and not any(is_list_item(t) and len(titles) > 1 for t in titles) else 0
    return 0


def _is_rule(line: str) -> bool:
    """Whether a line only rules a table. Without a pattern of neighbouring stars, whose time would grow cubically."""
    if _RULE_ROW.fullmatch(line):
        return True
    return 0 <= line.find("-") < line.rfind("|") and _PIPE_RULE.fullmatch(line) is not None


def _is_table(group: list[Line]) -> bool:
    if len(group) < 2:
        return False
    if any(_is_rule(line.text) for line in group):
        return True
    bodies = [re.sub(r"^\s*\S{1,5}\s+", "", line.text) if is_list_item(line.text) else line.text for line in group]
    return sum(1 for body in bodies if _COLUMNS.search(body.strip())) >= max(2, 0.8 * len(group))


def _body(group: list[Line]) -> list[Span]:
    """A group without heading as table, list items and paragraphs."""
    if not group:
        return []
    if _is_table(group):
        return [Span("table", group[0].start, group[-1].end)]
    cuts = [0] + [i for i, line in enumerate(group) if i and is_list_item(line.text)] + [len(group)]
    spans: list[Span] = []
    for first, last in pairwise(cuts):
        kind: BlockKind = "list_item" if is_list_item(group[first].text) else "paragraph"
        spans.append(Span(kind, group[first].start, group[last - 1].end))
    return spans


class _Reader:
    """Walks the groups once and collects headings (whose levels are known only at the end) and bodies."""

    def __init__(self, text: str) -> None:
        self.groups = groups_of_lines(text)
        widths = sorted(len(line.text) for group in self.groups for line in group)
        self.width = widths[int(len(widths) * 0.9)] if widths else 0
        self.found: list[tuple[Span, LineHeading]] = []
        self.bodies: list[Span] = []

    def _heading(self, lines: list[Line], heading: LineHeading, titles: list[Line] | None = None) -> None:
        title = " ".join(" ".join(line.text for line in titles or lines).split())
        self.found.append((Span("heading", lines[0].start, lines[-1].end, 1, title), heading))

    def read(self, earlier: list[LineHeading]) -> list[Span]:
        index = 0
        while index < len(self.groups):
            index += self._group(index)
        own = [heading for _, heading in self.found]
        for (span, _), level in zip(self.found, levels([*earlier, *own])[len(earlier) :], strict=True):
            self.bodies.append(Span("heading", span.start, span.end, level, span.title))
        return self.bodies

    def _group(self, index: int) -> int:
        """Take in the group at `index`; how many groups were used up."""
        group = self.groups[index]
        taken = _underlined(group)
        if taken:
            mark = group[taken - 1].text.strip()[0]
            self._heading(group[:taken], LineHeading(f"under:{mark}", "", strong=True), group[: taken - 1])
            self.bodies += _body(group[taken:])
            return 1
        heading = None if _is_table(group) else read_heading(group[0].text)
        if heading is None:
            self.bodies += _body(group)
            return 1
        if heading.needs_title:
            return self._with_title(index, heading)
        taken = self._length(index, heading)
        if taken:
            if heading.rank == "caps" and index == 0:
                heading = replace(heading, rank="title")
            self._heading(group[:taken], heading)
        self.bodies += _body(group[taken:])
        return 1

    def _with_title(self, index: int, heading: LineHeading) -> int:
        """ "Article 6" alone on its line: the title stands on the next one, perhaps after a blank line."""
        group = self.groups[index]
        if len(group) > 1 and self._names(group[1].text):
            self._heading(group[:2], heading)
            self.bodies += _body(group[2:])
            return 1
        if len(group) == 1:
            following = self.groups[index + 1] if index + 1 < len(self.groups) else []
            if len(following) == 1 and self._names(following[0].text):
                self._heading([group[0], following[0]], heading)
                return 2
            self._heading(group, heading)
            return 1
        self.bodies += _body(group)
        return 1

    def _names(self, line: str) -> bool:
        """Whether the line below "Article 6" is its title and not a heading, an item or a sentence."""
        other = read_heading(line)
        return looks_like_title(line) and not is_list_item(line) and (other is None or other.rank == "caps")

    def _length(self, index: int, heading: LineHeading) -> int:
        """How many lines of the group are the heading; 0 when it is only a line of text after all."""
        group = self.groups[index]
        if heading.strong:
            lines = 1
            while lines < len(group) and self._capitals(group[lines].text):
                lines += 1
            shouted = lines == len(group) and lines > 3
            return 0 if shouted else lines
        if len(group) == 1:
            return 0 if self._in_list(index) else 1
        below = group[1].text.lstrip()
        short = len(group[0].text) < _NARROW * max(self.width, 60)
        starts = below[:1].isupper() or is_list_item(below)
        return 1 if short and starts and heading.rank != "num:1" else 0

    def _capitals(self, line: str) -> bool:
        other = read_heading(line)
        return other is not None and other.rank == "caps"

    def _in_list(self, index: int) -> bool:
        """Whether "2. Title" stands between "1. ..." and "3. ...": a list with blank lines, not headings."""
        own = re.match(r"(\d{1,3})[.)]\s", self.groups[index][0].text.strip())
        if own is None:
            return False
        for step in (-1, 1):
            at = index + step
            if 0 <= at < len(self.groups):
                other = re.match(r"(\d{1,3})[.)]\s", self.groups[at][0].text.strip())
                if other and int(other[1]) == int(own[1]) + step:
                    return True
        return False


def _one_of_a_kind(seen: Iterable[LineHeading], found: Iterable[LineHeading]) -> list[LineHeading]:
    """Of `found` the first of each rank that `seen` lacks: levels follow from the order in which ranks appear."""
    known = {heading.rank for heading in seen}
    new: dict[str, LineHeading] = {}
    for heading in found:
        if heading.rank not in known:
            new.setdefault(heading.rank, heading)
    return list(new.values())


def extract_plain(file: SourceFile, earlier: list[LineHeading] | None = None) -> Document | Rejected:
    """Plain text as it is, with blocks and with the headings that can be told by their looks.

    `earlier` are headings of the same text before this piece of it, one of a kind; new kinds are added to it.

    The title is the heading that stands above all others, if there is one; a line "Date: YYYY-MM-DD" among the first
    ones is the document's date.
    """
    text, notes = clean(decode(file.data))
    reader = _Reader(text)
    seen = [] if earlier is None else earlier
    spans = reader.read(seen)
    seen += _one_of_a_kind(seen, (heading for _, heading in reader.found))
    top = [span.title for span in spans if span.kind == "heading" and span.level == 1]
    found = _DATE_LINE.search("\n".join(text.split("\n")[:_HEAD_LINES]))
    return make_document(
        file,
        text,
        spans,
        title=top[0] if len(top) == 1 else readable_name(file.source),
        dated=parse_date(found[1]) if found else None,
        notes=notes,
    )
