"""What styles.xml and numbering.xml say about a paragraph: heading or not, hidden or not, which number before it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from agent_server.ingest.extract.docx_xml import attribute, child, name, number, switch, value
from agent_server.ingest.package import Node

_HEADING = re.compile(r"heading\s*([1-9])", re.I)
_LEVELS = 9
_BODY_LEVEL = 9  #: the outline level that means "no heading"
_MAX_VALUE = 100_000  #: of a counter that is written out
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Style:
    name: str
    based_on: str
    outline: int | None
    num: str
    num_level: int | None
    hidden: bool | None


@dataclass(slots=True)
class Styles:
    """Styles by id. The ids are in the language of the program that wrote them; the built-in names are English."""

    known: dict[str, _Style] = field(default_factory=dict)
    default: str = ""  #: id of the style of paragraphs that name none

    @classmethod
    def read(cls, nodes: Iterable[Node]) -> "Styles":
        out = cls()
        for node in nodes:
            if name(node) != "w:style":
                continue
            about = child(node, "w:pPr")
            key = attribute(node, "styleId")
            out.known[key] = _Style(
                name=value(node, "w:name"),
                based_on=value(node, "w:basedOn"),
                outline=number(about, "w:outlineLvl"),
                num=value(about, "w:numPr", "w:numId"),
                num_level=number(about, "w:numPr", "w:ilvl"),
                hidden=switch(node, "w:rPr", "w:vanish"),
            )
            if attribute(node, "type") == "paragraph" and attribute(node, "default").lower() in {"1", "true", "on"}:
                out.default = key
        return out

    def _chain(self, key: str) -> Iterator[tuple[str, _Style]]:
        seen: set[str] = set()
        while key in self.known and key not in seen:
            seen.add(key)
            yield key, self.known[key]
            key = self.known[key].based_on

    def level(self, paragraph: Node | None) -> int:
        """The heading level of a paragraph with these properties (w:pPr), 0 for what is no heading."""
        direct = number(paragraph, "w:outlineLvl")
        if direct is not None:
            return direct + 1 if 0 <= direct < _BODY_LEVEL else 0
        key = value(paragraph, "w:pStyle") or self.default
        if key not in self.known:
            return _named_level(key)
        for _, style in self._chain(key):
            if style.outline is not None:
                return style.outline + 1 if 0 <= style.outline < _BODY_LEVEL else 0
            if level := _named_level(style.name):
                return level
        return 0

    def is_title(self, paragraph: Node | None) -> bool:
        key = value(paragraph, "w:pStyle")
        return (self.known[key].name if key in self.known else key).strip().lower() == "title"

    def hidden(self, key: str) -> bool | None:
        return next((s.hidden for _, s in self._chain(key) if s.hidden is not None), None)

    def numbering(self, paragraph: Node | None) -> tuple[str, int | None, str]:
        """Number list, level where it is said, and the style that it comes from; "" and "0" are no list."""
        key = value(paragraph, "w:pStyle") or self.default
        num, level = value(paragraph, "w:numPr", "w:numId"), number(paragraph, "w:numPr", "w:ilvl")
        if num:
            return num, level, key
        for style_id, style in self._chain(key):
            if style.num:
                return style.num, style.num_level if level is None else level, style_id
        return "", level, key


def _named_level(style_name: str) -> int:
    found = _HEADING.fullmatch(style_name.strip())
    return int(found[1]) if found else int(style_name.strip().lower() == "title")


@dataclass(frozen=True, slots=True)
class _Level:
    form: str
    text: str
    start: int
    style: str
    legal: bool  #: all numbers in it as 1, 2, 3
    restarts: bool


@dataclass(slots=True)
class Numbering:
    """Counts the items of all lists in the order in which they are asked for."""

    lists: dict[str, dict[int, _Level]] = field(default_factory=dict)  # by abstract id
    nums: dict[str, str] = field(default_factory=dict)  # number list -> abstract id
    starts: dict[tuple[str, int], int] = field(default_factory=dict)  # of a number list that begins anew
    changed: dict[tuple[str, int], _Level] = field(default_factory=dict)
    counters: dict[str, list[int | None]] = field(default_factory=dict)

    @classmethod
    def read(cls, nodes: Iterable[Node]) -> "Numbering":
        out = cls()
        linked: dict[str, str] = {}
        links: dict[str, str] = {}
        for node in nodes:
            if name(node) == "w:abstractNum":
                key = attribute(node, "abstractNumId")
                out.lists[key] = {_index(part): _level(part) for part in node if name(part) == "w:lvl"}
                if link := value(node, "w:styleLink"):
                    linked[link] = key
                if link := value(node, "w:numStyleLink"):
                    links[key] = link
            elif name(node) == "w:num":
                num = attribute(node, "numId")
                out.nums[num] = value(node, "w:abstractNumId")
                for part in node:
                    start, level = number(part, "w:startOverride"), child(part, "w:lvl")
                    if start is not None:
                        out.starts[num, _index(part)] = start
                    if level is not None:
                        out.changed[num, _index(part)] = _level(level)
        out.nums = {num: linked.get(links.get(key, ""), key) for num, key in out.nums.items()}
        return out

    def label(self, num: str, level: int | None, style: str) -> tuple[str, int]:
        """What stands before the next item of a list ("4.2", "a)", "-" for a bullet, "" for nothing) and its level."""
        key = self.nums.get(num, "")
        levels = self.lists.get(key, {})
        if level is None:
            level = next((i for i, known in levels.items() if style and known.style == style), 0)
        level = min(max(level, 0), _LEVELS - 1)
        about = self._about(num, level)
        if about is None:
            return "-", level
        counts = self.counters.setdefault(key, [None] * _LEVELS)
        override = self.starts.pop((num, level), None)
        before = counts[level]
        counts[level] = override if override is not None else about.start if before is None else before + 1
        for deeper in range(level + 1, _LEVELS):
            below = self._about(num, deeper)
            if below is None or below.restarts:
                counts[deeper] = None
        if about.form == "bullet":
            return "-", level
        text = about.text
        for i in range(_LEVELS):
            if f"%{i + 1}" in text:
                known = self._about(num, i)
                count = counts[i]
                shown = count if count is not None else known.start if known else 1
                form = "decimal" if about.legal or known is None else known.form
                text = text.replace(f"%{i + 1}", _written(shown, form))
        return text.strip(), level

    def _about(self, num: str, level: int) -> _Level | None:
        return self.changed.get((num, level)) or self.lists.get(self.nums.get(num, ""), {}).get(level)


def _index(node: Node) -> int:
    try:
        return min(max(int(attribute(node, "ilvl")), 0), _LEVELS - 1)
    except ValueError:
        return 0


def _level(node: Node) -> _Level:
    start = number(node, "w:start")
    return _Level(
        form=value(node, "w:numFmt") or "decimal",
        text=value(node, "w:lvlText"),
        start=1 if start is None else start,
        style=value(node, "w:pStyle"),
        legal=bool(switch(node, "w:isLgl")),
        restarts=number(node, "w:lvlRestart") != 0,
    )


def _written(count: int, form: str) -> str:
    count = min(max(count, 0), _MAX_VALUE)
    if form == "none":
        return ""
    if form == "decimalZero":
        return f"{count:02d}"
    if form in {"lowerLetter", "upperLetter"} and 1 <= count <= 26 * 8:
        letters = chr(ord("a") + (count - 1) % 26) * ((count - 1) // 26 + 1)
        return letters.upper() if form == "upperLetter" else letters
    if form in {"lowerRoman", "upperRoman"} and 1 <= count < 4000:
        letters = ""
        for worth, sign in _ROMAN:
            letters += sign * (count // worth)
            count %= worth
        return letters.upper() if form == "upperRoman" else letters
    return str(count)
