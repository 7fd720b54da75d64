"""What the extractors share: spans into blocks, pieces into a text, titles and dates."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import Any

from agent_server.ingest.hygiene import clean, clean_line, clean_value
from agent_server.models import Block, BlockKind, Document, FileStatus, Mark, Page, Rejected, SourceFile

MAX_LEVEL = 6
MAX_METADATA = 16_000  #: characters of JSON for a document
MAX_VALUE = 6_000  #: for one value
_KEY_CHARS = 100
_NAMED_KEYS = 10
_TITLE_CHARS = 300


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the text before the headings above it are known; `title` is set for headings."""

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    title: str = ""


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The stretch without blank lines before and blanks after it; the indentation of its first line stays."""
    stretch = text[start:end]
    end = start + len(stretch.rstrip())
    lead = len(stretch) - len(stretch.lstrip())
    if start + lead < end:
        start = max(start, text.rfind("\n", start, start + lead) + 1)
    return start, end


def _gap(text: str, start: int, end: int) -> Iterable[Span]:
    if text[start:end].strip():
        yield Span("paragraph", start, end)


def to_blocks(text: str, spans: Iterable[Span]) -> tuple[Block, ...]:
    """Blocks in order with their headings. Spans may leave gaps; text in a gap becomes a paragraph."""
    ordered: list[Span] = []
    at = 0
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        start = max(span.start, at)
        if start >= span.end:
            continue
        ordered.extend(_gap(text, at, start))
        ordered.append(Span(span.kind, start, span.end, span.level, span.title))
        at = span.end
    ordered.extend(_gap(text, at, len(text)))

    blocks: list[Block] = []
    open_headings: list[tuple[int, str]] = []
    for span in ordered:
        start, end = _trimmed(text, span.start, span.end)
        if start >= end:
            continue
        level = 0
        if span.kind == "heading":
            level = min(max(span.level, 1), MAX_LEVEL)
            while open_headings and open_headings[-1][0] >= span.level:
                open_headings.pop()
            title = (clean_line(span.title) or clean_line(text[start:end]))[:_TITLE_CHARS].rstrip()
            open_headings.append((span.level, title))
        blocks.append(Block(span.kind, start, end, tuple(title for _, title in open_headings), level))
    return tuple(blocks)


@dataclass(slots=True)
class TextBuilder:
    """Joins pieces into one clean text and remembers where each came to lie."""

    parts: list[str] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    length: int = 0
    _raw: list[str] = field(default_factory=list)

    def add(self, kind: BlockKind, raw: str, *, level: int = 0, title: str = "", tight: bool = False) -> None:
        """Append a piece as a block of its own; `tight` puts it on the next line instead of after a blank one."""
        self._raw.append(raw)
        piece = clean(raw)[0].strip("\n").rstrip()
        if not piece.strip():
            return
        gap = "" if not self.length else "\n" if tight else "\n\n"
        self.parts += (gap, piece)
        start = self.length + len(gap)
        self.length = start + len(piece)
        heading = (title or piece) if kind == "heading" else ""
        self.spans.append(Span(kind, start, self.length, level, heading))

    @property
    def text(self) -> str:
        return "".join(self.parts)

    @property
    def notes(self) -> tuple[str, ...]:
        """What cleaning took out of all the pieces together."""
        return clean("\n".join(self._raw))[1]


def readable_name(source: str) -> str:
    """A title made of a file name: `policies/5112-late_fees.md` -> `5112 late fees`."""
    stem = PurePosixPath(source).stem
    return " ".join(re.sub(r"[-_+.\s]+", " ", stem).split()) or source


def first_heading(blocks: Sequence[Block]) -> str:
    """The first heading's own title, or ""."""
    return next((block.heading_path[-1] for block in blocks if block.kind == "heading"), "")


def parse_date(value: object) -> date | None:
    """A date written YYYY-MM-DD (a time after it is cut off), or None."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    found = re.fullmatch(r"(\d{4}-\d{2}-\d{2})(?:[T ].*)?", str(value).strip())
    try:
        return date.fromisoformat(found[1]) if found else None
    except ValueError:
        return None


def dated_note(name: str, value: object) -> str:
    """The note for a date that cannot be read."""
    return f"{name}: found {clean_line(str(value))[:60]!r}, expected YYYY-MM-DD"


def is_true(value: object) -> bool:
    return value is True or str(value).strip().lower() in {"true", "yes", "1"}


def bounded(metadata: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Clean metadata of at most MAX_METADATA characters of JSON, and a note on what was cut or left out.

    A long string is cut, a long list or mapping left out; once the whole is full, what comes later is left out too.
    """
    kept: dict[str, Any] = {}
    short: list[str] = []
    left = MAX_METADATA
    for key, whole in clean_value(dict(metadata)).items():
        cut = isinstance(whole, str) and len(json.dumps(whole)) > MAX_VALUE
        value = whole[: MAX_VALUE // 6 - 1] + "…" if cut else whole  # an escaped letter takes six characters
        size = len(json.dumps(value)) + len(key)
        fits = size <= min(MAX_VALUE + _KEY_CHARS, left) and len(key) <= _KEY_CHARS
        if fits:
            kept[key] = value
            left -= size
        if cut or not fits:
            short.append(key)
    if not short:
        return kept, ()
    named = ", ".join(key[:_KEY_CHARS] for key in short[:_NAMED_KEYS])
    more = f" and {len(short) - _NAMED_KEYS} more" if len(short) > _NAMED_KEYS else ""
    return kept, (f"metadata too long, cut or left out: {named}{more}",)


def make_document(
    file: SourceFile,
    text: str,
    spans: Iterable[Span],
    *,
    title: str = "",
    pages: tuple[Page, ...] = (),
    dated: date | None = None,
    retired: bool = False,
    metadata: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
    marks: tuple[Mark, ...] = (),
) -> Document | Rejected:
    """The document, with the best title at hand, or `empty` when there is no text. `text` must be clean."""
    if not text.strip():
        return Rejected(
            file.source,
            FileStatus.EMPTY,
            "holds no text",
            file.sha256,
            file.size_bytes,
            file.media_type,
        )
    blocks = to_blocks(text, spans)
    kept, cut = bounded(metadata or {})
    name = clean_line(title) or first_heading(blocks) or readable_name(file.source)
    return Document(
        title=name[:_TITLE_CHARS].rstrip(),
        text=text,
        blocks=blocks,
        pages=pages,
        dated=dated,
        retired=retired,
        metadata=kept,
        notes=(*notes, *cut),
        marks=marks,
    )
