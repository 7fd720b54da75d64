"""What can be a term, and how terms are marked: in quotes, bold or italics."""

import re
from dataclasses import dataclass

MAX_CHARS = 80
MAX_WORDS = 8

_QUOTED = (
    r"“[^“”\n]{1,90}”|„[^„“”\n]{1,90}[“”]|«[^«»\n]{1,90}»|\"[^\"\n]{1,90}\"|‘[^‘\n]{1,90}?’(?!\w)|"
    r"(?<![\w'])'[^'\n]{1,90}?'(?!\w)"
)
_BOLD = r"(?<![\w`*])\*\*[^*\n]{1,90}\*\*(?![\w`*])"
_ITALIC = r"(?<![\w`*])\*[^*\s][^*\n]{0,89}\*(?![\w`*])|(?<![\w`_])_[^_\s][^_\n]{0,89}_(?![\w`_])"
#: A term in marks. Quotes may stand inside or outside of bold.
MARKED = re.compile(rf"(?P<marked>{_BOLD}|{_QUOTED}|{_ITALIC})")
_MARKS = " \t*_“”„«»\"‘’'`"
_ROLE = re.compile(r":[\w:-]+:`")
_WORD = re.compile(r"[^\W\d_][\w'’.-]*|\d[\w.-]*")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words that no term begins with: what they begin is a sentence, a clause or a reference to what was said before.
_NOT_FIRST = _words(
    """this that these those it its it's he she they we you i his her their our your my there here which what who whom
    whose if when whenever where while because since although though unless until however therefore thus hence so then
    and or but nor yet also as by for from in into of on onto to under upon with within without about above after
    before below between both either neither each every all any some many most more few fewer less several no none not
    only such same other another one's note notes example examples e.g i.e see please let lets let's doing being having
    using is are was were be been has have had do does did will would shall should can could may might must nothing
    everything something anything everyone anyone someone first second third finally otherwise instead moreover
    furthermore"""
)
#: Words that stand in clauses and not in terms.
_NEVER = _words(
    """is are was were been has have had does did will would shall should could might must which whose because although
    that who whom if when it they we you he she this these those there what why how"""
)
#: Words that label a text and are not defined by it.
_LABELS = _words(
    """note notes example examples warning caution tip hint important remark remarks summary answer question result
    results source sources see author authors date status version title type name description comment comments
    contents index definition definitions glossary term terms word words meaning meanings section paragraph part
    chapter article appendix table figure page step steps yes no true false none todo following above below reason
    purpose scope effect exception exceptions rule rules condition conditions general"""
)
#: Of these, the words that legal texts do define.
_IN_TEXT = _words("exception exceptions rule rules condition conditions scope purpose source term terms author")


#: Sentences, code, addresses and a second name in marks.
_NO_NAME = re.compile(r"[.!?;:]\s|[{}=<>|\\\[\]“”\"«»„*]|://|\w\(|[,;]$|’,|',|``|§")
#: References to a place and dates are no names of things.
_REFERENCE = re.compile(
    r"(?:§|(?:section|article|paragraph|part|chapter|appendix|annex|figure|table|step|page|rule|clause)s?\s+[\dIVX(])|"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+\d",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Term:
    """A term as it stands in the text."""

    text: str
    start: int
    end: int


def bare(text: str, start: int, end: int) -> Term:
    """The stretch without marks, spaces and a closing comma or colon inside them."""
    if role := _ROLE.match(text, start, end):
        start = role.end()
    while start < end and (text[start] in _MARKS or text[start].isspace()):
        start += 1
    while start < end and (text[end - 1] in _MARKS or text[end - 1].isspace() or text[end - 1] in ",:;."):
        if text[end - 1] == "." and re.search(r"\b\w\.\w\.$", text[start:end]):
            break  # "U.S."
        end -= 1
    return Term(" ".join(text[start:end].split()), start, end)


def is_term(term: str, *, marked: bool = False, most_words: int = MAX_WORDS) -> bool:
    """Whether a stretch of text can be the name of something, by its words alone."""
    words = [w.casefold().replace("’", "'") for w in _WORD.findall(term)]
    if not words or len(term) > MAX_CHARS or len(words) > most_words:
        return False
    if not any(c.isalpha() for c in term) or _NO_NAME.search(term) or _REFERENCE.match(term):
        return False
    if len(words) == 1:
        if len(words[0]) == 1 and not (marked and words[0].isalpha() and term.isupper()):
            return False
        if words[0] in _LABELS and words[0] not in _IN_TEXT:
            return False
    if words[0] in _NOT_FIRST and not (marked and len(words) > 1 and not _NEVER & set(words)):
        return False
    if words[-1] in ("of", "the", "a", "an", "and", "or", "to", "in", "for", "by", "with", "on", "at", "not"):
        return False
    return (marked and len(words) <= 3 and words[0] not in _NOT_FIRST) or not _NEVER & set(words)
