"""One file from bytes to prepared passages: validate -> extract -> chunk -> prepare, as a stream of what is known.

What comes first is what the file is, then its passages part by part, at last what it says of itself. A file that is
not taken ends with `Rejected`, wherever that turns out. Runs in a child process (`sandbox`).
"""

import hashlib
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agent_server.ingest.chunk import chunk_document
from agent_server.ingest.extract import extract
from agent_server.ingest.extract.windows import documents
from agent_server.ingest.large import cut_markdown, cut_plain, windows
from agent_server.ingest.prepare import Part, prepare
from agent_server.ingest.validate import open_regular, read_source
from agent_server.models import Chunk, Document, FileStatus, LargeText, Rejected, SourceFile

PART_PASSAGES = 256
#: Plain text and Markdown above this size are read in windows.
HOLD_BYTES = 8 * 1024 * 1024
_MAX_NOTES = 20


@dataclass(frozen=True, slots=True)
class Task:
    """One file to be read, and how it is to be cut."""

    path: Path
    root: Path
    source: str
    max_bytes: int
    chunk_size: int
    chunk_overlap: int
    passwords: tuple[str, ...] = field(default=(), repr=False)  #: tried on encrypted PDFs; never logged or stored
    hold_bytes: int = HOLD_BYTES


@dataclass(frozen=True, slots=True)
class Opened:
    """The file is of a kind that is read."""

    source: str
    sha256: str
    size_bytes: int
    media_type: str


@dataclass(frozen=True, slots=True)
class Finished:
    """All parts have been given; the document without its text and blocks."""

    document: Document


Read = Opened | Part | Finished | Rejected


def read(task: Task) -> Iterator[Read]:
    """`Opened`, parts, `Finished`; or `Rejected` at any point. A fault of ours is `failed` with its place in the
    code."""
    opened: Opened | None = None
    try:
        for got in _read(task):
            opened = got if isinstance(got, Opened) else opened
            yield got
    except MemoryError:
        yield rejected(task, opened, FileStatus.TOO_LARGE, "needs more memory than reading a file may take")
    except RecursionError:
        yield rejected(task, opened, FileStatus.TOO_LARGE, "is nested too deeply")
    except OSError as error:
        yield rejected(task, opened, FileStatus.FAILED, f"cannot be read: {error.strerror or error}")
    except Exception as error:  # noqa: BLE001  whatever a parser throws costs this file alone, and is said
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        yield rejected(task, opened, FileStatus.FAILED, f"reading failed: {type(error).__name__}: {error} ({where})")


def rejected(task: Task, opened: Opened | None, status: FileStatus, reason: str) -> Rejected:
    """With the hash where it is known: what is settled is not tried again until the bytes change."""
    if opened is None:
        return Rejected(task.source, status, reason)
    return Rejected(task.source, status, reason, opened.sha256, opened.size_bytes, opened.media_type)


def _read(task: Task) -> Iterator[Read]:
    file = read_source(task.path, task.root, max_bytes=task.max_bytes, hold_bytes=task.hold_bytes)
    if isinstance(file, Rejected):
        yield file
        return
    opened = Opened(file.source, file.sha256, file.size_bytes, file.media_type)
    yield opened
    if isinstance(file, LargeText):
        yield from _in_windows(task, file, opened)
    else:
        yield from _whole(task, file)


def _whole(task: Task, file: SourceFile) -> Iterator[Read]:
    document = extract(file, task.passwords)
    if isinstance(document, Rejected):
        yield document
        return
    yield from _parts(chunk_document(document, size=task.chunk_size, overlap=task.chunk_overlap))
    yield Finished(replace(document, text="", blocks=(), pages=()))


def _in_windows(task: Task, file: LargeText, opened: Opened) -> Iterator[Read]:
    stream = open_regular(file.path)
    if isinstance(stream, tuple):
        yield rejected(task, opened, *stream)
        return
    digest = hashlib.sha256()
    cut = cut_plain if file.media_type == "text/plain" else cut_markdown
    last: Document | None = None
    notes: dict[str, None] = {}
    passages = characters = 0
    with stream:
        for document in documents(file, windows(stream, file.encoding, cut, watch=digest.update)):
            chunks = chunk_document(document, size=task.chunk_size, overlap=task.chunk_overlap)
            yield from _parts([_moved(c, passages, characters) for c in chunks])
            passages += len(chunks)
            characters += len(document.text)
            notes |= dict.fromkeys(document.notes[:_MAX_NOTES] if len(notes) < _MAX_NOTES else ())
            last = document
    if digest.hexdigest() != file.sha256:
        yield rejected(task, opened, FileStatus.FAILED, "changed while it was read")
    elif last is None:
        yield rejected(task, opened, FileStatus.EMPTY, "holds no text")
    else:
        yield Finished(replace(last, text="", blocks=(), pages=(), notes=tuple(notes)))


def _moved(chunk: Chunk, passages: int, characters: int) -> Chunk:
    """The chunk counted from the beginning of the document instead of from its window's."""
    start, end = chunk.char_start + characters, chunk.char_end + characters
    return replace(chunk, index=chunk.index + passages, char_start=start, char_end=end)


def _parts(chunks: Sequence[Chunk]) -> Iterator[Part]:
    for at in range(0, len(chunks), PART_PASSAGES):
        yield prepare(chunks[at : at + PART_PASSAGES])
