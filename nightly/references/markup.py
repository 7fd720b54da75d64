"""Links that markup makes: Markdown, reStructuredText, and what extraction marked in a page."""

import posixpath
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from nightly.references.manuscript import Manuscript

MARKDOWN, RST = "text/markdown", "text/x-rst"
#: The page of a PEP or RFC, whoever serves it.
_PAGE_OF_SERIES = re.compile(r"/(pep|rfc)-?0*(\d{1,5})(?:\.html?|\.txt|\.rst)?/?\Z", re.IGNORECASE)
_MAX_WORDS = 400  #: characters of a link's words
_CODE = re.compile(r"(?P<tick>`{1,3})(?!`)(?:[^`]|(?!(?P=tick)(?!`))`){1,2000}?(?P=tick)(?!`)")
_INLINE = re.compile(
    r"(?<![!\\])\[(?P<words>[^\[\]\n]{1,300}(?:\n[^\[\]\n]{1,300})?)\]\((?P<target>[^()\s]{1,500}(?:\([^()\s]{0,100}\)[^()\s]{0,100})?)(?:[ \n]+[\"'(][^\"')\n]{0,200}[\"')])?\)"
)
_BY_NAME = re.compile(r"(?<![!\\\]])\[(?P<words>[^\[\]\n]{1,300})\]\[(?P<name>[^\[\]\n]{0,200})\]")
_DEFINED = re.compile(r"^[ ]{0,3}\[(?P<name>[^\[\]\n]{1,200})\]:[ \t]*<?(?P<target>[^\s>]{1,500})>?", re.MULTILINE)
_ROLE = re.compile(r"(?<![\w:`]):(?P<role>pep|rfc|ref|doc|numref|any|std:ref|std:doc):`(?P<body>[^`]{1,400})`")
_NAMED = re.compile(r"(?<![\w`:])`(?P<body>[^`]{1,400}[^`\s])`(?P<end>__?)(?![\w`])")
_WORD = re.compile(r"(?<![\w`/.*_<-])(?P<body>[A-Za-z][\w-]{0,80}[A-Za-z0-9])_(?![\w`_])")
_WITH_TARGET = re.compile(r"(?P<words>.*?)\s*<(?P<target>[^<>]+)>\Z", re.DOTALL)
_TARGET = re.compile(
    r"^[ \t]*\.\. _(?P<name>`[^`\n]{1,200}`|(?:[^:\n\\]|\\.){1,200}):[ \t]*(?P<value>[^\n]*)$", re.MULTILINE
)
_INLINE_TARGET = re.compile(r"(?<![\w`])_`(?P<name>[^`]{1,200})`")
_ANCHOR_TAG = re.compile(
    r"<(?:a|span|div|h[1-6])[^<>\n]{0,200}?\b(?:id|name)=[\"'](?P<name>[^\"'\n]{1,200})[\"']", re.IGNORECASE
)
_HEADING_ID = re.compile(r"\{#(?P<name>[\w.:-]{1,100})[^{}\n]{0,100}\}[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Pointer:
    """The words `text[start:end]` that lead to a file (a path below the root; "" this one), a document of a series
    ("PEP 8") or a title or label (`name`), and there to a fragment. `sure`: it is certainly meant as a link."""

    start: int
    end: int
    path: str = ""
    series: str = ""
    name: str = ""
    fragment: str = ""
    sure: bool = True


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


def _address(manuscript: Manuscript, start: int, end: int, target: str) -> Pointer | None:
    """A link to an address, as it stands in this document."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return None
    if end - start > _MAX_WORDS:
        return None
    if parts.scheme or parts.netloc:
        page = _PAGE_OF_SERIES.search(parts.path)
        known = page is not None and parts.scheme in {"http", "https"}
        series = f"{page[1].upper()} {int(page[2])}" if page is not None and known else ""
        return Pointer(start, end, series=series, fragment=unquote(parts.fragment)) if series else None
    path, fragment = unquote(parts.path), unquote(parts.fragment)
    if not path and not fragment:
        return None
    if path:
        folder = "" if path.startswith("/") else posixpath.dirname(manuscript.source)
        path = posixpath.normpath(posixpath.join(folder, path.lstrip("/")))
        if path.startswith(".."):
            path = posixpath.basename(path)
    return Pointer(start, end, path=path, fragment=fragment)


# -- Markdown ---------------------------------------------------------------------------------------------------


def _markdown(manuscript: Manuscript) -> Iterator[Pointer]:
    text = manuscript.text
    code = [(m.start(), m.end()) for m in _CODE.finditer(text)]
    starts = [start for start, _ in code]

    def in_code(at: int) -> bool:
        index = bisect_right(starts, at) - 1
        return index >= 0 and at < code[index][1]

    defined = {" ".join(m["name"].casefold().split()): m["target"] for m in _DEFINED.finditer(text)}
    for found in _INLINE.finditer(text):
        pointer = _address(manuscript, found.start(), found.end(), found["target"].strip("<>"))
        if pointer is not None and not in_code(found.start()):
            yield pointer
    for found in _BY_NAME.finditer(text):
        target = defined.get(" ".join((found["name"] or found["words"]).casefold().split()))
        pointer = _address(manuscript, found.start(), found.end(), target) if target else None
        if pointer is not None and not in_code(found.start()):
            yield pointer


# -- reStructuredText -------------------------------------------------------------------------------------------


def _rst(manuscript: Manuscript) -> Iterator[Pointer]:
    text = manuscript.text
    for found in _ROLE.finditer(text):
        pointer = _role(manuscript, found)
        if pointer is not None:
            yield pointer
    labels = {fold_name(m["name"]): m["value"].strip() for m in _TARGET.finditer(text)}
    for found in _NAMED.finditer(text):
        pointer = _by_name(manuscript, found, labels)
        if pointer is not None:
            yield pointer
    for found in _WORD.finditer(text):
        pointer = _to_name(manuscript, found.start(), found.end(), found["body"], labels)
        if pointer is not None:
            yield Pointer(
                pointer.start, pointer.end, pointer.path, name=pointer.name, fragment=pointer.fragment, sure=False
            )


def _role(manuscript: Manuscript, found: re.Match[str]) -> Pointer | None:
    """ ":pep:`8#names`", ":ref:`words <label>`", ":doc:`/guide`"."""
    body = " ".join(found["body"].split())
    named = _WITH_TARGET.fullmatch(body)
    target = (named["target"] if named else body).strip()
    role = found["role"].rpartition(":")[2]
    start, end = found.start(), found.end()
    if role in {"pep", "rfc"}:
        number, _, fragment = target.partition("#")
        return (
            Pointer(start, end, series=f"{role.upper()} {int(number)}", fragment=fragment) if number.isdigit() else None
        )
    if role == "doc":
        return _address(manuscript, start, end, target)
    return Pointer(start, end, name=target)


def _by_name(manuscript: Manuscript, found: re.Match[str], labels: dict[str, str]) -> Pointer | None:
    """ "`Title`_", "`words <Title_>`_", "`words <address>`__"."""
    body = " ".join(found["body"].split())
    named = _WITH_TARGET.fullmatch(body)
    if named is None:
        return _to_name(manuscript, found.start(), found.end(), body, labels)
    target = named["target"].strip()
    if target.endswith("_") and not target.endswith("\\_"):
        return _to_name(manuscript, found.start(), found.end(), target[:-1], labels)
    return _address(manuscript, found.start(), found.end(), target)


def _to_name(manuscript: Manuscript, start: int, end: int, name: str, labels: dict[str, str]) -> Pointer | None:
    """A link by name: the name's address if it has one (one that only names another is followed), else a title."""
    for _ in range(4):
        value = labels.get(fold_name(name), "")
        if not value:
            return Pointer(start, end, name=name)
        if not value.endswith("_"):
            return _address(manuscript, start, end, value)
        name = value[:-1].strip("`")
    return None


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
            end = text.find("\n\n", found.end())
            line = text.rfind("\n", 0, found.start()) + 1
            yield found["name"].casefold(), line, len(text) if end < 0 else end
    if manuscript.media_type == RST:
        for found in _TARGET.finditer(text):
            if not found["value"].strip():
                start, end = _below(text, found.end())
                yield f"title:{fold_name(found['name'])}", start, end
                yield plain_slug(found["name"]), start, end
        for found in _INLINE_TARGET.finditer(text):
            end = text.find("\n\n", found.end())
            start = max(text.rfind("\n\n", 0, found.start()), 0)
            yield f"title:{fold_name(found['name'])}", start, len(text) if end < 0 else end
            yield plain_slug(found["name"]), start, len(text) if end < 0 else end


def labels_of(manuscript: Manuscript) -> list[str]:
    """Labels that reStructuredText gives to places, for `:ref:` from anywhere."""
    if manuscript.media_type != RST:
        return []
    return [found["name"].strip("`") for found in _TARGET.finditer(manuscript.text) if not found["value"].strip()]


def _below(text: str, at: int) -> tuple[int, int]:
    """The block that follows a label, other labels skipped."""
    found = re.compile(r"(?:\s*\n[ \t]*\.\. _[^\n]*)*\s*").match(text, at)
    start = found.end() if found else at
    end = text.find("\n\n", start)
    return start, len(text) if end < 0 else end
