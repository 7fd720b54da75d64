"""Arguments as models send them: mended where that is harmless, refused by name where it is not."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from agent_server.errors import InvalidArgument

_WHOLE = re.compile(r"[+-]?\d{1,18}(?:\.0+)?", re.ASCII)
_SHOWN_CHARS = 60


def as_object(given: Any) -> dict[str, Any]:
    """The arguments as an object; models also send them as a JSON string."""
    value = given
    if isinstance(given, str):
        try:
            value = json.loads(given)
        except (ValueError, RecursionError):
            raise InvalidArgument("arguments", "is text that is not JSON; expected a JSON object") from None
    if not isinstance(value, Mapping):
        raise InvalidArgument("arguments", f"is {_kind(value)}; expected a JSON object")
    return {str(k): v for k, v in value.items()}


def check_names(given: Mapping[str, Any], known: Iterable[str], tool: str) -> None:
    """Raises InvalidArgument for a name that `tool` does not know: a misspelt one must not pass unseen."""
    names = list(known)
    for name in given:
        if name not in names:
            raise InvalidArgument(
                name[:_SHOWN_CHARS], f"is no argument of {tool}", hint=f"It takes: {', '.join(names)}."
            )


def text(given: Mapping[str, Any], field: str) -> str:
    """A required text. A whole number stands for its digits: models drop the quotes of codes such as 4021."""
    if field not in given:
        raise InvalidArgument(field, "is missing; expected text")
    value = given[field]
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise InvalidArgument(field, f"is {_kind(value)}; expected text")
    return value


def whole_number(given: Mapping[str, Any], field: str, *, default: int, least: int, most: int) -> int:
    """A whole number from `least` to `most`; "5" and 5.0 are 5. Bounds are refused, never silently moved to."""
    if field not in given:
        return default
    value = given[field]
    number: int | None = None
    if isinstance(value, str):
        stripped = value.strip()
        number = int(stripped.partition(".")[0]) if _WHOLE.fullmatch(stripped) else None
    elif isinstance(value, float):
        number = int(value) if math.isfinite(value) and value.is_integer() else None
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    if number is None:
        raise InvalidArgument(field, f"is {_kind(value)}; expected a whole number from {least} to {most}")
    if not least <= number <= most:
        raise InvalidArgument(field, f"is {shown(number)}; expected {least} to {most}")
    return number


def shown(value: Any) -> str:
    """`value` for a message: quoted where it is text, and never long."""
    if isinstance(value, int) and abs(value) >= 10**_SHOWN_CHARS:  # printing a huge number is refused by Python
        return "a huge number"
    out = repr(value)
    return out if len(out) <= _SHOWN_CHARS else out[:_SHOWN_CHARS] + "…"


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str() if not value.strip():
            return "blank"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
    return shown(value)
