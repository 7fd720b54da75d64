"""PDF: pages with number and label, headings by outline or looks, paragraphs put together again."""

import io
import logging
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pypdf import PdfReader
from pypdf.errors import DependencyError

from agent_server.ingest.extract.pdf_flow import Flow
from agent_server.ingest.extract.pdf_lines import drop_running_lines
from agent_server.ingest.extract.pdf_marks import keep_marked
from agent_server.ingest.extract.pdf_read import Reading, listed, notes_of, read_pages
from agent_server.ingest.extract.shared import Span, make_document, readable_name
from agent_server.ingest.hygiene import clean_line
from agent_server.models import Document, FileStatus, Page, Rejected, SourceFile

_JUNK_TITLE = re.compile(
    r"untitled|microsoft word|\.(?:docx?|dvi|tex|indd|pdf|qxd|ppt|xlsx?)\s*$|^[\W\d_]*$|^(?:paper )?title\b(?:$| \()",
    re.I,
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


def _rejected(file: SourceFile, status: FileStatus, reason: str) -> Rejected:
    return Rejected(file.source, status, reason, file.sha256, file.size_bytes, file.media_type)


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


def _pages(reading: Reading, begins: dict[int, tuple[int, int]]) -> tuple[Page, ...]:
    pages: list[Page] = []
    at = 0
    for index in range(len(reading.pages)):
        start, end = begins.get(index + 1, (at, at))
        label = reading.labels[index] if reading.labels else str(index + 1)
        pages.append(Page(index + 1, start, end, label))
        at = end
    return tuple(pages)


def _title(reading: Reading, file: SourceFile) -> str:
    """The metadata's title unless a program made it up; else "", and the first heading is taken."""
    title = reading.info.get("title", "")
    if 3 <= len(title) <= 250 and not _JUNK_TITLE.search(title) and title != readable_name(file.source):
        return title
    return ""


def _without_text(file: SourceFile, reading: Reading) -> Rejected:
    """Why no page has text."""
    count = len(reading.pages)
    every = listed(list(range(1, count + 1)))
    if reading.bombs:
        return _rejected(file, FileStatus.TOO_LARGE, "a page unpacks to more than the limit of the reader")
    if len(reading.broken) == count:
        return _rejected(file, FileStatus.DAMAGED, f"none of its {count} pages could be read")
    if reading.mute:
        reason = f"no text on pages {every} (no font says what the letters of pages {listed(reading.mute)} are)"
        return _rejected(file, FileStatus.NO_TEXT, reason)
    beside = f"; a few letters beside the pictures of {listed(reading.pictures)}" if reading.pictures else ""
    return _rejected(file, FileStatus.NO_TEXT, f"no text on pages {every} (a scan?{beside})")


def extract_pdf(file: SourceFile, passwords: Sequence[str] = ()) -> Document | Rejected:
    """The text of a PDF, page by page, without running titles.

    `encrypted` when neither the empty password nor one of `passwords` opens it, `damaged` when it is cut or broken,
    `no_text` when no page has text (a scan, or letters that no font explains), `too_large` when a page unpacks to more
    than pypdf's limit. Never raises for what is in a file.
    """
    with _quiet():
        reader = _open(file, passwords)
        if isinstance(reader, Rejected):
            return reader
        reading = read_pages(reader)
    count = len(reading.pages)
    if not any(lines for number, lines in enumerate(reading.pages, 1) if number not in reading.pictures):
        return _without_text(file, reading)
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
        notes=notes_of(reading),
    )
