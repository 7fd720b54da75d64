"""DOCX: body in document order, lists with their numbers, tables, text boxes, notes, headers and footers once.

Read with zipfile and lxml rather than with python-docx, which unpacks everything before a limit can be set, and knows
neither text boxes nor notes.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from agent_server.ingest.extract.docx_body import PAGE_NUMBER, Piece, Walker
from agent_server.ingest.extract.docx_styles import Numbering, Styles
from agent_server.ingest.extract.docx_xml import attribute, name
from agent_server.ingest.extract.shared import TextBuilder, make_document
from agent_server.ingest.hygiene import clean_line
from agent_server.ingest.package import Damaged, Locked, Node, Oversized, Package
from agent_server.models import Document, FileStatus, Rejected, SourceFile

_T = TypeVar("_T")

_JUNK_TITLE = re.compile(
    r"untitled|microsoft word|\.(?:docx?|dotx?|rtf|odt)\s*$|^[\W\d_]*$|^title$|^(?:word )?do[ck]ument\s*\d*$", re.I
)
_PAGE_WORDS = 3  #: words beside a page number in a header that only introduce it ("Page 3 of 7")
#: What is not read, by the kind of its relation to the document.
_UNREAD = {
    "comments": "comments",
    "oleObject": "embedded objects",
    "package": "embedded objects",
    "aFChunk": "embedded documents",
    "chart": "charts",
    "diagramData": "diagrams",
}
_NOT_A_NOTE = frozenset({"separator", "continuationSeparator", "continuationNotice"})


@dataclass(slots=True)
class _Reading:
    """What came out of a package."""

    pieces: list[Piece] = field(default_factory=list)
    title: str = ""
    pictures: bool = False
    notes: list[str] = field(default_factory=list)


class _Word:
    """A Word document in its package: the main part and those that it refers to."""

    def __init__(self, package: Package) -> None:
        self.package = package
        self.out = _Reading()
        top = self._attempt("relations", lambda: package.relations("")) or {}
        self.main = next((part for kind, part in top.values() if kind == "officeDocument"), "word/document.xml")
        self.core = next((part for kind, part in top.values() if kind == "core-properties"), "docProps/core.xml")
        self.relations = self._attempt("relations", lambda: package.relations(self.main)) or {}

    def read(self) -> _Reading:
        styles = self._attempt("styles", lambda: Styles.read(self._nodes("styles"))) or Styles()
        numbering = self._attempt("numbering", lambda: Numbering.read(self._nodes("numbering"))) or Numbering()
        notes: dict[tuple[str, str], str] = {}
        for kind in ("footnotes", "endnotes"):
            self._attempt(kind, partial(self._read_notes, kind, styles, notes))
        walker = Walker(styles, numbering, notes)
        for node in self.package.children(self.main, "body"):
            walker.block(node)
        walker.finish()
        self.out.pieces = [*self._frames(walker, styles), *walker.pieces]
        self.out.title = self._attempt("properties", self._core_title) or walker.title
        self._say_unread()
        return self.out

    def _attempt(self, what: str, call: Callable[[], _T]) -> _T | None:
        """What `call` returns; a broken part beside the main one is noted and costs nothing else."""
        try:
            return call()
        except Damaged as error:
            self.out.notes.append(f"{what} not read: {clean_line(str(error))[:200]}")
            return None

    def _nodes(self, kind: str) -> Iterable[Node]:
        """The children of the root of the part of this kind; none where there is no such part."""
        beside = f"{self.main.rpartition('/')[0]}/{kind}.xml".lstrip("/")
        part = next((part for known, part in self.relations.values() if known == kind), beside)
        return self.package.children(part, kind) if part in self.package else ()

    def _read_notes(self, kind: str, styles: Styles, notes: dict[tuple[str, str], str]) -> None:
        for node in self._nodes(kind):
            if attribute(node, "type") in _NOT_A_NOTE:
                continue
            walker = Walker(styles, Numbering())
            walker.flow(node, plain=True)
            text = " ".join(" ".join(walker.lines()).split())
            if text:
                notes[kind, attribute(node, "id")] = text

    def _frames(self, body: Walker, styles: Styles) -> list[Piece]:
        """Headers and footers, each line once, without page numbers and without what the body says too."""
        said = " ".join(" ".join(piece.text for piece in body.pieces).split()).casefold()
        lines: dict[str, str] = {}
        used = {self.relations[key] for key in body.sections if key in self.relations}
        for kind, root in (("header", "hdr"), ("footer", "ftr")):
            for part in sorted(part for known, part in used if known == kind):
                walker = Walker(styles, Numbering(), frame=True)
                self._attempt(f"a {kind}", partial(self._walk, walker, part, root))
                for line in walker.lines():
                    text = _without_page_number(line)
                    if text.casefold() not in said:
                        lines.setdefault(text.casefold(), text)
        return [Piece("paragraph", text) for text in lines.values()]

    def _walk(self, walker: Walker, part: str, root: str) -> None:
        for node in self.package.children(part, root):
            walker.block(node, plain=True)

    def _core_title(self) -> str:
        if self.core not in self.package:
            return ""
        for node in self.package.children(self.core, "coreProperties"):
            title = clean_line(node.text or "") if name(node) == "dc:title" else ""
            if 3 <= len(title) <= 250 and not _JUNK_TITLE.search(title):
                return title
        return ""

    def _say_unread(self) -> None:
        kinds = [kind for kind, _ in self.relations.values()]
        self.out.pictures = "image" in kinds
        for what in dict.fromkeys(_UNREAD.values()):
            count = sum(_UNREAD.get(kind) == what for kind in kinds)
            if count:
                self.out.notes.append(f"{what} not read" + ("" if what == "comments" else f": {count}"))


def _without_page_number(line: str) -> str:
    """A line of a header without "Page 3 of 7"; its parts left, middle and right are one line."""
    kept: list[str] = []
    for part in line.split("\t"):
        words = part.replace(PAGE_NUMBER, " ").split()
        if words and (PAGE_NUMBER not in part or sum(any(map(str.isalpha, w)) for w in words) > _PAGE_WORDS):
            kept.append(" ".join(words))
    return " ".join(kept)


def extract_docx(file: SourceFile) -> Document | Rejected:
    """The text of a Word document; deleted and hidden text, comments and embedded files are left out.

    `damaged` when it cannot be unpacked or parsed or declares a DTD, `too_large` when it unpacks to more than the
    limits, `encrypted`, `no_text`. Never raises for what is in a file.
    """
    try:
        with Package(file.data) as package:
            reading = _Word(package).read()
    except Damaged as error:
        return _rejected(file, FileStatus.DAMAGED, clean_line(str(error))[:300])
    except Oversized as error:
        return _rejected(file, FileStatus.TOO_LARGE, clean_line(str(error))[:300])
    except RecursionError:
        return _rejected(file, FileStatus.TOO_LARGE, "is nested too deeply")
    except Locked as error:
        return _rejected(file, FileStatus.ENCRYPTED, str(error))
    out = TextBuilder()
    for piece in reading.pieces:
        out.add(piece.kind, piece.text, level=piece.level, title=piece.title, tight=piece.tight)
    if not out.text:
        return _rejected(file, FileStatus.NO_TEXT, "holds no text" + (", only pictures" if reading.pictures else ""))
    return make_document(file, out.text, out.spans, title=reading.title, notes=(*reading.notes, *out.notes))


def _rejected(file: SourceFile, status: FileStatus, reason: str) -> Rejected:
    return Rejected(file.source, status, reason, file.sha256, file.size_bytes, file.media_type)
