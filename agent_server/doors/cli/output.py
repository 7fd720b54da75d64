"""What the command line writes: results on standard output, everything else on standard error."""

import io
import json
import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Annotated, Any, Literal, TextIO

import typer

from agent_server.errors import KnowledgeBankError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON value, and nothing else, on standard output.")]

#: What a shell reports for a program whose reader went away.
BROKEN_PIPE = 141
_STYLES = {"bold": "1", "dim": "2", "red": "31"}
_WIDEST = 110


def prepare_streams() -> None:
    """Characters that an encoding lacks are shown escaped or replaced instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")


def emit(value: Any) -> None:
    """Print `value` as JSON."""
    write(json.dumps(value, ensure_ascii=False, indent=2, default=_plain))


def write(text: str = "") -> None:
    """A line of results. Raises typer.Exit when nobody reads any more."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
        raise typer.Exit(BROKEN_PIPE) from None


def silence_stdout() -> None:
    """Point standard output at nothing, so that the flush at exit does not complain of a closed pipe."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)


def note(text: str) -> None:
    """A line for people, beside the results."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def show_error(error: KnowledgeBankError, *, as_json: bool) -> None:
    """Message and hint on standard error; with `as_json` the one error shape of all doors."""
    if as_json:
        note(json.dumps(error.to_json(), ensure_ascii=False, default=_plain))
        return
    note(f"{style('error:', 'red', sys.stderr)} {clean(error.message)}")
    if error.hint:
        note(f"hint: {clean(error.hint)}")


def style(text: str, how: Literal["bold", "dim", "red"], stream: TextIO | None = None) -> str:
    """`text` with terminal codes, where `stream` (default: standard output) is a terminal that wants them."""
    return f"\x1b[{_STYLES[how]}m{text}\x1b[0m" if is_coloured(stream or sys.stdout) else text


def is_coloured(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def clean(text: str) -> str:
    """`text` without what could drive a terminal: documents may hold escape sequences."""
    return "".join(
        c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf") else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def width() -> int:
    """Columns to fill."""
    return max(40, min(shutil.get_terminal_size((100, 24)).columns, _WIDEST))


def wrapped(text: str, indent: str = "    ") -> str:
    """`text` cleaned and wrapped to the terminal; its own line breaks stay."""
    out: list[str] = []
    for line in clean(text).expandtabs(4).splitlines():
        lead = indent + " " * min(len(line) - len(line.lstrip()), 12)
        out.extend(
            textwrap.wrap(line.strip(), width(), initial_indent=lead, subsequent_indent=lead, break_on_hyphens=False)
            or [""]
        )
    return "\n".join(out)


def table(rows: Iterable[Sequence[Any]], head: Sequence[str]) -> str:
    """Aligned columns; the last is as long as it is. Columns of numbers are aligned right."""
    texts = [[_cell(cell) for cell in row] for row in rows]
    numeric = [bool(texts) and all(_is_number(row[n]) for row in texts) for n in range(len(head))]
    widths = [max(len(head[n]), *(len(row[n]) for row in texts)) if texts else len(head[n]) for n in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = [c.rjust(w) if right else c.ljust(w) for c, w, right in zip(cells, widths, numeric, strict=True)]
        return "  ".join(padded).rstrip()

    return "\n".join([style(line(head), "dim"), *(line(row) for row in texts)])


def _cell(value: Any) -> str:
    return "" if value is None else clean(str(value)).replace("\n", " ").replace("\t", " ")


def _is_number(text: str) -> bool:
    return text == "" or text.replace(",", "").replace(".", "", 1).lstrip("-").isdigit()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes | memoryview):
        return bytes(value).hex()
    return str(value)
