"""Loads `.sql` files that psql runs unchanged and gives them to psycopg.

One statement (or one DDL script) a file, with a header of `-- in:`, `-- out:`, `-- uses:` lines. Variables are
psql's own: `:'name'::type` is a value, `:"name"` an identifier, `:name` a bare integer where the grammar allows
no parameter (the width in `halfvec(:dimensions)`). As in psql, nothing is replaced inside literals, dollar-quoted
bodies and comments.
"""

import re
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


def parse(name: str, path: Path, text: str) -> Statement:
    """Split `text` into plain stretches and variables."""
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


@cache
def load(name: str, folder: Path = HERE) -> Statement:
    """The statement in `folder/name.sql`; read once a process."""
    path = folder / f"{name}.sql"
    return parse(name, path, path.read_text(encoding="utf-8"))
