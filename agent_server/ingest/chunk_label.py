"""What a chunk says of its place: the context line and the numbering of its heading."""

import re
from collections.abc import Sequence

CONTEXT_CHARS = 200
_SEPARATOR = " > "
_NUMBER = r"\d+(?:[.\-–]\d+)*[a-z]?(?:\([0-9A-Za-z]{1,4}\))*"
_PARAGRAPH = re.compile(r"§{1,2}\s*(?P<number>\d[\w.\-–]*\w|\d)(?P<sub>(?:\([0-9A-Za-z]{1,5}\))*)")
_NAMED = re.compile(
    r"(?P<word>article|art\.|section|sec\.|part|subpart|chapter|appendix|annex|schedule|policy|rule|regulation|"
    rf"title|recital|clause|exhibit|pep|rfc|supplement)\s+(?P<number>{_NUMBER}|[IVXLCDM]+|[A-Z]{{1,2}})(?![\w])",
    re.IGNORECASE,
)
_FULL_WORDS = {"art.": "Article", "sec.": "Section", "pep": "PEP", "rfc": "RFC"}
_DOTTED = re.compile(
    r"(?P<number>(?:[A-Z]\.\d+(?:\.\d+)*|\d+(?:\.\d+)+)[a-z]?(?:\([0-9A-Za-z]{1,4}\))*)\.?(?=[\s:)–—-]|\Z)"
)
_PLAIN = re.compile(r"(?P<number>\d{1,5})(?:[.):]|\s*[–—-](?=\s)|(?=\s))(?=\s|\Z)")
_ROMAN = re.compile(r"(?P<number>[IVX]{1,7}|[A-H])\.(?=\s)")
_YEAR = re.compile(r"(?:19|20)\d\d")


def number_of(heading: str) -> str:
    """The numbering at the beginning of a heading: "4.2", "§ 1002.9", "Article 6", "Appendix B"; "" without."""
    heading = " ".join(heading.split())
    if found := _PARAGRAPH.match(heading):
        return f"§ {found['number']}{found['sub']}"
    if found := _NAMED.match(heading):
        word, number = found["word"].lower(), found["number"]
        if number.isalpha() and not number.isupper():
            return ""  # "Part of", "Title in": words, not numbers
        return f"{_FULL_WORDS.get(word, word.capitalize())} {number}"
    if found := _DOTTED.match(heading):
        return found["number"]
    if found := _PLAIN.match(heading):
        year = _YEAR.fullmatch(found["number"]) and found[0] == found["number"]
        return "" if year or not heading[found.end() :].strip() else found["number"]
    if found := _ROMAN.match(heading):
        return found["number"]
    return ""


def label(path: Sequence[str]) -> str:
    """The numbering of the innermost heading that has one, else ""."""
    return next((number for heading in reversed(path) if (number := number_of(heading))), "")


def _short(part: str, most: int) -> str:
    return part if len(part) <= most else part[: most - 1].rstrip() + "…"


def context(title: str, path: Sequence[str]) -> str:
    """ "Title > Section > Subsection" in at most `CONTEXT_CHARS` characters.

    Repeated neighbours are named once (title and first heading also where only their case differs). Where it is
    too long, middle parts go first, the outermost of them first; then the two that are left are shortened.
    """
    parts: list[str] = []
    for number, raw in enumerate((title, *path)):
        part = " ".join(raw.split())
        if not part or (
            parts and (part == parts[-1] or (number == 1 and part.casefold() == parts[-1].casefold()))
        ):
            continue
        parts.append(part)
    while len(parts) > 2 and len(_SEPARATOR.join(parts)) > CONTEXT_CHARS:
        del parts[1]
    if len(_SEPARATOR.join(parts)) > CONTEXT_CHARS and len(parts) > 1:
        room = CONTEXT_CHARS - len(_SEPARATOR)
        last = _short(parts[1], max(room - len(parts[0]), room * 3 // 5))
        parts = [_short(parts[0], room - len(last)), last]
    return _short(_SEPARATOR.join(parts), CONTEXT_CHARS)
