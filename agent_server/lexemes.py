"""Words, identifiers and bigrams of a text: one function for documents and for questions.

Postgres stems the words. What its parser would tear apart or weld together is settled here first, the same way on
both sides: codes (`NW-4021`, `NW 4021`, `NW4021`), section numbers (`§ 1.401(k)-1`), names (`user_id`, `C++`,
e-mail addresses, paths) and scripts without spaces. Identifier lexemes start with `#` and bigrams with `~`, which
no dictionary of Postgres produces, so that neither is ever taken for a word.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_IDENTIFIER_CHARS = 120
_MAX_POSITION = 16383  # Postgres' limits for a tsvector
_MAX_POSITIONS = 255

# Scripts written without spaces between words, and Hangul, whose particles cling to the word.
_SPACELESS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua000-\ua4cf\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f]+"
)
_TOKEN = re.compile(r"\w+(?:[-./@_:]\w+|(?<=[\d)])\(\w{1,5}\))*")
# From a sign that an identifier has and a word has not, to the end of the piece between spaces: a digit (those of the
# last ranges are digits to people, and have no plain form), "_", and a dot or "@" with something behind it.
_TELLING = re.compile(
    "[\\d_.@\u1369-\u1371\u19da\u24f5-\u24fd\u24ff\u2776-\u277e\u2780-\u2788\u278a-\u2792\U00010a40-\U00010a43"
    "\U00010e60-\U00010e68\U00011052-\U0001105a](?:(?<![.@])|(?=\\w))[^ ]*"
)
_SIGNED_NAME = re.compile(r"(?<![\w.])(?:[A-Za-z](?:\+\+|#)|\.[A-Za-z]{2,10})(?![\w#+])")
# Of the above, those that a text without "#" and "++" has.
_DOTTED_NAME = re.compile(r"\.(?<![\w.]\.)[A-Za-z]{2,10}(?![\w#+])")
# A code at the start of a line, behind the marks of rows, items, quotes and headings, with nothing but its own signs up
# to a cell's or a term's end: a line of running text may start with a code by chance.
_ENTRY = re.compile(
    r"""[ \t>]*(?:[|*+•#-]+[ \t]*|\d{1,3}[.)][ \t]+)?[*_`"']*
        (?P<code>(?:[^\W\d_]{1,6}|circular|bulletin|regulation)[ -]?\d\w*(?:[-./]\w+|\(\w{1,5}\))*)
        [*_`"']*(?:[ \t]*(?:[|:=–—]|$)|[ \t]+-[ \t]|[ \t]{2,}|\t)""",
    re.VERBOSE | re.IGNORECASE,
)
_BARE_NUMBER = re.compile(r"\W*(\d{3,9})\W*")
_NUMBER_AS_CODE = re.compile(r"\b(?:codes?|numbers?|no\.?|nr\.?)[ #:]*(\d{3,9})(?!\w|[-.,/]\d)", re.IGNORECASE)
_NUMBER_OF_CODE = re.compile(r"[^\W\d_]+(\d{3,9})")
_COMPONENT = re.compile(r"\d+|[^\W\d_]+")
# These four begin with what they take, and look back over it: a search for a look-behind would stop at every letter.
_DIGIT_AFTER_LETTER = re.compile(r"\d(?<=[^\W\d_]\d)")
_DIGIT_BEFORE_LETTER = re.compile(r"\d(?=[^\W\d_])")
# Between parts of words. A dot between digits stays: 4.2 is one number to Postgres, and to people.
_JOINER = re.compile(r"[-+./:@_](?:(?<=[-+])(?=\d)|(?=\w)(?:(?<=\w[-/@_:])|(?<=[^\W\d]\.))|(?=[^\W\d])(?<=\d\.))")
_EDGES = ".,;:!?()[]\"'“”‘’"  #: signs around a word that make no code of it
_LOOSE = ("Cf", "Mn")  #: categories of invisible characters, and of accents apart from their letter
_BARE_SCRIPTS = re.compile("[A-Za-z\u0370-\u03ff\u0400-\u052f]")


#: Words whose number names a part of a text, or a text.
_NUMBERS_PARTS = frozenset(
    {"annex", "appendix", "article", "artikel", "abschnitt", "chapter", "circular", "clause", "form", "paragraph"}
    | {"part", "policy", "recital", "regulation", "rule", "schedule", "section", "title"}
)


@dataclass(frozen=True, slots=True)
class LexicalText:
    """`words` goes through Postgres' text search configuration; `extras` are finished lexemes, in order, with
    repeats: their number is the term frequency."""

    words: str
    extras: tuple[str, ...]

    @property
    def extras_tsvector(self) -> str:
        """The extras in the text form of a tsvector, with positions (without, BM25 would not see them)."""
        positions: dict[str, list[int]] = {}
        for n, lexeme in enumerate(self.extras, 1):
            positions.setdefault(lexeme, []).append(min(n, _MAX_POSITION))
        return " ".join(
            f"{quote_lexeme(lexeme)}:{','.join(map(str, sorted(set(at))[:_MAX_POSITIONS]))}"
            for lexeme, at in positions.items()
        )


@lru_cache(maxsize=4)  # a passage's text is folded for each kind of its lexemes
def fold(text: str) -> str:
    """Compatibility forms composed, accents of Latin, Greek and Cyrillic letters and invisible characters gone.

    Marks of other scripts stay: there they tell words apart.
    """
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKD", text)
    if not any(unicodedata.category(char) in _LOOSE for char in set(text) if char > "\x7f"):
        return unicodedata.normalize("NFC", text)
    out: list[str] = []
    base = ""
    for char in text:
        category = unicodedata.category(char)
        if category == "Cf":
            continue
        if category == "Mn":
            if _BARE_SCRIPTS.match(base) is None:
                out.append(char)
            continue
        base = char
        out.append(char)
    return unicodedata.normalize("NFC", "".join(out))


def lexical_text(text: str, *, question: bool = False) -> LexicalText:
    """What `text` is indexed by, or asked for with.

    A document holds the whole form of each identifier and the forms it starts with (1002.9(a)(1) is found by
    1002.9); a question asks for the whole form alone, tries each word joined to the number behind it, and asks too
    for passages whose own number it names (`label_lexemes`), and for the code of a number that it calls a code.
    """
    folded = fold(text)
    extras = list(_identifiers(folded, question=question))
    if question:
        extras += dict.fromkeys(f"#={form[1:]}" for form in (*_identifiers(folded, question=False), *extras))
        number = _BARE_NUMBER.fullmatch(folded)
        extras += [f"#={n}" for n in ([number[1]] if number else _NUMBER_AS_CODE.findall(folded))]
    if _SPACELESS.search(folded):
        for run in _SPACELESS.findall(folded):
            extras.extend(f"~{pair}" for pair in _bigrams(run))
        folded = _SPACELESS.sub(" ", folded)
    words = _DIGIT_AFTER_LETTER.sub(r" \g<0>", _JOINER.sub(" ", folded))
    words = _DIGIT_BEFORE_LETTER.sub(r"\g<0> ", words)
    return LexicalText(words, tuple(extras))


def label_lexemes(label: str) -> tuple[str, ...]:
    """Lexemes of a passage's own number ("Article 17", "§ 8.4"): those that stand under it, not those that cite it."""
    return tuple(f"#={code[1:]}" for code in _identifiers(fold(label), question=True))


def entry_lexemes(text: str) -> tuple[str, ...]:
    """Lexemes of codes that `text` has entries for: at the start of a row, an item, a heading or a definition.

    Like `label_lexemes` they set the passage that says what a code is apart from those that mention it. A code's number
    is one too ("4021"): asked for alone, it stands for the code.
    """
    out: list[str] = []
    for line in fold(text).split("\n"):
        if (match := _ENTRY.match(line)) is None:
            continue
        code = _code_forms(match["code"].lower())[-1]
        out.append(f"#={code}"[:MAX_IDENTIFIER_CHARS])
        if number := _NUMBER_OF_CODE.fullmatch(code):
            out.append(f"#={number[1]}")
    return tuple(dict.fromkeys(out))


def quote_lexeme(lexeme: str) -> str:
    """`lexeme` as the text forms of tsvector and tsquery want it: always quoted, so that nothing is an operator."""
    return "'" + lexeme.replace("\\", "\\\\").replace("'", "''") + "'"


def _bigrams(run: str) -> Iterable[str]:
    return (run[i : i + 2] for i in range(len(run) - 1)) if len(run) > 1 else (run,)


def _identifiers(text: str, *, question: bool) -> Iterator[str]:
    signed = _SIGNED_NAME if "#" in text or "++" in text else _DOTTED_NAME
    for match in signed.finditer(text):
        yield "#" + match.group().lower()
    for match in _TELLING.finditer(text):
        start = text.rfind(" ", 0, match.start()) + 1
        for token in _TOKEN.finditer(text, start, match.end()):
            if not token.group().isalpha():
                word_before = _word_before(text, start) if token.start() == start else ""
                yield from _forms(token.group(), word_before, question=question)


def _word_before(text: str, start: int) -> str:
    """The word whose last letter and one space stand right before `start`; '' where something else does."""
    end = max(start - 1, 0)
    ended = text[text.rfind(" ", 0, end) + 1 : end].lstrip(_EDGES)
    if ended.isalpha():
        return ended
    tokens = _TOKEN.findall(ended)
    return tokens[-1] if tokens and tokens[-1].isalpha() and ended.endswith(tokens[-1]) else ""


def _forms(token: str, word_before: str, *, question: bool) -> Iterator[str]:
    """Identifier forms of a token that is more than letters, and of the word before joined to it."""
    lowered = token.lower()
    if not any(map(str.isdigit, token)):
        # Names: user_id, setup.html, jane@example.com, docs/guide.md; not long-term or and/or.
        if "_" in token or "@" in token or "." in token:
            yield "#" + lowered[:MAX_IDENTIFIER_CHARS]
            yield from (f"#{part}" for part in lowered.split("/") if "." in part and part != lowered)
        return
    if "@" in token or token.count("/") > 1:
        yield "#" + lowered[:MAX_IDENTIFIER_CHARS]
    forms = _code_forms(lowered)
    if len(forms) > 1 or not forms[-1].isdigit():
        yield from (f"#{form[:MAX_IDENTIFIER_CHARS]}" for form in (forms[-1:] if question else forms))
    if word_before and (question or _names(word_before)):
        # NW 4021, PEP 604, Article 17(2), and what they begin with.
        named = [_head(lowered), *forms[:-1], forms[-1]]
        for form in dict.fromkeys(named[-1:] if question else named):
            yield f"#{word_before.lower()}{form}"[:MAX_IDENTIFIER_CHARS]


def _names(word: str) -> bool:
    """Whether a word makes the number behind it a name: a short one in capitals, or one that numbers parts of texts.

    Any capitalised word would do for "Article 17", and cost ranking on ordinary text ("At 2", "Mach 3").
    """
    return (word.isupper() and 2 <= len(word) <= 6) or (word[0].isupper() and word.lower() in _NUMBERS_PARTS)


def _head(token: str) -> str:
    """The first run of digits or letters of a token."""
    match = _COMPONENT.match(token)
    return match.group() if match else token


def _code_forms(token: str) -> list[str]:
    """Normalised beginnings of a code, longest last: "1002.9(a)(1)" -> 1002.9, 1002.9a, 1002.9a1.

    Separators between letters and digits go (NW-4021 is nw4021), those between digits stay (4.2, 2024-01-31).
    """
    forms: list[str] = []
    built, end = "", 0
    for match in _COMPONENT.finditer(token):
        part = match.group()
        if not built:
            built = part
        elif built[-1].isdigit() and part[0].isdigit():
            separator = token[end : match.start()]
            built += ("." if separator == "." else "-") + part
        else:
            built += part
        end = match.end()
        forms.append(built)
    # A first part alone (nw, 1002) is a word already.
    return forms[1:] if len(forms) > 1 else forms
