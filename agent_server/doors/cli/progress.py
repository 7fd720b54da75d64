"""Watches an ingestion: a line a file on standard output, a bar on standard error where that is a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from agent_server.doors.cli import output

if TYPE_CHECKING:
    from rich.progress import Progress

    from agent_server.ingest.plan import Step
    from agent_server.ingest.report import Outcome


def line(outcome: "Outcome") -> str:
    """`+ source  12 chunks`, `= source`, `~ new (was old)`, `- source`, `! source  reason`."""
    head = f"{outcome.mark} {outcome.source}"
    match outcome.mark:
        case "+":
            count = f"  {outcome.chunks} chunk{'' if outcome.chunks == 1 else 's'}" if outcome.chunks else ""
            text = f"{head}{count}" + (f"  ({outcome.reason})" if outcome.reason else "")
        case "~":
            text = head + (f" ({outcome.reason})" if outcome.reason else "")
        case "!":
            text = f"{head}  {outcome.reason or outcome.status}"
        case _:
            text = head + (f"  ({outcome.reason})" if outcome.reason else "")
    return output.clean(text).replace("\n", " ")


class Lines:
    """Prints outcomes as they come. A reader that went away does not stop the work half way."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet

    def planned(self, steps: "Sequence[Step]") -> None: ...

    def embedding(self, source: str, done: int, total: int) -> None: ...

    def finished(self, outcome: "Outcome") -> None:
        if self._quiet:
            return
        try:
            self._print(line(outcome))
        except (typer.Exit, BrokenPipeError):
            self._quiet = True

    def indexing(self) -> None: ...

    def _print(self, text: str) -> None:
        output.write(text)


class Bars(Lines):
    """Lines, and two bars: files, and the passages of the file that is being embedded."""

    def __init__(self, progress: "Progress", *, quiet: bool = False) -> None:
        super().__init__(quiet=quiet)
        self._progress = progress
        self._files = progress.add_task("files", total=0, what="")
        self._passages = progress.add_task("passages", total=0, what="", visible=False)

    def planned(self, steps: "Sequence[Step]") -> None:
        total = self._progress.tasks[self._files].total or 0
        self._progress.update(self._files, total=total + len(steps))

    def embedding(self, source: str, done: int, total: int) -> None:
        self._progress.update(self._passages, completed=done, total=total, what=source, visible=total > 0)

    def finished(self, outcome: "Outcome") -> None:
        super().finished(outcome)
        self._progress.update(self._passages, visible=False)
        self._progress.advance(self._files)

    def indexing(self) -> None:
        self._progress.update(self._files, what="building indexes")

    def _print(self, text: str) -> None:
        if sys.stdout.isatty():  # the same terminal: above the bars, not through them
            self._progress.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            super()._print(text)


@contextlib.contextmanager
def bar() -> Iterator[Callable[[str, int, int], None]]:
    """One bar for a long piece of work: told what goes on, how much is done and how much there is. Without a terminal
    on standard error it says nothing."""
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    with _progress("{task.description:>21}") as progress:
        task = progress.add_task("", total=None, what="")
        yield lambda what, done, total: progress.update(task, description=what, completed=done, total=total)


@contextlib.contextmanager
def reporter(*, quiet: bool) -> Iterator[Lines]:
    """A reporter for `ingest`; `quiet` prints no lines (the result is printed as JSON at the end)."""
    if not sys.stderr.isatty():
        yield Lines(quiet=quiet)
        return
    with _progress("{task.description:>8}") as progress:
        yield Bars(progress, quiet=quiet)


def _progress(description: str) -> "Progress":
    """Bars on standard error that vanish at the end."""
    from rich.console import Console  # noqa: PLC0415  only a terminal needs it
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    columns: list[Any] = [
        TextColumn(description),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[what]}", markup=False),
    ]
    console = Console(stderr=True, no_color=not output.is_coloured(sys.stderr))
    return Progress(*columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False)
