"""What every check says: a name, how it stands, what was found, and the command that cures it."""

import shlex
from dataclasses import asdict, dataclass
from typing import Any, Literal

Status = Literal["ok", "warn", "error"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. `cure` is a command that may be typed as it stands (capitals are to be filled in), or a
    sentence where only a person can help; '' where nothing is wrong."""

    name: str
    status: Status
    found: str
    cure: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def cure(*words: str) -> str:
    """A command of this program, quoted for a shell."""
    return shlex.join(("kb", *words))


def psql(*statements: str) -> str:
    """The command that has Postgres carry out statements, each in a transaction of its own."""
    return cure("db", "psql", *(word for statement in statements for word in ("-c", statement)))


def quoted(identifier: str) -> str:
    """A name as SQL takes it."""
    return '"' + identifier.replace('"', '""') + '"'


def size(count: float) -> str:
    """Bytes in a unit that can be read."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} TB"


#: What needs no decision and stops nobody.
FIX = "kb doctor --fix"
