"""Reads files in a child process: a bomb, an endless loop or a crash in a parser costs one file, not the run.

The child holds the bytes and the text; what comes back are prepared passages, part by part, and the facts of the file.
The pipe holds little, so that the child reads no further ahead than one part.
"""

import ctypes
import multiprocessing
import multiprocessing.connection
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

from agent_server.errors import SandboxNotStarted
from agent_server.ingest.reading import Finished, Opened, Read, Task, read, rejected
from agent_server.models import FileStatus, Rejected

_PR_SET_PDEATHSIG = 1
_READY = "ready"
START_TIMEOUT_S = 60.0
MEMORY_BYTES = 4 * 1024**3  # of address space; libraries map much that they never touch


class Sandbox:
    """A child process that reads one file after another; started at the first, anew after one that broke it."""

    def __init__(self, timeout_s: float, work: Callable[[Task], Iterator[Read]] = read) -> None:
        self.timeout_s = timeout_s
        self._work = work
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: multiprocessing.connection.Connection | None = None

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, task: Task) -> Iterator[Read]:
        """What `reading.read` yields for `task`; ends with `too_large` when a step takes longer than the time limit,
        with `damaged` when the child dies of it. Neither is settled where the machine may be to blame.
        Raises SandboxNotStarted."""
        pipe = self._started()
        opened: Opened | None = None
        ended = False
        try:
            pipe.send(task)
            while not ended:
                if not pipe.poll(self.timeout_s):
                    self.close()
                    why = f"took longer than {self.timeout_s:g} s to read; the next run tries again"
                    yield replace(rejected(task, opened, FileStatus.TOO_LARGE, why), settled=False)
                    return
                got: Read = pipe.recv()
                opened = got if isinstance(got, Opened) else opened
                ended = isinstance(got, Finished | Rejected)
                yield got
        except (EOFError, BrokenPipeError, ConnectionResetError):
            code = self._exit_code()
            self.close()
            why = f"the reading process died of it (exit code {code})"
            # A machine that runs out of memory kills whoever is at hand.
            yield replace(rejected(task, opened, FileStatus.DAMAGED, why), settled=code != -signal.SIGKILL)
        finally:
            if not ended:
                self.close()  # what it was about to send belongs to nobody

    def _exit_code(self) -> int | None:
        if self._process is None:
            return None
        self._process.join(1)
        return self._process.exitcode

    def kill(self) -> None:
        """From another thread: end the child, so that the one that waits for it sees it die."""
        process = self._process
        if process is not None:
            with suppress(ValueError):  # closed meanwhile
                process.kill()

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
            process = context.Process(target=_serve, args=(theirs, self._work), daemon=True)
            process.start()
            theirs.close()
            self._process, self._pipe = process, ours
            self._require_ready(ours)
        return self._pipe

    def _require_ready(self, pipe: multiprocessing.connection.Connection) -> None:
        """Raise SandboxNotStarted unless the child is there: what keeps it from starting is no file's fault."""
        try:
            ready = pipe.poll(START_TIMEOUT_S) and pipe.recv() == _READY
        except (EOFError, ConnectionResetError):
            ready = False
        if not ready:
            code = self._exit_code()
            self.close()
            raise SandboxNotStarted(
                f"the process that reads files did not start (exit code {code})",
                hint="A script must ingest below `if __name__ == '__main__':`; else look at the memory left.",
            )


def _serve(pipe: multiprocessing.connection.Connection, work: Callable[[Task], Iterator[Read]]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    with suppress(AttributeError, OSError):  # Linux alone can do it
        # Killed with the parent: a bomb would go on computing for nobody.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415  absent on Windows

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        pipe.send(_READY)
        while True:
            for got in work(pipe.recv()):
                pipe.send(got)
