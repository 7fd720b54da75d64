"""Word's paragraphs, tables and boxes as pieces of text, in the order of the document."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from agent_server.ingest.extract.docx_styles import Numbering, Styles
from agent_server.ingest.extract.docx_xml import attribute, child, chosen, name, number, parts, switch, value
from agent_server.ingest.package import Node
from agent_server.models import BlockKind

#: Stands for the number of a page where a header or footer is read.
PAGE_NUMBER = "\x00"
_PAGE_FIELD = re.compile(r"\s*(?:PAGE|NUMPAGES|SECTIONPAGES)\b", re.I)
_SAY = {
    "w:t": "",
    "m:t": "",
    "w:sym": "",
    "w:tab": "\t",
    "w:ptab": "\t",
    "w:br": "\n",
    "w:cr": "\n",
    "w:noBreakHyphen": "-",
}
_LEFT_OUT_TAGS = """
    w:del w:moveFrom w:delText w:delInstrText w:instrText w:fldChar w:pPr w:rPr w:sdtPr w:sdtEndPr w:rt w:rubyPr
"""
#: Deleted text, settings, and the reading given above a word.
_LEFT_OUT = frozenset(_LEFT_OUT_TAGS.split())
_FORMULA = {"m:num": "", "m:den": "/", "m:sup": "^", "m:sub": "_"}
_NOTES = {"w:footnoteReference": "footnotes", "w:endnoteReference": "endnotes"}
#: Pictures from Wingdings that mean something in forms.
_SYMBOLS = {0xF0FE: "☒", 0xF0FD: "☒", 0xF053: "☒", 0xF06F: "☐", 0xF0A8: "☐", 0xF052: "☑", 0xF0FC: "✓", 0xF0FB: "✗"}
_PRIVATE = range(0xE000, 0xF900)
_MAX_REPEATED = 100  #: characters of a cell over several rows that are said again in each of them


class Piece(NamedTuple):
    """A block to be: see `TextBuilder.add`."""

    kind: BlockKind
    text: str
    level: int = 0
    title: str = ""
    tight: bool = False


class Walker:
    """Goes through blocks in order and gathers `pieces`. `notes` holds the texts of footnotes and endnotes."""

    def __init__(
        self,
        styles: Styles,
        numbering: Numbering,
        notes: Mapping[tuple[str, str], str] | None = None,
        *,
        frame: bool = False,
    ) -> None:
        self.pieces: list[Piece] = []
        self.title = ""
        self.sections: list[str] = []  #: ids of headers and footers, as sections name them
        self._styles, self._numbering, self._notes = styles, numbering, notes or {}
        self._frame = frame  #: a header or footer: page numbers are marked
        self._fields: list[tuple[str, bool]] = []  # of a frame: what a field says, and whether its result has begun
        self._numbers: dict[tuple[str, str], int] = {}
        self._new_notes: list[tuple[str, str]] = []
        self._boxes: list[Node] = []
        self._in_cell = 0
        self._carried = ""  # of a paragraph whose end was deleted: it goes on in the next one

    def block(self, node: Node, *, plain: bool = False) -> None:
        """Read a child of the body; `plain`: what looks like a heading is none (boxes, cells)."""
        for part in parts([node]):
            what = name(part)
            if what == "w:p":
                self._paragraph(part, plain)
            elif what == "w:tbl":
                self.finish()
                self._table(part, plain)
            elif what == "w:sectPr":
                self._section(part)

    def flow(self, container: Node, *, plain: bool = False) -> None:
        for node in container:
            self.block(node, plain=plain)

    def finish(self) -> None:
        """What was carried has no paragraph left to go on in."""
        if self._carried:
            self._add(Piece("paragraph", _tidy(self._carried)))
            self._carried = ""

    def lines(self) -> list[str]:
        self.finish()
        return [line for piece in self.pieces for line in piece.text.split("\n")]

    def _add(self, piece: Piece) -> None:
        if piece.text.strip():
            self.pieces.append(piece)

    def _section(self, node: Node) -> None:
        for part in node:
            if name(part) in {"w:headerReference", "w:footerReference"}:
                self.sections.append(attribute(part, "id", "r"))

    def _paragraph(self, node: Node, plain: bool) -> None:
        about = child(node, "w:pPr")
        section = child(about, "w:sectPr")
        if section is not None:
            self._section(section)
        said: list[str] = []
        first_note = len(self._numbers) + 1
        self._inline(node, said, self._styles.hidden(value(about, "w:pStyle") or self._styles.default) or False)
        raw, self._carried = self._carried + "".join(said), ""
        mark = child(about, "w:rPr")
        if child(mark, "w:del") is not None or child(mark, "w:moveFrom") is not None:
            self._carried = raw
        else:
            self._add(self._piece(about, _tidy(raw), plain, first_note))
        self._after()

    def _piece(self, about: Node | None, text: str, plain: bool, first_note: int) -> Piece:
        level = self._styles.level(about)
        num, depth, style = self._styles.numbering(about)
        label, depth = self._numbering.label(num, depth, style) if num not in {"", "0"} else ("", 0)
        if level and text:
            line = " ".join(f"{label if label != '-' else ''} {text}".split())
            title = line
            for new in range(first_note, len(self._numbers) + 1):
                title = title.replace(f"[{new}]", "")
            title = " ".join(title.split())
            if not plain:
                if not self.title and self._styles.is_title(about):
                    self.title = title
                return Piece("heading", line, level, title)
            return Piece("paragraph", line)
        if label and text:
            prefix = "" if plain and self._in_cell else "  " * depth
            tight = bool(self.pieces) and self.pieces[-1].kind == "list_item"
            return Piece("list_item", f"{prefix}{label} " + text.replace("\n", f"\n{prefix}  "), tight=tight)
        return Piece("paragraph", text)

    def _after(self) -> None:
        """Notes and boxes of a paragraph follow it; those of cells follow the table."""
        if self._in_cell:
            return
        notes, self._new_notes = self._new_notes, []
        for key in notes:
            self._add(Piece("paragraph", f"[{self._numbers[key]}] {self._notes[key]}", tight=True))
        boxes, self._boxes = self._boxes, []
        for box in boxes:
            self.flow(box, plain=True)
            self.finish()

    def _inline(self, node: Node, out: list[str], hidden: bool) -> None:
        for part in node:
            what = name(part)
            if (self._frame and self._field(what, part, out)) or what in _LEFT_OUT:
                continue
            if what in _SAY:
                out.append(_said(part, what))
            elif what in _NOTES:
                out.append(self._reference(_NOTES[what], part))
            elif what == "w:txbxContent":
                self._boxes.append(part)
            elif what == "mc:AlternateContent":
                branch = chosen(part)
                if branch is not None:
                    self._inline(branch, out, hidden)
            elif what == "w:r":
                if not self._is_hidden(part, hidden):
                    self._inline(part, out, hidden)
            elif what in _FORMULA:
                inner: list[str] = []
                self._inline(part, inner, hidden)
                text = "".join(inner).strip()
                out.append(_FORMULA[what] + (text if text.isalnum() else f"({text})") if text else "")
            else:
                self._inline(part, out, hidden)

    def _is_hidden(self, run: Node, otherwise: bool) -> bool:
        about = child(run, "w:rPr")
        said = switch(about, "w:vanish")
        if said is None:
            said = self._styles.hidden(value(about, "w:rStyle"))
        return otherwise if said is None else said

    def _reference(self, kind: str, node: Node) -> str:
        key = (kind, attribute(node, "id"))
        if key not in self._notes:
            return ""
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers) + 1
            self._new_notes.append(key)
        return f"[{self._numbers[key]}]"

    def _field(self, what: str, node: Node, out: list[str]) -> bool:
        """Whether the element belongs to a field for a page number, for which a mark is set."""
        if what == "w:fldSimple" and _PAGE_FIELD.match(attribute(node, "instr")):
            out.append(PAGE_NUMBER)
            return True
        if what == "w:fldChar":
            step = attribute(node, "fldCharType")
            if step == "begin":
                self._fields.append(("", False))
            elif step == "separate" and self._fields:
                self._fields[-1] = (self._fields[-1][0], True)
            elif step == "end" and self._fields and _PAGE_FIELD.match(self._fields.pop()[0]):
                out.append(PAGE_NUMBER)
            return True
        if what == "w:instrText" and self._fields:
            self._fields[-1] = (self._fields[-1][0] + (node.text or ""), False)
            return True
        return what == "w:t" and any(begun and _PAGE_FIELD.match(says) for says, begun in self._fields)

    def _table(self, node: Node, plain: bool) -> None:
        rows = [list(_cells(row)) for row in parts(node) if name(row) == "w:tr" and not _is_gone(row)]
        # One column only frames what is in it; a row with a table in it cannot be one line.
        framed = all(len(row) <= 1 for row in rows)
        lines: list[str] = []
        above: dict[int, str] = {}
        for row in rows:
            if framed or any(name(part) == "w:tbl" for _, cell in row for part in parts(cell)):
                self._rows(lines)
                for _, cell in row:
                    self.flow(cell, plain=plain or not framed)
                    self.finish()
                continue
            texts: list[str] = []
            own = False
            for column, cell in row:
                text = self._cell(cell)
                own = own or bool(text)
                merged = child(cell, "w:tcPr", "w:vMerge")
                if merged is None or attribute(merged, "val") == "restart":
                    above[column] = text
                elif not text and len(above.get(column, "")) <= _MAX_REPEATED:
                    text = above.get(column, "")
                texts.append(text)
            if own:
                lines.append(" | ".join(texts))
        self._rows(lines)

    def _rows(self, lines: list[str]) -> None:
        self._add(Piece("table", "\n".join(lines)))
        lines.clear()
        self._after()

    def _cell(self, cell: Node) -> str:
        outside, self.pieces = self.pieces, []
        self._in_cell += 1
        self.flow(cell, plain=True)
        said = self.lines()
        self._in_cell -= 1
        self.pieces = outside
        return " ".join(" ".join(said).split())


def _cells(row: Node) -> Iterator[tuple[int, Node]]:
    """The cells of a row, each with the column of the grid in which it begins."""
    column = number(row, "w:trPr", "w:gridBefore") or 0
    for cell in parts(row):
        about = child(cell, "w:tcPr")
        if name(cell) != "w:tc" or child(about, "w:cellDel") is not None:
            continue
        joined = child(about, "w:hMerge")
        if joined is None or attribute(joined, "val") == "restart":
            yield column, cell
        column += max(number(about, "w:gridSpan") or 1, 1)


def _is_gone(row: Node) -> bool:
    about = child(row, "w:trPr")
    return child(about, "w:del") is not None or bool(switch(about, "w:hidden"))


def _said(node: Node, what: str) -> str:
    if what == "w:sym":
        return _symbol(node)
    return _SAY[what] or (node.text or "").replace("\n", " ")


def _symbol(node: Node) -> str:
    try:
        code = int(attribute(node, "char"), 16)
    except ValueError:
        return ""
    if code in _PRIVATE or not 0x20 <= code <= 0xFFFF:
        return _SYMBOLS.get(code, "")
    return chr(code)


def _tidy(text: str) -> str:
    lines = (re.sub(r"[ \u00a0]*\t[ \u00a0\t]*", "\t", re.sub(r"[ \u00a0]+", " ", line)) for line in text.split("\n"))
    return "\n".join(line.strip() for line in lines if line.strip())
