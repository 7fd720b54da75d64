"""PDF: pages with number and label, headings by outline or looks, paragraphs put together again."""

import io
import logging
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pypdf import PageObject, PdfReader
from pypdf.errors import DependencyError, LimitReachedError

from agent_server.ingest.extract.pdf_flow import Flow
from agent_server.ingest.extract.pdf_lines import (
    PdfLine,
    drop_running_lines,
    letters_run_together,
    page_lines,
    plain_lines,
)
from agent_server.ingest.extract.pdf_marks import Bookmark, keep_marked
from agent_server.ingest.extract.shared import Span, make_document, readable_name
from agent_server.ingest.hygiene import clean, clean_line
from agent_server.models import Document, FileStatus, Page, Rejected, SourceFile

_SUSPECT = 0.08  #: share of letters in impossible words from which on a page is read in another way
_KEPT_LETTERS = 0.98  #: share of the letters that another way of reading has to find
_JUNK_TITLE = re.compile(
    r"untitled|microsoft word|\.(?:docx?|dvi|tex|indd|pdf|qxd|ppt|xlsx?)\s*$|^[\W\d_]*$|^title$", re.I
)
_QUIET = threading.Lock()


@contextmanager
def _quiet() -> Iterator[None]:
    """No words of pypdf on the log and no warnings raised, whatever filters are set; all as before afterwards."""
    logger = logging.getLogger("pypdf")
    silent = logging.NullHandler()
    with _QUIET, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        propagate, logger.propagate = logger.propagate, False
        logger.addHandler(silent)
        try:
            yield
        finally:
            logger.removeHandler(silent)
            logger.propagate = propagate


@dataclass(slots=True)
class _Reading:
    """What came out of the pages before they are put together."""

    pages: list[list[PdfLine]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    bookmarks: list[Bookmark] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)
    bombs: list[int] = field(default_factory=list)  #: pages that unpack to more than pypdf's limits
    together: list[int] = field(default_factory=list)
    info: dict[str, str] = field(default_factory=dict)
    attachments: list[str] = field(default_factory=list)


def _rejected(file: SourceFile, status: FileStatus, reason: str) -> Rejected:
    return Rejected(file.source, status, reason, file.sha256, file.size_bytes, file.media_type)


def _listed(numbers: list[int]) -> str:
    """`1-3, 7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _opens(reader: PdfReader, password: str) -> bool:
    try:
        return bool(reader.decrypt(password))
    except DependencyError:
        raise
    except Exception:
        if password:  # what is said of it could hold letters of it
            return False
        raise


def _open(file: SourceFile, passwords: Sequence[str]) -> PdfReader | Rejected:
    if b"%%EOF" not in file.data and b"startxref" not in file.data:
        return _rejected(file, FileStatus.DAMAGED, "the file is cut off: its end mark is missing")
    try:
        reader = PdfReader(io.BytesIO(file.data), strict=False)
        if reader.is_encrypted and not any(_opens(reader, password) for password in ("", *passwords)):
            reason = "none of the passwords given opens it" if passwords else "a password is needed to read it"
            return _rejected(file, FileStatus.ENCRYPTED, reason)
        pages = len(reader.pages)
    except DependencyError as error:
        return _rejected(file, FileStatus.FAILED, f"cannot be decrypted here: {error}")
    except Exception as error:  # noqa: BLE001 - a broken file can raise anything, it must not stop the run
        return _rejected(file, FileStatus.DAMAGED, f"cannot be read as PDF: {_short(error)}")
    if not pages:
        return _rejected(file, FileStatus.DAMAGED, "no page could be found in it")
    return reader


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {clean_line(str(error))[:150]}".rstrip(": ")


def _outline(reader: PdfReader) -> list[Bookmark]:
    marks: list[Bookmark] = []

    def walk(entries: list[Any], depth: int) -> None:
        for entry in entries:
            if isinstance(entry, list):
                walk(entry, depth + 1)
                continue
            page = reader.get_destination_page_number(entry)
            if page is not None and page >= 0:
                marks.append(Bookmark(clean_line(str(entry.title)), page + 1, min(depth, 6)))

    walk(reader.outline, 1)
    return marks


def _attempt(call: Any, fallback: Any) -> Any:
    """What `call` returns, or `fallback`: labels, outline and metadata are welcome but never worth the file."""
    try:
        return call()
    except Exception:  # noqa: BLE001
        return fallback


def _page(page: PageObject, number: int, reading: _Reading) -> list[PdfLine]:
    try:
        lines, raw = page_lines(page, number)
    except LimitReachedError:
        reading.bombs.append(number)
        return []
    except Exception:  # noqa: BLE001 - one broken page does not cost the others
        reading.broken.append(number)
        return []
    if letters_run_together(raw) > _SUSPECT:
        wide = str(_attempt(lambda: page.extract_text(extraction_mode="layout"), ""))
        # Layout mode leaves out what is turned or overlaps: words apart are no gain when others are lost.
        whole = sum(map(str.isalnum, wide)) >= _KEPT_LETTERS * sum(map(str.isalnum, raw))
        if whole and letters_run_together(wide) < letters_run_together(raw) / 2:
            lines, raw = plain_lines(wide, number), wide
        else:
            reading.together.append(number)
    reading.raw.append(raw)
    return lines


def _read(reader: PdfReader) -> _Reading:
    reading = _Reading()
    for index in range(len(reader.pages)):
        page = _attempt(lambda index=index: reader.pages[index], None)
        if page is None:
            reading.broken.append(index + 1)
            reading.pages.append([])
            continue
        reading.pages.append(_page(page, index + 1, reading))
    labels = _attempt(lambda: reader.page_labels, [])
    reading.labels = [clean_line(str(label)) for label in labels] if len(labels) == len(reading.pages) else []
    reading.bookmarks = _attempt(lambda: _outline(reader), [])
    info = _attempt(lambda: reader.metadata, None) or {}
    for key, name in (
        ("/Title", "title"),
        ("/Author", "author"),
        ("/Subject", "subject"),
        ("/Keywords", "keywords"),
    ):
        value = _attempt(lambda key=key: clean_line(str(info[key])), "")
        if value:
            reading.info[name] = value
    reading.attachments = [clean_line(str(name)) for name in _attempt(lambda: list(reader.attachments), [])]
    return reading


def _assemble(flow: Flow) -> tuple[str, list[Span], dict[int, tuple[int, int]]]:
    """The text, its spans, and for every page that has text where it begins and ends."""
    parts: list[str] = []
    spans: list[Span] = []
    begins: dict[int, tuple[int, int]] = {}
    at = 0

    def put(text: str) -> None:
        nonlocal at
        parts.append(text)
        at += len(text)

    before = ""
    for piece in flow.pieces:
        if at:
            put("\n" if before == piece.kind == "list_item" else "\n\n")
        start = at
        for line, gap in flow.joined(piece):
            if gap == "-":
                parts[-1] = parts[-1][:-1]
                at -= 1
            else:
                put(gap)
            begins.setdefault(line.page, (at, at))
            put(" | ".join(line.cells) if piece.kind == "table" else line.text)
            begins[line.page] = (begins[line.page][0], at)
        spans.append(Span(piece.kind, start, at, piece.level))
        before = piece.kind
    return "".join(parts), spans, begins


def _pages(reading: _Reading, begins: dict[int, tuple[int, int]]) -> tuple[Page, ...]:
    pages: list[Page] = []
    at = 0
    for index in range(len(reading.pages)):
        start, end = begins.get(index + 1, (at, at))
        label = reading.labels[index] if reading.labels else str(index + 1)
        pages.append(Page(index + 1, start, end, label))
        at = end
    return tuple(pages)


def _title(reading: _Reading, file: SourceFile) -> str:
    """The metadata's title unless a program made it up; else "", and the first heading is taken."""
    title = reading.info.get("title", "")
    if 3 <= len(title) <= 250 and not _JUNK_TITLE.search(title) and title != readable_name(file.source):
        return title
    return ""


def _notes(reading: _Reading) -> tuple[str, ...]:
    told = {*reading.broken, *reading.bombs}
    empty = [i + 1 for i, lines in enumerate(reading.pages) if not lines and i + 1 not in told]
    notes = list(clean("\n".join(reading.raw))[1])
    if empty:
        notes.append(f"pages without text: {_listed(empty)}")
    if reading.broken:
        notes.append(f"pages that could not be read: {_listed(reading.broken)}")
    if reading.bombs:
        notes.append(f"pages that unpack to more than the limit: {_listed(reading.bombs)}")
    if reading.together:
        notes.append(f"pages whose words run together: {_listed(reading.together)}")
    if reading.attachments:
        notes.append(f"attached files not read: {', '.join(reading.attachments)[:200]}")
    return tuple(notes)


def extract_pdf(file: SourceFile, passwords: Sequence[str] = ()) -> Document | Rejected:
    """The text of a PDF, page by page, without running titles.

    `encrypted` when neither the empty password nor one of `passwords` opens it, `damaged` when it is cut or broken,
    `no_text` when no page has text (a scan), `too_large` when a page unpacks to more than pypdf's limit. Never raises
    for what is in a file.
    """
    with _quiet():
        reader = _open(file, passwords)
        if isinstance(reader, Rejected):
            return reader
        reading = _read(reader)
    count = len(reading.pages)
    if not any(reading.pages):
        if reading.bombs:
            return _rejected(file, FileStatus.TOO_LARGE, "a page unpacks to more than the limit of the reader")
        if len(reading.broken) == count:
            return _rejected(file, FileStatus.DAMAGED, f"none of its {count} pages could be read")
        return _rejected(file, FileStatus.NO_TEXT, f"no text on pages {_listed(list(range(1, count + 1)))} (a scan?)")
    pages = keep_marked(drop_running_lines(reading.pages), reading.pages, reading.bookmarks)
    lines = [line for page in pages for line in page]
    flow = Flow(lines or [line for page in reading.pages for line in page], reading.bookmarks)
    text, spans, begins = _assemble(flow)
    metadata: dict[str, Any] = {key: value for key, value in reading.info.items() if key != "title"}
    metadata["pages"] = count
    return make_document(
        file,
        text,
        spans,
        title=_title(reading, file),
        pages=_pages(reading, begins),
        metadata=metadata,
        notes=_notes(reading),
    )
