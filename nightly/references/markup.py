"""Links that markup makes: Markdown, reStructuredText, and what extraction marked in a page."""

import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from nightly.references.manuscript import Manuscript

MARKDOWN, RST = "text/markdown", "text/x-rst"
#: The page of a PEP or RFC, whoever serves it.
_PAGE_OF_SERIES = re.compile(r"/(pep|rfc)-?0*(\d{1,5})(?:\.html?|\.txt|\.rst)?/?\Z", re.IGNORECASE)
_BLOCK_CHARS = 2_000
_TICKS = re.compile(r"`+")
_INLINE = re.compile(
    r"(?<![!\\])\[(?P<words>[^\[\]\n]{1,300}(?:\n[^\[\]\n]{1,300})?)\]"
    r"\((?P<target>[^()\s]{1,500}(?:\([^()\s]{0,100}\)[^()\s]{0,100})?)(?:[ \n]+[\"'(][^\"')\n]{0,200}[\"')])?\)"
)
_BY_NAME = re.compile(r"(?<![!\\\]])\[(?P<words>[^\[\]\n]{1,300})\]\[(?P<name>[^\[\]\n]{0,200})\]")
_DEFINED = re.compile(r"^[ ]{0,3}\[(?P<name>[^\[\]\n]{1,200})\]:[ \t]*<?(?P<target>[^\s>]{1,500})>?", re.MULTILINE)
_ROLE = re.compile(r"(?<![\w:`]):(?P<role>pep|rfc|ref|doc|numref|any|std:ref|std:doc):`(?P<body>[^`]{1,400})`")
_NAMED = re.compile(r"(?<![\w`:])`(?P<body>[^`]{1,400}[^`\s])`(?P<end>__?)(?![\w`])")
_WORD = re.compile(r"(?<![\w`/.*_<-])(?P<body>[A-Za-z][\w-]{0,80}[A-Za-z0-9])_(?![\w`_])")
_WITH_TARGET = re.compile(r"(?P<words>.*?)\s*<(?P<target>[^<>]+)>\Z", re.DOTALL)
_TARGET = re.compile(
    r"^[ \t]*\.\. _(?P<name>`[^`\n]{1,200}`|(?:[^:\n\\]|\\.){1,200}):[ \t]*"
    r"(?:(?P<value>[^\s][^\n]*)|\n[ \t]+(?P<next>https?:[^\n]+))?$",
    re.MULTILINE,
)
_INLINE_TARGET = re.compile(r"(?<![\w`])_`(?P<name>[^`]{1,200})`")
_ANCHOR_TAG = re.compile(
    r"<(?:a|span|div|h[1-6])[^<>\n]{0,200}?\b(?:id|name)=[\"'](?P<name>[^\"'\n]{1,200})[\"']", re.IGNORECASE
)
_HEADING_ID = re.compile(r"\{#(?P<name>[\w.:-]{1,100})[^{}\n]{0,100}\}[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Pointer:
    """The words `text[start:end]` that lead to a file (a path below the root; "" this one), a document of a series
    ("PEP 8") or a title or label (`name`), and there to a fragment. `sure`: it is certainly meant as a link. One that
    leads out of the collection, to another host say, has none of them.
    """

    start: int
    end: int
    path: str = ""
    series: str = ""
    name: str = ""
    fragment: str = ""
    sure: bool = True

    @property
    def leads_out(self) -> bool:
        return not (self.path or self.series or self.name or self.fragment)


def pointers(manuscript: Manuscript) -> list[Pointer]:
    """All links of a document that may lead into the collection, in order; addresses elsewhere are left out."""
    found: list[Pointer] = [
        p for link in manuscript.links if (p := _address(manuscript, link.start, link.end, link.target))
    ]
    if manuscript.media_type == MARKDOWN:
        found += _markdown(manuscript)
    elif manuscript.media_type == RST:
        found += _rst(manuscript)
    return sorted(found, key=lambda p: (p.start, p.end))


def _address(manuscript: Manuscript, start: int, end: int, target: str) -> Pointer:
    """A link to an address, as it stands in this document."""
    out = Pointer(start, end)
    try:
        parts = urlsplit(target)
    except ValueError:
        return out
    path, fragment = unquote(parts.path), unquote(parts.fragment)
    if parts.scheme or parts.netloc:
        page = _PAGE_OF_SERIES.search(path)
        if page is None or parts.scheme not in {"http", "https", ""}:
            return out
        return Pointer(start, end, series=f"{page[1].upper()} {int(page[2])}", fragment=fragment)
    if path:
        folder = "" if path.startswith("/") else posixpath.dirname(manuscript.source)
        path = posixpath.normpath(posixpath.join(folder, path.lstrip("/")))
        if path.startswith(".."):
            path = posixpath.basename(path)
    return Pointer(start, end, path=path, fragment=fragment)


# -- Markdown ---------------------------------------------------------------------------------------------------


def _markdown(manuscript: Manuscript) -> Iterator[Pointer]:
    text = manuscript.text
    code = code_spans(text)
    starts = [start for start, _ in code]

    def in_code(at: int) -> bool:
        index = bisect_right(starts, at) - 1
        return index >= 0 and at < code[index][1]

    defined = {" ".join(m["name"].casefold().split()): m["target"] for m in _DEFINED.finditer(text)}
    for found in _INLINE.finditer(text):
        if not in_code(found.start()):
            yield _address(manuscript, found.start(), found.end(), found["target"].strip("<>"))
    for found in _BY_NAME.finditer(text):
        target = defined.get(" ".join((found["name"] or found["words"]).casefold().split()))
        if target and not in_code(found.start()):
            yield _address(manuscript, found.start(), found.end(), target)


def code_spans(text: str) -> list[tuple[int, int]]:
    """Stretches between runs of as many backticks, in order: code in a line, and fences."""
    runs = [(found.start(), found.end() - found.start()) for found in _TICKS.finditer(text)]
    closing: list[int] = [0] * len(runs)
    last: dict[int, int] = {}
    for index in range(len(runs) - 1, -1, -1):
        length = runs[index][1]
        closing[index] = last.get(length, 0)
        last[length] = index
    spans: list[tuple[int, int]] = []
    index = 0
    while index < len(runs):
        end = closing[index]
        if end:
            spans.append((runs[index][0], runs[end][0] + runs[end][1]))
            index = end
        index += 1
    return spans


# -- reStructuredText -------------------------------------------------------------------------------------------


def _rst(manuscript: Manuscript) -> Iterator[Pointer]:
    text = manuscript.text
    for found in _ROLE.finditer(text):
        yield _role(manuscript, found)
    labels = {fold_name(m["name"]): _value(m) for m in _TARGET.finditer(text)}
    for found in _NAMED.finditer(text):
        yield _by_name(manuscript, found, labels)
    for found in _WORD.finditer(text):
        yield replace(_to_name(manuscript, found.start(), found.end(), found["body"], labels), sure=False)
    yield from (Pointer(m.start(), m.end()) for m in _TARGET.finditer(text))  # words that only name a place


def _value(target: re.Match[str]) -> str:
    """What a label stands for: an address, another name with "_", "" for the place below it."""
    return (target["value"] or target["next"] or "").strip()


def _role(manuscript: Manuscript, found: re.Match[str]) -> Pointer:
    """ ":pep:`8#names`", ":ref:`words <label>`", ":doc:`/guide`"."""
    body = " ".join(found["body"].split())
    named = _WITH_TARGET.fullmatch(body)
    target = (named["target"] if named else body).strip()
    role = found["role"].rpartition(":")[2]
    start, end = found.start(), found.end()
    if role in {"pep", "rfc"}:
        number, _, fragment = target.partition("#")
        series = f"{role.upper()} {int(number)}" if number.isdigit() else ""
        return Pointer(start, end, series=series, fragment=fragment if series else "")
    if role == "doc":
        return _address(manuscript, start, end, target)
    return Pointer(start, end, name=target)


def _by_name(manuscript: Manuscript, found: re.Match[str], labels: dict[str, str]) -> Pointer:
    """ "`Title`_", "`words <Title_>`_", "`words <address>`__"."""
    body = " ".join(found["body"].split())
    named = _WITH_TARGET.fullmatch(body)
    if named is None:
        if found["end"] == "__":  # the next anonymous address is meant
            return Pointer(found.start(), found.end())
        return _to_name(manuscript, found.start(), found.end(), body, labels)
    target = named["target"].strip()
    if fold_name(target) in labels:
        return _to_name(manuscript, found.start(), found.end(), target, labels)
    if target.endswith("_") and not target.endswith("\\_"):
        return _to_name(manuscript, found.start(), found.end(), target[:-1], labels)
    return _address(manuscript, found.start(), found.end(), target)


def _to_name(manuscript: Manuscript, start: int, end: int, name: str, labels: dict[str, str]) -> Pointer:
    """A link by name: the name's address if it has one (one that only names another is followed), else a title."""
    for _ in range(4):
        value = labels.get(fold_name(name), "")
        if not value:
            return Pointer(start, end, name=name)
        if not value.endswith("_"):
            return _address(manuscript, start, end, value)
        name = value[:-1].strip("`")
    return Pointer(start, end)


def fold_name(name: str) -> str:
    """A name as reStructuredText compares it."""
    return " ".join(name.strip("`").replace("\\", "").casefold().split())


# -- what they lead to ------------------------------------------------------------------------------------------


def slug(title: str) -> str:
    """The fragment that Markdown programs make of a heading: "Late fees & costs" is "late-fees--costs"."""
    return re.sub(r"[^\w\- ]", "", title.casefold()).replace(" ", "-")


def plain_slug(title: str) -> str:
    """The fragment that docutils makes of a title, and the common part of all others: words and single hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", title.casefold()).strip("-")


def spots(manuscript: Manuscript) -> dict[str, tuple[int, int]]:
    """The stretches that fragments and names lead to, by name; the first of each name. A heading stands for what is
    below it up to the next heading that is not deeper."""
    found: dict[str, tuple[int, int]] = {}
    for name, start, end in _explicit(manuscript):
        found.setdefault(name, (start, end))
    seen: dict[str, int] = {}
    ends = _section_ends(manuscript)
    for heading, end in zip(manuscript.headings, ends, strict=True):
        title = _HEADING_ID.sub("", heading.title).strip()
        own = slug(title)
        seen[own] = seen.get(own, -1) + 1
        names = [f"{own}-{seen[own]}"] if seen[own] else [own, plain_slug(title), f"title:{fold_name(title)}"]
        for name in names:
            found.setdefault(name, (heading.start, end))
    return found


def _section_ends(manuscript: Manuscript) -> list[int]:
    ends = [len(manuscript.text)] * len(manuscript.headings)
    still_open: list[int] = []
    for index, heading in enumerate(manuscript.headings):
        while still_open and manuscript.headings[still_open[-1]].level >= heading.level:
            ends[still_open.pop()] = heading.start
        still_open.append(index)
    return ends


def _explicit(manuscript: Manuscript) -> Iterator[tuple[str, int, int]]:
    """Anchors that somebody wrote."""
    for name, (start, end) in manuscript.anchors.items():
        yield name, start, end
        yield name.casefold(), start, end
    text = manuscript.text
    if manuscript.media_type == MARKDOWN:
        for found in [*_ANCHOR_TAG.finditer(text), *_HEADING_ID.finditer(text)]:
            yield found["name"].casefold(), *_block(text, found.start(), found.end())
    if manuscript.media_type == RST:
        for name, at in _labelled(text):
            start, end = _block(text, at, at)
            yield f"title:{fold_name(name)}", start, end
            yield plain_slug(name), start, end
        for found in _INLINE_TARGET.finditer(text):
            start, end = _block(text, found.start(), found.end())
            yield f"title:{fold_name(found['name'])}", start, end
            yield plain_slug(found["name"]), start, end


def _block(text: str, start: int, end: int) -> tuple[int, int]:
    """The paragraph around a stretch, as far as it is of usual length."""
    before = text.rfind("\n\n", max(start - _BLOCK_CHARS, 0), start)
    after = text.find("\n\n", end, end + _BLOCK_CHARS)
    return (start if before < 0 else before + 2), (min(end + _BLOCK_CHARS, len(text)) if after < 0 else after)


def _labelled(text: str) -> Iterator[tuple[str, int]]:
    """Labels of places, and where the text begins that they stand before; several may stand before one."""
    places: dict[int, int] = {}
    found = [m for m in _TARGET.finditer(text) if not _value(m)]
    for label in reversed(found):
        at = label.end()
        while at < len(text) and text[at].isspace():
            at += 1
        line = text.rfind("\n", label.end(), at) + 1
        places[label.start()] = places.get(line, at)
    for label in found:
        yield label["name"], places[label.start()]


def labels_of(manuscript: Manuscript) -> list[str]:
    """Labels that reStructuredText gives to places, for `:ref:` from anywhere."""
    if manuscript.media_type != RST:
        return []
    return [found["name"].strip("`") for found in _TARGET.finditer(manuscript.text) if not _value(found)]
