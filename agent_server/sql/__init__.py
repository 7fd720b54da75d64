"""Loads `.sql` files that psql runs unchanged and gives them to psycopg.

One statement (or one DDL script) a file, with a header of `-- in:`, `-- out:`, `-- uses:` lines. Variables are
psql's own: `:'name'::type` is a value, `:"name"` an identifier, `:name` a bare integer where the grammar allows
no parameter (the width in `halfvec(:dimensions)`). As in psql, nothing is replaced inside literals, dollar-quoted
bodies and comments.

Parts that only some searches need stand between psql's own lines `\\if :{?name}`, `\\else` and `\\endif`: they are in
the statement when the variable is given (psql: when it was set), so that a condition not asked for is not there.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from psycopg import sql

HERE = Path(__file__).parent

_TOKENS = re.compile(
    r"""(?P<comment>--[^\n]*)
      | (?P<dollar>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
      | (?P<literal>'(?:[^']|'')*')
      | (?P<cast>::)
      | :'(?P<value>\w+)'
      | :"(?P<identifier>\w+)"
      | (?<!\w):(?P<integer>[a-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMAND = re.compile(r"\s*\\(?:(?P<word>if) :\{\?(?P<name>\w+)\}|(?P<other>else|endif))\s*")


@dataclass(frozen=True, slots=True)
class Statement:
    """A loaded file: alternating plain text and variables, as (kind, text) pairs."""

    name: str
    path: Path
    parts: tuple[tuple[str, str], ...]

    @property
    def values(self) -> tuple[str, ...]:
        """Names of the value variables, in order of first use."""
        return tuple(dict.fromkeys(text for kind, text in self.parts if kind == "value"))

    def query(self, *, identifiers: dict[str, str] | None = None, **integers: int) -> sql.Composed:
        """The statement for psycopg: values become `%(name)s`, identifiers are quoted, integers inlined.

        Raises KeyError for an identifier or integer that is not given, TypeError for one that is no integer.
        """
        given = identifiers or {}
        out: list[sql.Composable] = []
        for kind, text in self.parts:
            match kind:
                case "text":
                    # The only text vouched for as LiteralString is that of files shipped with this package.
                    out.append(sql.SQL(text.replace("%", "%%")))
                case "value":
                    out.append(sql.Placeholder(text))
                case "identifier":
                    out.append(sql.Identifier(given[text]))
                case _:
                    if not isinstance(integers[text], int):
                        raise TypeError(f"{self.name}: :{text} must be an integer, found {integers[text]!r}")
                    out.append(sql.Literal(int(integers[text])))
        return sql.Composed(out)

    def numbered(self, identifiers: dict[str, str] | None = None, **integers: int) -> str:
        """The statement with `$n` for values, as `EXPLAIN (GENERIC_PLAN)` wants it."""
        given = identifiers or {}
        position = {name: n for n, name in enumerate(self.values, 1)}
        out: list[str] = []
        for kind, text in self.parts:
            match kind:
                case "text":
                    out.append(text)
                case "value":
                    out.append(f"${position[text]}")
                case "identifier":
                    out.append('"' + given[text].replace('"', '""') + '"')
                case _:
                    out.append(str(int(integers[text])))
        return "".join(out)


def parse(name: str, path: Path, text: str, given: Iterable[str] = ()) -> Statement:
    """Split `text` into plain stretches and variables, with the optional parts that the variables `given` call for.

    Raises ValueError for an optional part that is not closed, or a line of psql's that is none of the three.
    """
    text = _chosen(name, text, frozenset(given))
    parts: list[tuple[str, str]] = []
    at = 0
    for match in _TOKENS.finditer(text):
        kind = next((k for k in ("value", "identifier", "integer") if match.group(k)), None)
        if kind is None:
            continue
        parts.append(("text", text[at : match.start()]))
        parts.append((kind, match.group(kind)))
        at = match.end()
    parts.append(("text", text[at:]))
    return Statement(name, path, tuple(p for p in parts if p[1]))


def _chosen(name: str, text: str, given: frozenset[str]) -> str:
    """`text` without the optional parts that `given` does not call for, and without the lines that mark them."""
    if "\\" not in text:
        return text
    out: list[str] = []
    open_parts: list[bool] = []  # one per \if around this line: whether it applies
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if not line.lstrip().startswith("\\"):
            if all(open_parts):
                out.append(line)
            continue
        match = _COMMAND.fullmatch(line)
        if match is None or (match["other"] and not open_parts):
            raise ValueError(
                f"{name}.sql:{number}: expected \\if :{{?name}}, \\else or \\endif, found {line.strip()!r}"
            )
        if match["word"]:
            open_parts.append(match["name"] in given)
        elif match["other"] == "else":
            open_parts[-1] = not open_parts[-1]
        else:
            open_parts.pop()
    if open_parts:
        raise ValueError(f"{name}.sql: \\if without \\endif")
    return "".join(out)


def load(name: str, folder: Path = HERE, *, given: Iterable[str] = ()) -> Statement:
    """The statement in `folder/name.sql`, with the optional parts that the variables `given` call for.

    Read once a process for each combination that is asked for.
    """
    return _load(name, folder, _chosen_by(name, folder, given))


def ready(name: str, folder: Path = HERE, *, given: Iterable[str] = ()) -> bytes:
    """The same for psycopg's `execute`, which takes bytes that it has seen before as already understood.

    Made once a process for each combination. Raises KeyError for a statement with identifiers or integers.
    """
    return _ready(name, folder, _chosen_by(name, folder, given))


def _chosen_by(name: str, folder: Path, given: Iterable[str]) -> frozenset[str]:
    conditions = _read(name, folder)[1]
    return conditions.intersection(given) if conditions else conditions


@cache
def _read(name: str, folder: Path) -> tuple[str, frozenset[str]]:
    """The text of a file, and the variables on which optional parts of it depend."""
    text = (folder / f"{name}.sql").read_text(encoding="utf-8")
    return text, frozenset(re.findall(r"^\s*\\if :\{\?(\w+)\}", text, re.MULTILINE))


@cache
def _load(name: str, folder: Path, given: frozenset[str]) -> Statement:
    return parse(name, folder / f"{name}.sql", _read(name, folder)[0], given)


@cache
def _ready(name: str, folder: Path, given: frozenset[str]) -> bytes:
    return _load(name, folder, given).query().as_bytes()
