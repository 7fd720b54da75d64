"""HTML: what a reader of the page reads, block by block, without what frames the page."""

import re
import unicodedata
from collections.abc import Iterator

from lxml import etree

from agent_server.ingest.extract import page_marks
from agent_server.ingest.extract.html_text import BLOCKS, BREAK, Node, flat, hidden, holds_block, inline, line_of, tidy
from agent_server.ingest.extract.page_marks import visible
from agent_server.ingest.extract.shared import TextBuilder, dated_note, make_document, parse_date
from agent_server.ingest.hygiene import clean, clean_line, decode
from agent_server.models import BlockKind, Document, FileStatus, Rejected, SourceFile

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_DECLARED = re.compile(rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w-]+)|<\?xml[^>]+encoding\s*=\s*[\"']([\w-]+)", re.I)
_DATES = (
    "dcterms.modified",
    "dcterms.date",
    "dc.date",
    "date",
    "article:modified_time",
    "article:published_time",
)
_CELLS = frozenset({"td", "th"})
_KEPT = ("author", "description", "keywords")
_MAX_DEPTH = 200  #: of nested elements; deeper ones are read as running text


def _decode(data: bytes) -> str:
    """Text of the page: by its bytes where they say, else by what the page declares."""
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError:
        found = _DECLARED.search(data[:4096])
        if found and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
            name = (found[1] or found[2]).decode("ascii", "replace").lower()
            # Browsers read a page that declares Latin-1 as Windows-1252.
            name = "cp1252" if name in {"iso-8859-1", "latin1", "us-ascii", "ascii"} else name
            try:
                return data.decode(name)
            except (LookupError, UnicodeDecodeError):
                pass
    return decode(data)


class _Walker:
    """Goes through the page in order and hands blocks to the builder; text between blocks is gathered in `run`."""

    def __init__(self) -> None:
        self.out = TextBuilder()
        self.run: list[str] = []

    def flush(self, kind: BlockKind = "paragraph", *, prefix: str = "", tight: bool = False) -> None:
        text = tidy("".join(self.run))
        self.run.clear()
        if visible(text).strip():
            self.out.add(kind, prefix + text, tight=tight)
        elif text:
            self.run.append(text)  # marks alone: the next block takes them

    def carried(self) -> str:
        """Marks that wait for a block."""
        text = "".join(self.run)
        self.run.clear()
        return text

    def walk(self, node: Node, kind: BlockKind = "paragraph", depth: int = 0) -> None:
        """Read what is inside `node`; loose text becomes blocks of `kind`."""
        self.run.append(flat(node.text, keep_blanks=False))
        for child in node:
            if isinstance(child.tag, str) and not hidden(child):
                self._child(child, kind, depth + 1)
            self.run.append(flat(child.tail, keep_blanks=False))

    def _child(self, node: Node, kind: BlockKind, depth: int) -> None:
        tag = node.tag
        if tag == "br":
            self.run.append(BREAK)
        elif tag not in BLOCKS and (depth > _MAX_DEPTH or not holds_block(node)):
            self.run.append(inline(node))
        elif depth > _MAX_DEPTH:
            self.flush(kind)
            self.run.append(inline(node))
            self.flush(kind)
        elif tag not in BLOCKS:
            self.walk(node, kind, depth)  # its words stand in the line; the blocks in it begin lines of their own
        else:
            self._block(node, kind, depth)

    def _block(self, node: Node, kind: BlockKind, depth: int) -> None:
        self.flush(kind)
        tag = node.tag
        if tag in _HEADINGS:
            self._words("heading", line_of(node), level=_HEADINGS[tag])
        elif tag == "pre":
            self._words("code", inline(node, keep_blanks=True))
        elif tag == "table":
            self._table(node, depth)
        elif tag in {"ul", "ol", "menu"}:
            self._list(node, depth, 0)
        elif tag == "dl":
            self._definitions(node)
        else:
            self.walk(node, kind, depth)
            self.flush(kind)

    def _words(self, kind: BlockKind, text: str, *, level: int = 0, tight: bool = False) -> None:
        """A block of `text`, with the marks that wait for one; marks alone go on waiting."""
        if visible(text).strip():
            self.out.add(kind, self.carried() + page_marks.outside_blanks(text), level=level, tight=tight)
        else:
            self.run.append("".join(text.split()))

    def _list(self, node: Node, depth: int, indent: int) -> None:
        self.run.append(page_marks.alone(node.text))
        number = _start(node)
        first = True
        for child in node:
            if not isinstance(child.tag, str) or hidden(child):
                continue
            if child.tag in {"ul", "ol", "menu"}:  # wrong but common: a list directly in a list
                self._list(child, depth + 1, indent + 1)
                continue
            mark = f"{number}. " if node.tag == "ol" else "- "
            number += 1
            self._item(child, depth, indent, mark, tight=not first or indent > 0)
            first = False

    def _item(self, node: Node, depth: int, indent: int, mark: str, *, tight: bool) -> None:
        prefix = "  " * indent + mark
        self.run.append(flat(node.text, keep_blanks=False))

        def flush() -> None:
            nonlocal prefix, tight
            before = len(self.out.spans)
            text = tidy("".join(self.run)).replace("\n", "\n" + "  " * (indent + 1))
            self.run.clear()
            if visible(text).strip():
                self.out.add("list_item", prefix + text, tight=tight)
            elif text:
                self.run.append(text)
            if len(self.out.spans) > before:
                prefix, tight = "  " * (indent + 1), True

        for child in node:
            if isinstance(child.tag, str) and not hidden(child):
                if child.tag in {"ul", "ol", "menu"} and depth < _MAX_DEPTH:
                    flush()
                    self._list(child, depth + 1, indent + 1)
                elif child.tag in {"table", "pre", "dl", *_HEADINGS} and depth < _MAX_DEPTH:
                    flush()
                    self._block(child, "list_item", depth + 1)
                elif child.tag in BLOCKS:
                    self.run.append(BREAK + inline(child) + BREAK)
                else:
                    self.run.append(BREAK if child.tag == "br" else inline(child))
            self.run.append(flat(child.tail, keep_blanks=False))
        flush()

    def _definitions(self, node: Node) -> None:
        self.run.append(page_marks.alone(node.text))
        terms: list[str] = []
        said = False
        for child in node.iter("dt", "dd"):
            if hidden(child) or next(child.iterancestors("dl"), None) is not node:
                continue
            text = tidy(inline(child))
            if child.tag == "dt":
                if said:
                    terms, said = [], False
                terms.append(" ".join(text.split("\n")))
            elif said:
                self._words("definition", text, tight=True)
            else:
                self._words("definition", f"{', '.join(terms)}: {text}" if terms else text)
                said = True
        if terms and not said:
            self._words("definition", ", ".join(terms))

    def _table(self, node: Node, depth: int) -> None:
        self.run.append(page_marks.alone(node.text))
        rows = [row for row in node.iter("tr") if next(row.iterancestors("table"), None) is node]
        cells = [[cell for cell in row if cell.tag in _CELLS and not hidden(cell)] for row in rows]
        # A table that only lays out the page (one column, or tables inside) is read as the text that it holds.
        if all(len(row) <= 1 for row in cells) or next(node.iterdescendants("table"), None) is not None:
            for part in node.iter("caption", "td", "th"):
                if next(part.iterancestors("table"), None) is node and not hidden(part):
                    self.walk(part, "paragraph", depth + 1)
                    self.flush()
            return
        caption = next((c for c in node.iter("caption") if next(c.iterancestors("table"), None) is node), None)
        if caption is not None:
            self._words("paragraph", line_of(caption))
        head = [i for i, row in enumerate(rows) if next(row.iterancestors("thead"), None) is not None]
        self.run += [page_marks.alone(row.text) for row in rows]
        order = head + [i for i in range(len(rows)) if i not in set(head)]
        lines = [" | ".join(line_of(cell) for cell in cells[i]) for i in order if cells[i]]
        self._words("table", "\n".join(line for line in lines if visible(line).strip(" |")))


def _start(node: Node) -> int:
    try:
        return int(node.get("start") or 1)
    except ValueError:
        return 1


def _main_part(body: Node) -> Iterator[Node]:
    """`main`, else the outermost articles, else the body without its own header and footer."""
    main = [n for n in body.iter("main") if not hidden(n)] or [n for n in body.iter() if n.get("role") == "main"]
    articles = [n for n in body.iter("article") if next(n.iterancestors("article"), None) is None]
    parts = [n for n in main or articles if line_of(n)]
    if parts:
        yield from (n for n in parts if not any(a in parts for a in n.iterancestors()))
        return
    for frame in list(body.iter("header", "footer")):
        frame.tag = "nav"  # frames the page, is not part of it
    yield body


def _meta(root: Node) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in root.iter("meta"):
        name = (node.get("name") or node.get("property") or "").strip().lower()
        if name and node.get("content"):
            found.setdefault(name, clean_line(node.get("content") or ""))
    return found


def extract_html(file: SourceFile) -> Document | Rejected:
    """The text of a page: `main` or the articles if there are any, without menus, frames, scripts and forms.

    `<title>` is the title. Meta `description`, `author`, `keywords` become metadata, a meta date the date.
    """
    return _read_page(file, marked=True)


def _read_page(file: SourceFile, *, marked: bool) -> Document | Rejected:
    """The page, with its links and anchors if `marked`."""
    text, notes = clean(_decode(file.data))
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(text.encode("utf-8"), parser)
    except etree.XMLSyntaxError:  # no element at all
        root = None
    if root is None:
        return make_document(file, "", ())
    body = root.find("body")
    body = root if body is None else body
    parts = list(_main_part(body))
    values = page_marks.write(body, BLOCKS) if marked else []
    walker = _Walker()
    for part in parts:
        walker.walk(part)
        walker.flush()
    text, spans, marks = page_marks.lift(walker.out.text, walker.out.spans, values)
    if marked and not unicodedata.is_normalized("NFC", text):
        return _read_page(file, marked=False)  # a letter and its accent, with the edge of a link between them
    meta = _meta(root)
    raw_date = next((meta[name] for name in _DATES if name in meta), None)
    dated = parse_date(raw_date) if raw_date else None
    if raw_date and dated is None:
        notes += (dated_note("date", raw_date),)
    if any("depth" in error.message for error in parser.error_log):
        if not text:
            reason = "elements are nested deeper than the parser reads"
            return Rejected(file.source, FileStatus.DAMAGED, reason, file.sha256, file.size_bytes, file.media_type)
        notes += ("some elements are nested too deep and were not read",)
    title = root.find(".//head/title")
    metadata: dict[str, str] = {key: meta[key] for key in _KEPT if key in meta}
    if root.get("lang"):
        metadata["language"] = root.get("lang") or ""
    return make_document(
        file,
        text,
        spans,
        title=clean_line("".join(map(str, title.itertext()))) if title is not None else "",
        dated=dated,
        metadata=metadata,
        notes=notes + walker.out.notes,
        marks=marks,
    )
