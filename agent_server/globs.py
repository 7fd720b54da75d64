"""Path patterns, as the authority rules and the filters of a search understand them."""

import re
from functools import cache


@cache
def expression(pattern: str) -> str:
    r"""A regular expression for all of a path: `**` crosses folders, `*` and `?` do not.

    Python (with re.DOTALL and fullmatch) and Postgres (`~`) read it alike: it is anchored, and a backslash stands only
    before characters that are neither letters nor digits.
    """
    out = ""
    for part in re.split(r"(\*\*/?|\*|\?)", pattern):
        match part:
            case "**/":
                out += "(?:.*/)?"
            case "**":
                out += ".*"
            case "*":
                out += "[^/]*"
            case "?":
                out += "[^/]"
            case _:
                out += re.escape(part)
    return f"^(?:{out})$"
