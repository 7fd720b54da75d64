"""The pages of a PDF, one after the other: their lines, their labels, and what is odd about them."""

from dataclasses import dataclass, field
from typing import Any

from pypdf import PageObject, PdfReader
from pypdf.errors import LimitReachedError

from agent_server.ingest.extract.pdf_columns import in_columns, mixed_columns
from agent_server.ingest.extract.pdf_lines import (
    PdfLine,
    column_lines,
    letters_run_together,
    page_lines,
    plain_lines,
)
from agent_server.ingest.extract.pdf_marks import Bookmark
from agent_server.ingest.extract.pdf_text import Drawn, covered, draw
from agent_server.ingest.hygiene import clean, clean_line

_SUSPECT = 0.08  #: share of letters in impossible words from which on a page is read in another way
_KEPT_LETTERS = 0.98  #: share of the letters that another way of reading has to find
_COVERED = 0.5  #: share of a page from which on a picture is the page
_LISTED_RUNS = 40
_LABEL_LETTERS = 16  #: beside such a picture, below which they are no text of the page


@dataclass(slots=True)
class Reading:
    """What came out of the pages before they are put together."""

    pages: list[list[PdfLine]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    bookmarks: list[Bookmark] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)
    bombs: list[int] = field(default_factory=list)  #: pages that unpack to more than pypdf's limits
    together: list[int] = field(default_factory=list)
    mute: list[int] = field(default_factory=list)  #: pages with letters that nobody can tell
    columns: list[int] = field(default_factory=list)  #: pages that were drawn across their columns
    pictures: list[int] = field(default_factory=list)  #: pages that are a picture with hardly a word beside it
    info: dict[str, str] = field(default_factory=dict)
    attachments: list[str] = field(default_factory=list)


def listed(numbers: list[int]) -> str:
    """`1-3, 7`; what comes after many of them is counted."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    told = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs[:_LISTED_RUNS])
    rest = sum(map(len, runs[_LISTED_RUNS:]))
    return f"{told} and {rest} more" if rest else told


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


def _page(page: PageObject, number: int, reading: Reading) -> list[PdfLine]:
    try:
        drawn = draw(page)
    except LimitReachedError:
        reading.bombs.append(number)
        return []
    except Exception:  # noqa: BLE001 - one broken page does not cost the others
        reading.broken.append(number)
        return []
    if drawn.mute:
        reading.mute.append(number)
    raw = drawn.text
    lines = _columns(page, number, drawn)
    if lines:
        reading.columns.append(number)
        raw = "\n".join(line.text for line in lines)
    else:
        lines = page_lines(drawn, number)
    if letters_run_together(raw) > _SUSPECT:
        wide = str(_attempt(lambda: page.extract_text(extraction_mode="layout"), ""))
        # Layout mode leaves out what is turned or overlaps: words apart are no gain when others are lost.
        whole = sum(map(str.isalnum, wide)) >= _KEPT_LETTERS * sum(map(str.isalnum, raw))
        if whole and letters_run_together(wide) < letters_run_together(raw) / 2:
            lines, raw = plain_lines(wide, number), wide
        else:
            reading.together.append(number)
    reading.raw.append(raw)
    if lines and sum(map(str.isalnum, raw)) < _LABEL_LETTERS and _attempt(lambda: covered(page), 0.0) >= _COVERED:
        reading.pictures.append(number)
    return lines


def _columns(page: PageObject, number: int, drawn: Drawn) -> list[PdfLine]:
    """The lines of a page that is drawn across its columns, in reading order; [] for any other page."""
    if not mixed_columns(drawn.spots):
        return []
    fine = _attempt(lambda: draw(page, fine=True), drawn)
    return column_lines(in_columns(fine.fragments), number)


def read_pages(reader: PdfReader) -> Reading:
    """All pages of an open PDF. Never raises for what is on them."""
    reading = Reading()
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


def notes_of(reading: Reading) -> tuple[str, ...]:
    """What was found odd, for the file's record."""
    told = {*reading.broken, *reading.bombs}
    empty = [i + 1 for i, lines in enumerate(reading.pages) if not lines and i + 1 not in told]
    notes = list(clean("\n".join(reading.raw))[1])
    if empty:
        notes.append(f"pages without text: {listed(empty)}")
    if reading.broken:
        notes.append(f"pages that could not be read: {listed(reading.broken)}")
    if reading.bombs:
        notes.append(f"pages that unpack to more than the limit: {listed(reading.bombs)}")
    if reading.together:
        notes.append(f"pages whose words run together: {listed(reading.together)}")
    if reading.mute:
        notes.append(f"pages with letters that no font explains, left out: {listed(reading.mute)}")
    if reading.columns:
        notes.append(f"pages drawn across their columns, put in order: {listed(reading.columns)}")
    if reading.pictures:
        notes.append(f"pages that are pictures with a few letters beside them: {listed(reading.pictures)}")
    if reading.attachments:
        notes.append(f"attached files not read: {', '.join(reading.attachments)[:200]}")
    return tuple(notes)
