"""Names given in passing: "(the 'X')", "known as 'X'", "Long Form (LF)"."""

import re
from collections.abc import Iterator

from nightly.definitions.model import Definition
from nightly.definitions.scope import stated
from nightly.definitions.terms import Term, bare, is_term
from nightly.definitions.units import Unit

REACH = 200
#: A name for less than this says nothing: "This is called inference".
MIN_WORDS = 2
MAX_PASSED = 3  #: small words in a row that an abbreviation leaves out
_QUOTES = r"[“\"‘'„«](?P<{0}>[^“”\"‘’„«»()\n]{{1,60}}?)[,.]?[”\"’'“»]"
_PARENTHESIS = re.compile(
    r"(?<=\s)\(\s*(?P<lead>(?:(?:the|an?|each|collectively|together|jointly|hereinafter|hereafter|herein|in\s+this\s+\w+|"
    r"referred\s+to\s+as|called|known\s+as|also|or)\s*,?\s*){0,4})" + _QUOTES.format("term") + r"\s*\)",
    re.IGNORECASE,
)
_CALLED = re.compile(
    r"(?<!so-)\b(?:called|known\s+as|referred\s+to(?:\s+in\s+(?:this|these)\s+\w+)?\s+as|termed|hereinafter|hereafter)\s+(?:the\s+|an?\s+)?"
    rf"(?:{_QUOTES.format('quoted')}|\*{{1,2}}(?P<starred>[^*\s][^*\n]{{0,60}})\*{{1,2}})",
    re.IGNORECASE,
)
_INITIALS = re.compile(r"(?<=[\w”\"’'])[ \t\n]\((?P<short>[A-Z][A-Za-z&/-]{1,9})\)")
_TAIL = re.compile(
    r"[\s,]*(?:\b(?:is|are|be|being|also|often|sometimes|usually|commonly|generally|which|that|may|can|will|"
    r"shall|hereafter|so|we|and|or)\b[\s,-]*)*\Z",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(r"(?:this|that|these|those|such|it|they|he|she|also|what|which|\[\d+\])(?=\W)", re.IGNORECASE)
_SMALL = frozenset(("of", "the", "and", "for", "in", "on", "to", "a", "an", "s", "with", "or", "by"))
#: A noun that the marked word only qualifies: "an *explicit* subclass".
_GOES_ON = re.compile(
    r"[ \t\n]+(?!(?:and|or|in|of|for|by|to|on|at|if|when|as|is|are|that|which|who|because|since|where|with)\b)[a-z]"
)
_SENTENCE = re.compile(r"[.;:!?]\s+|\n\s*\n")


def in_passing(text: str, unit: Unit, scope: str) -> Iterator[Definition]:
    """Aliases and abbreviations of a unit, in no order."""
    for found in _PARENTHESIS.finditer(text, unit.body, unit.end):
        if text.startswith(">", found.end()):  # the address of a link
            continue
        yield from _alias(text, unit, scope, found, bare(text, *found.span("term")))
    for found in _CALLED.finditer(text, unit.body, unit.end):
        if _GOES_ON.match(text, found.end(), unit.end):
            continue
        name = "quoted" if found["quoted"] else "starred"
        yield from _alias(text, unit, scope, found, bare(text, *found.span(name)))
    for found in _INITIALS.finditer(text, unit.body, unit.end):
        start = long_form(text, max(unit.body, found.start() - REACH), found.start(), found["short"])
        if start is not None:
            low, high = found.span("short")
            yield Definition(text[low:high], "abbreviation", scope, low, high, start, found.start())


def _alias(text: str, unit: Unit, scope: str, found: re.Match[str], term: Term) -> Iterator[Definition]:
    """What stands before the name in its sentence is what it names."""
    if not is_term(term.text, marked=True) or not re.match(r"[^\W\d_]", term.text):
        return
    start = max(unit.body, found.start() - REACH)
    for mark in _SENTENCE.finditer(text, start, found.start()):
        start = mark.end()
    while start > unit.body and not text[start - 1].isspace():  # the reach may have ended within a word
        start += 1
    tail = _TAIL.search(text, start, found.start())
    end = tail.start() if tail else found.start()
    before = text[start:end].strip()
    if before.endswith((" was", " were", " been")):
        return  # what it was called once
    if len(re.findall(r"[^\W\d_]{2,}", before)) < MIN_WORDS or _POINTS_BACK.match(before):
        return
    yield Definition(term.text, "alias", stated(found.group()) or scope, term.start, term.end, start, end)


def long_form(text: str, low: int, high: int, short: str) -> int | None:
    """Where the words begin that `short` abbreviates, None when they do not stand before it.

    Each letter of the abbreviation begins a word, in order; small words may be passed over, and a name in its own words
    ("Bureau of Consumer Finance (Bureau)") counts too. After Schwartz and Hearst, 2003, on initials alone.
    """
    words = [(m.group(), m.start()) for m in re.finditer(r"[^\W_]+", text[low:high])]
    letters = [c for c in short.casefold() if c.isalpha()]
    if not short.isupper() and not (len(letters) > 1 and short[-1] == "s" and short[:-1].isupper()):
        return _own_word(words, short, low)
    if short[-1] == "s" and short[:-1].isupper():
        letters = letters[:-1]
    return _initials(words, letters, low, pass_small=True) or _initials(words, letters, low, pass_small=False)


def _initials(words: list[tuple[str, int]], letters: list[str], low: int, *, pass_small: bool) -> int | None:
    """Where the words begin whose initials are `letters`; small words are passed over, or where they do not fit."""
    wanted, at, passed = len(letters) - 1, len(words) - 1, 0
    while wanted >= 0 and at >= 0:
        word, position = words[at]
        small = word.casefold() in _SMALL
        if word[0].casefold() == letters[wanted] and not (pass_small and small):
            wanted, passed = wanted - 1, 0
            if wanted < 0 and len(letters) > 1:
                return low + position
        elif small and passed < MAX_PASSED:
            passed += 1
        else:
            return None
        at -= 1
    return None


def _own_word(words: list[tuple[str, int]], short: str, low: int) -> int | None:
    """A word of the name that stands for all of it: the first of the capitalised words right before."""
    run: list[tuple[str, int]] = []
    for word, position in reversed(words):
        if not (word[0].isupper() or word in ("of", "for", "and", "the")):
            break
        run.append((word, position))
    capitals = [(w, p) for w, p in run if w[0].isupper()]
    if len(capitals) < 2 or short not in (w for w, _ in capitals):
        return None
    return low + capitals[-1][1]
