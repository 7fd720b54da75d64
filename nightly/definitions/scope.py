"""Where a definition says that it holds, and whether a place is one for definitions."""

import re
from collections.abc import Sequence

_PLACE = (
    r"(?:sub)?(?:section|article|clause|paragraph|part|chapter|title|appendix|annex|schedule|policy|regulation|"
    r"document|agreement|contract|rule|rulebook|manual|handbook|act|directive|law|standard|specification|guide|"
    r"notice|plan|pep|rfc|code|bylaws?|terms|procedure|book|report|commentary|table)s?"
)
_LEVELS = {
    "paragraph": ("paragraph", "subsection", "subparagraph", "subclause", "table"),
    "section": ("section", "article", "clause", "subarticle"),
    "part": ("part", "subpart", "chapter", "subchapter", "title", "appendix", "annex", "schedule"),
}
_LEVEL = {word: level for level, words in _LEVELS.items() for word in words}

_OWN = rf"(?:this|these|the present)\s+(?P<own>{_PLACE})(?:\s+only)?"
_NAMED = (
    r"(?P<named>(?:§{1,2}|section|sections|article|articles|part|paragraph|paragraphs|chapter)\s*[\dA-Z(][^\s,;]{0,40})"
)
#: "For purposes of this section", "In this part", "as used in §§ 4(a)".
SCOPE = re.compile(
    r"(?:for\s+(?:the\s+)?(?:limited\s+)?purposes?\s+of|as\s+(?:it\s+is\s+)?used\s+in|when\s+used\s+in|within|under|in|"
    rf"throughout)\s+(?:{_OWN}|{_NAMED})",
    re.IGNORECASE,
)
#: The same before the term, up to the comma that ends it.
LEAD_IN = re.compile(
    r"(?:(?:(?:solely\s+)?for\s+(?:the\s+)?(?:limited\s+)?purposes?\s+of|as\s+used\s+in|when\s+used\s+in|within|under|in|"
    r"throughout|here|unless)\b[^,;:“\"*]{0,120}[,:]\s*|herein\s+|hereinafter,?\s+)",
    re.IGNORECASE,
)
_CONTEXT = re.compile(
    r"\bdefinitions?\b|\bdefined\s+terms?\b|\bgloss(?:ary|aries)\b|\bterminology\b|\bvocabulary\b|\bnomenclature\b|"
    r"\babbreviations?\b|\bacronyms?\b|\bdictionary\b|\bjargon\b|\blexicon\b|\bkey\s+(?:terms?|concepts?)\b|"
    r"\bterms?\s+(?:used|and\s+(?:concepts?|abbreviations?))\b|\bwords\s+(?:used|we\s+use|about|with)\b|"
    r"\bmeanings?\s+of\b|\A\W*(?:[\d.]+\W+)?(?:terms|interpretation|words)\W*\Z",
    re.IGNORECASE,
)
#: "Membership and definitions": not all that stands below are definitions.
_MIXED = re.compile(
    r"(?:\band|&|,)\s+definitions?\b|\bdefinitions?\s*(?:,|\band\b|&)\s*(?!abbrev|acronym|interpret|term)",
    re.IGNORECASE,
)
_FOLLOW = re.compile(
    r"\bfollowing\s+(?:definitions?|(?:defined\s+)?terms|words|expressions|abbreviations)\b[^.]{0,60}[.:]|"
    r"\b(?:definitions|terms|words|expressions|abbreviations)\b[^.]{0,60}\b(?:below|as\s+follows|shall\s+apply|apply)\s*[.:]|"
    r"\bdefined\s+(?:below|as\s+follows)\s*[.:]|"
    r"(?:for\s+(?:the\s+)?purposes?\s+of|\Ain)\s+(?:this|these)\s[^.:]{0,60}:\s*\Z",
    re.IGNORECASE,
)


def stated(text: str) -> str:
    """The scope that a stretch of text states, "" without one."""
    found = SCOPE.search(text)
    if found is None:
        return ""
    if found["named"]:
        name = " ".join(found["named"].split()).rstrip(".:")
        return name if name.count("(") >= name.count(")") else name.rstrip(")")
    word = found["own"].lower()
    return _LEVEL.get(word, _LEVEL.get(word.removesuffix("s"), "document"))


def is_place_of_definitions(headings: Sequence[str]) -> bool:
    """Whether one of the headings announces definitions."""
    if not headings:
        return False
    *above, own = headings
    return _CONTEXT.search(own) is not None or any(_CONTEXT.search(h) and not _MIXED.search(h) for h in above)


def announces(sentence: str) -> bool:
    """Whether a sentence says that definitions follow: "For the purposes of this part, the following apply:"."""
    return len(sentence) <= 400 and _FOLLOW.search(sentence) is not None
