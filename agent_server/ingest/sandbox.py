"""Reads files in a child process: a bomb, an endless loop or a crash in a parser costs one file, not the run.

The child holds the bytes and the text; what comes back are chunks and the facts of the file.
"""

import ctypes
import multiprocessing
import multiprocessing.connection
import signal
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from agent_server.ingest.chunk import chunk_document
from agent_server.ingest.extract import extract
from agent_server.ingest.validate import read_source
from agent_server.models import Chunk, Document, FileStatus, Rejected, SourceFile

_PR_SET_PDEATHSIG = 1
MEMORY_BYTES = 4 * 1024**3  # of address space; libraries map much that they never touch


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


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that was read: its facts (`file.data` is empty), its document without text and blocks, its chunks."""

    file: SourceFile
    document: Document
    chunks: tuple[Chunk, ...]


def read(task: Task) -> ReadFile | Rejected:
    """Bytes -> document -> chunks, in this process. A fault of ours becomes `failed` with its place in the code."""
    file: SourceFile | Rejected | None = None
    try:
        file = read_source(task.path, task.root, max_bytes=task.max_bytes)
        if isinstance(file, Rejected):
            return file
        document = extract(file, task.passwords)
        if isinstance(document, Rejected):
            return document
        chunks = tuple(chunk_document(document, size=task.chunk_size, overlap=task.chunk_overlap))
    except MemoryError:
        return _rejected(task, file, FileStatus.TOO_LARGE, "needs more memory than reading a file may take")
    except RecursionError:
        return _rejected(task, file, FileStatus.TOO_LARGE, "is nested too deeply")
    except OSError as error:
        return _rejected(task, file, FileStatus.FAILED, f"cannot be read: {error.strerror or error}")
    except Exception as error:  # noqa: BLE001  whatever a parser throws costs this file alone, and is said
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        return _rejected(task, file, FileStatus.FAILED, f"reading failed: {type(error).__name__}: {error} ({where})")
    light = SourceFile(file.path, file.source, b"", file.sha256, file.size_bytes, file.media_type)
    facts = Document(document.title, "", (), (), document.dated, document.retired, document.metadata, document.notes)
    return ReadFile(light, facts, chunks)


class Sandbox:
    """A child process that reads one file after another; started at the first, anew after one that broke it."""

    def __init__(self, timeout_s: float, work: Callable[[Task], ReadFile | Rejected] = read) -> None:
        self.timeout_s = timeout_s
        self._work = work
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: multiprocessing.connection.Connection | None = None

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, task: Task) -> ReadFile | Rejected:
        """What `read` answers for `task`; `too_large` over the time limit, `damaged` when the child dies of it."""
        pipe = self._started()
        try:
            pipe.send(task)
            if not pipe.poll(self.timeout_s):
                self.close()
                reason = f"took longer than {self.timeout_s:g} s to read"
                return _rejected(task, None, FileStatus.TOO_LARGE, reason)
            answer: ReadFile | Rejected = pipe.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError):
            code = self._process.exitcode if self._process is not None else None
            self.close()
            return _rejected(task, None, FileStatus.DAMAGED, f"the reading process died of it (exit code {code})")
        return answer

    def close(self) -> None:
        """End the child."""
        process, pipe, self._process, self._pipe = self._process, self._pipe, None, None
        if pipe is not None:
            pipe.close()
        if process is not None:
            process.kill()
            process.join()
            process.close()

    def _started(self) -> multiprocessing.connection.Connection:
        if self._pipe is None:
            # spawn: a fork would copy locks that database and embedder threads hold
            context = multiprocessing.get_context("spawn")
            ours, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs, self._work), daemon=True)
            self._process.start()
            theirs.close()
            self._pipe = ours
        return self._pipe


def _serve(pipe: multiprocessing.connection.Connection, work: Callable[[Task], ReadFile | Rejected]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    with suppress(AttributeError, OSError):  # Linux alone can do it
        # Killed with the parent: a bomb would go on computing for nobody.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415  absent on Windows

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while True:
            pipe.send(work(pipe.recv()))


def _rejected(task: Task, file: SourceFile | Rejected | None, status: FileStatus, reason: str) -> Rejected:
    """With the hash where it is known: what is settled is not tried again until the bytes change."""
    if file is not None:
        return Rejected(task.source, status, reason, file.sha256, file.size_bytes, file.media_type)
    return Rejected(task.source, status, reason)
