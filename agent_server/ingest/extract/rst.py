"""reStructuredText: the source text stays as it is written; a scanner finds sections, tables, code and lists.

The scanner is small on purpose. Docutils would resolve the markup and lose the place of every letter; a test compares
the sections that both find.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime

from agent_server.ingest.extract.shared import Span, dated_note, is_true, make_document, parse_date
from agent_server.ingest.hygiene import clean, decode
from agent_server.models import BlockKind, Document, Rejected, SourceFile

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*[ \t]*")
_NO_TITLE = re.compile(r"(?:[-*+•‣⁃] |\.\. |\.\.$|__ |:[^:\s][^:]*:(?: |$)|\| |>>> |\+[-=]+\+)")
_HEADER_LINE = re.compile(r"[A-Z][A-Za-z]*(?:-[A-Za-z]+)*:(?:[ \t]|$)")
_FIELD = re.compile(r"\s*:(?P<name>[^:\s`](?:[^:`]|:(?!\s))*):(?:\s+(?P<value>.*))?$")
_ITEM = re.compile(r"\s*(?:[-*+•‣⁃]|\(?(?:\d{1,3}|[a-zA-Z]|[ivxlcIVXLC]{1,5}|#)[.)])\s+(?=\S)")
_DIRECTIVE = re.compile(r"\s*\.\. (?:\|[^|]+\| )?(?P<name>[\w:+.-]+)::")
_EXPLICIT = re.compile(r"\s*\.\.(?: |$)")
_GRID = re.compile(r"\s*\+(?:[-=]+\+)+\s*")
_SIMPLE = re.compile(r"\s*=+(?: +=+)+\s*")
_CODE_DIRECTIVES = """
    code code-block sourcecode highlight parsed-literal literalinclude math doctest testcode prompt raw
"""
_CODE = frozenset(_CODE_DIRECTIVES.split())
_TABLES = frozenset({"list-table", "csv-table", "table"})
#: Inline markup, one alternative per kind; what is inside is never looked at again (`__init__` keeps its lines).
_MARKUP = re.compile(
    r"``(?P<literal>.+?)``"
    r"|(?::[\w:+.-]+:)?`(?P<named>[^`<]*?[^`<\s])\s*<[^`>]*>`_{0,2}"
    r"|(?::[\w:+.-]+:)?`(?P<role>[^`]+)`_{0,2}"
    r"|\*\*(?P<strong>[^*]+)\*\*"
    r"|(?<![\w*])\*(?P<emphasis>[^*\s][^*]*)\*(?![\w*])"
    r"|\|(?P<substitute>[^|\s][^|]*)\|_?"
    r"|(?<![\w_])(?P<reference>[^\W_](?:[\w.-]*[^\W_])?)__?(?![\w_])"
    r"|\\(?P<escaped>.)"
)


@dataclass(frozen=True, slots=True)
class Title:
    """A section title: its lines `first` to `last` (numbers from 0, adornments included)."""

    first: int
    last: int
    level: int
    text: str


def plain_title(text: str) -> str:
    """A title as the reader sees it, without inline markup."""
    shown = _MARKUP.sub(lambda m: next(group for group in m.groups() if group is not None), text)
    return " ".join(shown.split())


def scan_titles(lines: list[str]) -> list[Title]:
    """Section titles with their levels, by the order in which the styles of adornment first appear."""
    titles: list[Title] = []
    styles: list[tuple[str, bool]] = []
    index = 0
    while index < len(lines):
        found = _title_at(lines, index)
        if found is None:
            index += 1
            continue
        last, style, text = found
        if style not in styles:
            styles.append(style)
        titles.append(Title(index, last, styles.index(style) + 1, plain_title(text)))
        index = last + 1
    return titles


def _title_at(lines: list[str], index: int) -> tuple[int, tuple[str, bool], str] | None:
    """The last line, the style and the text of a title that starts on this line."""
    line = lines[index]
    above = lines[index - 1].strip() if index else ""
    if _ADORNMENT.fullmatch(line) and index + 2 < len(lines):
        text, under = lines[index + 1], lines[index + 2].rstrip()
        if text.strip() and under == line.rstrip() and len(under) >= min(4, len(text.strip())):
            return index + 2, (under[0], True), text.strip()
        return None
    if not line.strip() or line[0].isspace() or above or index + 1 >= len(lines) or _NO_TITLE.match(line):
        return None
    under = lines[index + 1].rstrip()
    if not _ADORNMENT.fullmatch(under) or (len(under) < len(line.rstrip()) and len(under) < 4):
        return None
    return index + 1, (under[0], False), line.strip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


@dataclass(slots=True)
class _Scanner:
    """Walks the lines between titles and says which stretch is what."""

    lines: list[str]
    spans: list[tuple[BlockKind, int, int]] = field(default_factory=list)  #: kind, first line, line after the last

    def scan(self, first: int, last: int) -> None:
        """Blocks of the lines `first` up to but without `last`."""
        at = first
        while at < last:
            at = self._next(at, last) if self.lines[at].strip() else at + 1

    def _indented_end(self, at: int, last: int, indent: int) -> int:
        """The line after all that is blank or deeper than `indent`, from `at` on."""
        while at < last and (not self.lines[at].strip() or _indent(self.lines[at]) > indent):
            at += 1
        return at

    def _group_end(self, at: int, last: int) -> int:
        while at < last and self.lines[at].strip():
            at += 1
        return at

    def _add(self, kind: BlockKind, first: int, end: int) -> int:
        if end > first:
            self.spans.append((kind, first, end))
        return end

    def _next(self, at: int, last: int) -> int:
        line = self.lines[at]
        directive = _DIRECTIVE.match(line)
        name = directive["name"].lower() if directive else ""
        if name in _CODE or name in _TABLES:
            end = self._indented_end(at + 1, last, _indent(line))
            return self._add("code" if name in _CODE else "table", at, end)
        if _GRID.fullmatch(line):
            return self._add("table", at, self._group_end(at, last))
        if _SIMPLE.fullmatch(line):
            return self._add("table", at, self._simple_end(at, last))
        end = self._group_end(at, last)
        if line.lstrip().startswith(">>> "):
            return self._add("code", at, end)
        return self._group(at, end, last)

    def _simple_end(self, at: int, last: int) -> int:
        """A simple table ends at the border that a blank line follows; it may hold blank lines itself."""
        for index in range(at + 1, last):
            closes = index + 1 >= last or not self.lines[index + 1].strip()
            if closes and _SIMPLE.fullmatch(self.lines[index]):
                return index + 1
        return self._group_end(at, last)

    def _group(self, at: int, end: int, last: int) -> int:
        """Lines without blank ones between: items, fields, terms or a paragraph; then code if "::" ends them."""
        explicit = _EXPLICIT.match(self.lines[at]) is not None
        first = at
        indent = _indent(self.lines[at])
        while first < end:
            kind, until = self._part(first, end, indent, explicit)
            self._add(kind, first, until)
            first = until
        if explicit or not self.lines[end - 1].rstrip().endswith("::"):
            return end
        return self._literal(at, end, last)

    def _part(self, first: int, end: int, indent: int, explicit: bool) -> tuple[BlockKind, int]:
        line = self.lines[first]
        if explicit:
            until = first + 1
            while until < end and not _EXPLICIT.match(self.lines[until]):
                until += 1
            return "paragraph", until
        own = _indent(line)
        if _FIELD.match(line) or _ITEM.match(line):
            until = first + 1
            while until < end and (_indent(self.lines[until]) > own and not self._starts_item(until)):
                until += 1
            return ("definition" if _FIELD.match(line) else "list_item"), until
        if first + 1 < end and _indent(self.lines[first + 1]) > own:
            until = first + 1
            while until < end and _indent(self.lines[until]) > own:
                until += 1
            return "definition", until
        until = first + 1
        while until < end and not (_indent(self.lines[until]) < indent and self._starts_item(until)):
            if until + 1 < end and _indent(self.lines[until]) == own < _indent(self.lines[until + 1]):
                break
            until += 1
        return "paragraph", until

    def _starts_item(self, at: int) -> bool:
        return _ITEM.match(self.lines[at]) is not None

    def _literal(self, at: int, end: int, last: int) -> int:
        """The literal block after a group that ends with "::"."""
        tail = self.lines[end - 1]
        item = max((i for i in range(at, end) if self._starts_item(i)), default=None)
        base = _indent(tail) if item is None else len(_ITEM.match(self.lines[item])[0])  # type: ignore[index]
        base = min(base, _indent(tail)) if item != end - 1 else base
        start = end
        while start < last and not self.lines[start].strip():
            start += 1
        if start < last and _indent(self.lines[start]) > base:
            return self._add("code", start, self._indented_end(start, last, base))
        return end


def _header(lines: list[str]) -> tuple[dict[str, str], int]:
    """RFC 822 lines at the top, as PEPs have them, and the number of lines; nothing unless there is a title."""
    values: dict[str, str] = {}
    name = ""
    for index, line in enumerate(lines):
        if not line.strip():
            return (values, index) if "Title" in values and len(values) > 1 else ({}, 0)
        if _HEADER_LINE.match(line):
            name, _, value = line.partition(":")
            values[name] = value.strip()
        elif name and line[0].isspace():
            values[name] = f"{values[name]} {line.strip()}"
        else:
            break
    return {}, 0


def _docinfo(lines: list[str], titles: list[Title]) -> dict[str, str]:
    """The field list at the top of the document, before or right after the title."""
    at = titles[0].last + 1 if titles and not any(map(_FIELD.match, lines[: titles[0].first])) else 0
    values: dict[str, str] = {}
    name = ""
    for line in lines[at:]:
        found = _FIELD.match(line)
        if found and not line[0].isspace():
            name = found["name"]
            values[name] = (found["value"] or "").strip()
        elif name and line.strip() and line[0].isspace():
            values[name] = f"{values[name]} {line.strip()}".strip()
        elif values or (line.strip() and not _EXPLICIT.match(line)):
            break
    return values


def _pep_date(value: str) -> str:
    """`13-Jun-2000` as `2000-06-13`; anything else as it is."""
    try:
        return datetime.strptime(value.strip(), "%d-%b-%Y").date().isoformat()
    except ValueError:
        return value


def extract_rst(file: SourceFile) -> Document | Rejected:
    """reStructuredText as it is written.

    A PEP header or a field list at the top becomes metadata; `title`, `date` (or `Created`) and `retired` in it are
    understood. The fields stay in the text.
    """
    text, notes = clean(decode(file.data))
    lines = text.split("\n")
    header, header_end = _header(lines)
    titles = [t for t in scan_titles(lines) if t.first >= header_end]
    scanner = _Scanner(lines)
    at = header_end
    if header_end:
        scanner.spans.append(("paragraph", 0, header_end))
    for title in titles:
        scanner.scan(at, title.first)
        at = title.last + 1
    scanner.scan(at, len(lines))

    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    spans = [Span(kind, starts[first], min(starts[end], len(text))) for kind, first, end in scanner.spans]
    spans += [Span("heading", starts[t.first], min(starts[t.last + 1], len(text)), t.level, t.text) for t in titles]
    values = header or _docinfo(lines, titles)
    small = {key.lower(): value for key, value in values.items()}
    raw_date = small.get("date") or small.get("created")
    dated = parse_date(_pep_date(raw_date)) if raw_date else None
    if raw_date and dated is None:
        notes += (dated_note("date", raw_date),)
    name = small.get("title", "")
    if name and small.get("pep"):
        name = f"PEP {small['pep']}: {name}"
    return make_document(
        file,
        text,
        spans,
        title=name,
        dated=dated,
        retired=is_true(small.get("retired", False)),
        metadata={key: value for key, value in values.items() if key.lower() not in {"title", "retired"}},
        notes=notes,
    )
