""" "This policy", "this section": places that a statement names by itself, given their name."""

import re
from collections.abc import Callable

from nightly.claims_rules.model import Surroundings

_DOCUMENT = (
    r"regulation|policy|rulebook|manual|handbook|document|pep|guide|circular|agreement|act|directive|rule|rules|standard|"
    r"specification|notice|procedure|glossary|bulletin|schedule|calendar|bylaws|part|contract"
)
_SECTION = r"section|article|appendix|annex"
#: What may be named by "this": whether its name is known is said by `resolved`.
PLACES = f"{_DOCUMENT}|{_SECTION}"
_OF_THIS = re.compile(
    rf"(?P<ref>§{{1,2}}\s*[\d.]+\w*(?:\(\w+\))*(?:\s*(?:and|or|through|to|,)\s*[\d.]*(?:\(\w+\))*)*)\s+of\s+this\s+(?:{_DOCUMENT})\b",
    re.IGNORECASE,
)
_THIS_DOCUMENT = re.compile(rf"\b(?P<this>this|these|the\s+present)\s+(?P<what>{_DOCUMENT})\b(?!\s*\()", re.IGNORECASE)
_THIS_SECTION = re.compile(rf"\bthis\s+(?P<what>{_SECTION})\b(?!\s*\()", re.IGNORECASE)
_LABELS = {
    "section": re.compile(r"§{1,2}\s*\d|\d+(?:\.\d+)+|section\s*\d", re.IGNORECASE),
    "article": re.compile(r"(?:article|art\.)\s*\d", re.IGNORECASE),
    "appendix": re.compile(r"appendix\s+\w", re.IGNORECASE),
    "annex": re.compile(r"annex\s+\w", re.IGNORECASE),
}
_MAX_TITLE = 90


def resolved(words: str, around: Surroundings) -> tuple[str, list[str]]:
    """`words` with the name of the place behind "this policy" and "this section", and doubts where none is known."""
    doubts: list[str] = []
    words = _OF_THIS.sub(lambda m: m["ref"], words)
    title = " ".join(around.title.split())
    label = around.label.strip()

    def document(found: re.Match[str]) -> str:
        if (
            len(title.split()) < 2
            or len(title) > _MAX_TITLE
            or title.lower().endswith((".txt", ".md", ".pdf", ".rst", ".html"))
        ):
            doubts.append(f"which {found['what']}?")
            return found.group()
        return f"{found.group()} ({title})"

    def section(found: re.Match[str]) -> str:
        if not _LABELS[found["what"].lower()].match(label):
            doubts.append(f"which {found['what']}?")
            return found.group()
        return f"this {found['what']} ({label})"

    words = _once(_THIS_DOCUMENT, document, words)
    words = _once(_THIS_SECTION, section, words)
    return words, doubts


def _once(pattern: re.Pattern[str], name: Callable[[re.Match[str]], str], words: str) -> str:
    """Name the place at its first mention alone."""
    found = pattern.search(words)
    if found is None:
        return words
    return words[: found.start()] + name(found) + words[found.end() :]
