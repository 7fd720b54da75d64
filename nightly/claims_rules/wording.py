"""How a quote becomes a statement, and when two statements are one."""

import hashlib
import re
import unicodedata

from agent_server.lexemes import entry_lexemes, label_lexemes
from agent_server.terms import fold_term, term_words

_ROLE = re.compile(r":[\w:-]+:`([^`<]*?)(?:\s*<[^`>]*>)?`")
_NUMBERED_ROLE = re.compile(r":(?P<name>pep|rfc):`(?P<number>\d+)(?:#[^`]*)?`")
_LINK = re.compile(r"!?\[([^\]\n]{1,200})\]\([^)\s]{1,300}\)")
_RST_LINK = re.compile(r"`([^`<\n]{1,200}?)\s*<[^`>]{1,300}>`_{1,2}")
_FOOTNOTE = re.compile(r"\s*\[(?:\d{1,3}|#\w+|\*)\]_")
_MARKS = re.compile(r"(?<!\w)(\*\*|\*)(?=\S)(.{1,200}?)(?<=\S)\1(?!\w)", re.DOTALL)
_CODE = re.compile(r"``?([^`]{1,200}?)``?_?")
_QUOTE_BAR = re.compile(r"(?m)^[ \t]*>[ \t]?")
_NUMBER_WORDS = {
    w: str(n)
    for n, w in enumerate(
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    )
    if n > 1
}
#: Words that two wordings of one statement may differ in. Not "and" and "or", "to" and "by": they say something else.
_SMALL = frozenset(
    ["a", "an", "the", "of", "in", "on", "at", "that", "which", "as", "is", "are", "be", "been", "it", "its"]
)
#: Longer names are looked up by nobody, and an index takes no more than 2,704 bytes.
MAX_KEY_CHARS = 300
_SAME = {
    "shall": "must",
    "cannot": "not",
    "percentage": "percent",
    "doesn": "not",
    "don": "not",
    "isn": "not",
    "aren": "not",
}

#: "`R`", "``T``": names that a piece of code near by has made.
_PLACEHOLDER = re.compile(r"(?<!`)(`{1,2})[A-Za-z_]\d?\1(?!`)")


def holds_placeholder(quote: str) -> bool:
    """Whether a quote speaks of something by a letter set as code, which is nothing outside of its passage."""
    return _PLACEHOLDER.search(quote) is not None


def plain(text: str) -> str:
    """The words of a quote in one line, without marks of Markdown and reStructuredText."""
    text = _QUOTE_BAR.sub("", text)
    text = _LINK.sub(r"\1", text)
    text = _NUMBERED_ROLE.sub(lambda m: f"{m['name'].upper()} {m['number']}", text)
    text = _ROLE.sub(r"\1", text)
    text = _RST_LINK.sub(r"\1", text)
    text = _FOOTNOTE.sub("", text)
    text = _CODE.sub(r"\1", text)
    for _ in range(2):
        text = _MARKS.sub(r"\2", text)
    return " ".join(text.replace("\\ ", "").split())


def sentence(text: str) -> str:
    """`text` with a capital at its beginning and a full stop at its end."""
    text = text.strip().rstrip(";,:")
    if text and text[0].islower():
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", "!", "?", ".”", '."', ".)")) else text + "."


def content(statement: str) -> tuple[str, ...]:
    """The content words of a statement in order: what near-duplicates have in common."""
    folded = (
        unicodedata.normalize("NFKC", statement).replace("n't", " not").replace("n’t", " not").replace("%", " percent ")
    )
    out = []
    for spelled, _, _ in term_words(folded):
        word = _SAME.get(spelled, spelled)
        if word not in _SMALL:
            out.append(_NUMBER_WORDS.get(word, word))
    return tuple(out)


def fingerprint(statement: str) -> bytes:
    """sha256 of the content words. Equal for statements that differ in small words, marks, case and plurals alone."""
    return hashlib.sha256("\0".join(content(statement)).encode()).digest()


def subject_keys(*names: str) -> list[str]:
    """How a claim is looked up by what it is about: keys of its names, and codes in all their spellings."""
    keys: dict[str, None] = {}
    for name in names:
        if (key := fold_term(name)) and len(key) <= MAX_KEY_CHARS:
            keys.setdefault(key)
        for code in (*label_lexemes(name), *entry_lexemes(name)):
            keys.setdefault(code)
    return list(keys)
