"""Definitions in sentences: "X means", "the term X refers to", "X is defined as", "the term X does not include".

Each verb is looked at once, with a stretch of bounded length before it: time is linear in the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from nightly.definitions.model import Definition, Form
from nightly.definitions.scope import LEAD_IN, stated
from nightly.definitions.terms import MARKED, Term, bare, is_term
from nightly.definitions.units import Unit

#: Characters before a verb in which its subject is looked for.
REACH = 260
MAX_DEFINITION = 1500
MAX_BETWEEN = 120  #: characters between a marked term and its verb
_PLAIN_WORDS = 5  #: most words of a term without marks in a place that is none of definitions

_VERBS: dict[Form, str] = {
    "elsewhere": r"(?:has|have|shall\s+have|bears?)\s+the\s+(?:same\s+)?meanings?(?=\s+(?:as|in|under|given|set|stated|"
    r"defined|described|assigned|ascribed|provided|specified|prescribed)\b)",
    "means": r"(?:(?:shall|also|only)\s+){0,2}means?(?:\s+only)?(?=[\s:,—–-])|"
    r"(?:is|are)\s+(?:hereby\s+)?defined\s+(?:as|to\s+mean)|"
    r"(?:has|have|shall\s+have|bears?)\s+the\s+(?:same\s+)?meanings?|denotes?|signif(?:y|ies)",
    "refers": r"(?:shall\s+)?refers?\s+(?:only\s+|solely\s+)?to|stands?\s+for|is\s+short\s+for|"
    r"is\s+an\s+abbreviation\s+(?:of|for)",
    "excludes": r"(?:does|do|shall)\s+not\s+include|excludes?",
    "includes": r"(?:(?:also|shall)\s+){0,2}includes?|is\s+limited\s+to|comprises?",
    "is": r"(?:is|are)(?=\s+(?:an?|the|any|one\s+of)\s)",
}
_FORMS = tuple(_VERBS)
_VERB = re.compile(rf"(?<![\w-])(?:{'|'.join(f'({verb})' for verb in _VERBS.values())})(?![\w-])", re.IGNORECASE)
_MEANS: tuple[Form, ...] = ("means", "elsewhere")
_PLURAL = re.compile(r"(?:shall\s+)?(?:mean|refer|are|have)\b", re.IGNORECASE)
_BARE_MEANS = re.compile(r"means?(?:\s+only)?\Z", re.IGNORECASE)

_SENTENCE_END = re.compile(r"[.!?](?:[\"”’')\]]|\*\*|\*)*(?:\s+|(?=[A-Z“‘]))|[;:]\s+|\n\s*\n")
_STOP = re.compile(r"[.!?][\"”’')\]]*(?=\s|[A-Z]|$)")
_ABBREVIATED = re.compile(
    r"(?:\b(?:e\.g|i\.e|cf|nos?|arts?|secs?|paras?|vs|approx|inc|co|corp|ltd|st|mrs?|ms|dr)|\b[A-Z])\.$", re.IGNORECASE
)
_CUE = re.compile(
    r"(?:the\s+)?(?:(?:defined\s+|legal\s+|technical\s+)?(?:terms?|words?|expressions?|phrases?|acronyms?|"
    r"abbreviations?|concepts?|notions?)\s*,?\s+|name\s+(?=[“\"‘'*]))",
    re.IGNORECASE,
)
_BARE_CUE = re.compile(
    r"(?:(?:this|the|that|such)\s+(?:term|word|expression|phrase)s?(?:\s+also)?|it|this)\Z", re.IGNORECASE
)
_JOIN = re.compile(r"(?:and|however|but|or|also|thus|so|here|accordingly|now)\b,?\s+", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)
_BETWEEN_MARKED = re.compile(r"\s*,?\s*(?:and|or|,|/)\s*(?:the\s+)?(?:terms?\s+)?")
_QUALIFIER = re.compile(
    r",?\s*(?:in\s+relation\s+to|with\s+(?:respect|regard|reference)\s+to|in\s+respect\s+of|as\s+applied\s+to|"
    r"as\s+regards|as\s+used|when\s+used|where\s+used|used|in\s+the\s+(?:case|context)\s+of|for\s+(?:the\s+)?purposes?|"
    r"of\s+an?|of\s+the|in\s+(?:this|these)|under|within|for|in)\b.*\Z",
    re.IGNORECASE | re.DOTALL,
)
_SHORT = re.compile(r"\s*\(\s*(?:the\s+|or\s+)?[“\"‘'*]*(?P<short>[A-Za-z][\w&/.-]{0,14})[”\"’'*]*\s*\)")
_ADVERB = re.compile(
    r"\s+(?:generally|usually|normally|typically|also|only|always|here|ordinarily)\s*\Z", re.IGNORECASE
)
_CLAUSE = re.compile(
    r"\b(?:is|are|was|were|which|that|who|has|have|will|shall|can|may|must|should|does|do|if|when)\b", re.IGNORECASE
)
#: After "X means" in a place that is none of definitions: what a definition goes on with, and a consequence does not.
_DEFINING = re.compile(
    r"\s*[:,]?\s*(?:an?|any|the|all|every|each|either|one|both|someone|something|persons?|people|those|how|whether|"
    r"not)\b",
    re.IGNORECASE,
)
#: Subjects whose "means" states a consequence.
_ABSTRACT = re.compile(
    r"\b(?:lack|use|changes?|results?|approach|fact|absence|idea|decision|choice|design|rule|option|way|effect|need|"
    r"addition|removal|behaviou?r|syntax|order|latter|former)\b|\A\w+ing\b\s+\w",
    re.IGNORECASE,
)
_ACRONYM = re.compile(r"[A-Z][A-Z&/-]{1,9}s?")
_SCOPE_BEHIND = re.compile(r"\s*,?\s*(?:in|for|within|under)\s[^,.;]{1,60},?")


@dataclass(frozen=True, slots=True)
class Place:
    """What is known where a unit stands: a place of definitions or not, the title before it, the scope announced."""

    definitions: bool = False
    title: Term | None = None
    scope: str = "document"


@dataclass(frozen=True, slots=True)
class _Verb:
    """A verb and the sentence before it, from `subject` on without what leads in."""

    form: Form
    start: int
    end: int
    sentence: int
    subject: int
    cued: bool  #: "the term" stands before the subject
    the: bool  #: "the" alone does
    scope: str


def in_sentences(text: str, unit: Unit, place: Place) -> Iterator[Definition]:
    """Definitions by a verb, in order."""
    defined_to = unit.body  # a subject is defined once in a sentence
    for found in _VERB.finditer(text, unit.body, unit.end):
        form = _FORMS[(found.lastindex or 1) - 1]
        sentence = _sentence_start(text, unit.body, found.start())
        if sentence is None or (form == "is" and sentence < defined_to):
            continue
        verb = _read(text, found, form, sentence, place)
        terms = _subjects(text, verb, unit, place)
        if not terms and sentence == unit.body:
            terms = _of_title(text[sentence : verb.start].strip(), place, form)
        end = _definition_end(text, verb.end, unit, whole=sentence == unit.body)
        scope = verb.scope or _scope_behind(text, verb.end, end) or place.scope
        for term in terms:
            yield Definition(term.text, form, scope, term.start, term.end, *_trimmed(text, verb.end, end))
            defined_to = verb.end


def _read(text: str, found: re.Match[str], form: Form, sentence: int, place: Place) -> _Verb:
    """A verb with what leads in passed over: a scope, a conjunction, "the term", an article."""
    at, end = sentence, found.start()
    scope = ""
    for _ in range(3):
        if lead := LEAD_IN.match(text, at, end):
            scope = scope or stated(lead.group())
        elif (lead := _JOIN.match(text, at, end)) is None:
            break
        at = lead.end()
    cue, article = _CUE.match(text, at, end), _ARTICLE.match(text, at, end)
    the = False
    if cue:
        at = cue.end()
    elif article and (place.definitions or form in _MEANS or MARKED.match(text, article.end(), end)):
        the = article.group().strip().casefold() == "the"
        at = article.end()
    return _Verb(form, end, found.end(), sentence, at, cue is not None, the, scope)


def _sentence_start(text: str, body: int, high: int) -> int | None:
    """Where the sentence that holds `high` begins; None when that is out of reach."""
    low = max(body, high - REACH)
    start = body if low == body else None
    for mark in _SENTENCE_END.finditer(text, low, high):
        if not _is_abbreviation(text, low, mark.start()):
            start = mark.end()
    while start is not None and start < high and text[start].isspace():
        start += 1
    return start


def _is_abbreviation(text: str, low: int, stop: int) -> bool:
    """Whether the full stop at `stop` ends an abbreviation and no sentence."""
    return text[stop] == "." and _ABBREVIATED.search(text, max(low, stop - 8), stop + 1) is not None


def _subjects(text: str, verb: _Verb, unit: Unit, place: Place) -> list[Term]:
    """The terms that stand before the verb."""
    marked = MARKED.match(text, verb.subject, verb.start)
    if marked:
        return _marked(text, marked, verb)
    if verb.form in ("includes", "excludes") and not verb.cued:
        return []
    return _unmarked(text, verb, unit, place)


def _marked(text: str, marked: re.Match[str], verb: _Verb) -> list[Term]:
    """Terms in marks before a verb: one, or several joined by "and" and "or"."""
    found = [bare(text, *marked.span())]
    at = marked.end()
    while joined := _BETWEEN_MARKED.match(text, at, verb.start):
        another = MARKED.match(text, joined.end(), verb.start)
        if another is None:
            break
        found.append(bare(text, *another.span()))
        at = another.end()
    if short := _SHORT.match(text, at, verb.start):
        found.append(bare(text, *short.span("short")))
        at = short.end()
    between = text[at : verb.start].strip(" ,\n\t")
    if _CLAUSE.search(between) or len(between) > MAX_BETWEEN:
        return []
    weak = verb.form == "is" or (verb.form in ("includes", "excludes") and not verb.cued)
    if (weak and between) or (verb.form == "is" and not _is_name(marked)):
        return []
    return [t for t in found if is_term(t.text, marked=True)]


def _is_name(marked: re.Match[str]) -> bool:
    """Whether the marks are those of a name: code and file names are quoted without being defined."""
    return not re.search(r"[()\[\]/\\=<>@]|\.\w|_", marked.group().strip("*_\"“”'‘’ "))


def _unmarked(text: str, verb: _Verb, unit: Unit, place: Place) -> list[Term]:
    """A term without marks: the whole subject of its sentence, short, and where definitions are to be expected."""
    start = verb.subject
    if text[start : start + 1] in ('"', "“", "‘"):
        start += 1  # a whole definition in quotes
    subject = text[start : verb.start]
    names: list[Term] = []
    short = _SHORT.search(subject)
    if short and short.start() > 0 and not subject[short.end() :].strip(" ,\n"):
        name = bare(text, start + short.start("short"), start + short.end("short"))
        names = [name] if is_term(name.text) else []
        subject = subject[: short.start()]
    qualifier = _QUALIFIER.search(subject)
    if qualifier and qualifier.start() > 0 and (qualifier.group()[0] == "," or not is_term(" ".join(subject.split()))):
        if _CLAUSE.search(qualifier.group()):
            return []
        subject = subject[: qualifier.start()]
    subject = _ADVERB.sub("", subject)
    plural = _PLURAL.match(text, verb.start, verb.end) is not None
    terms = [bare(text, start + low, start + high) for low, high in _parts(subject, plural=plural)]
    if not all(is_term(t.text) for t in terms):
        return []
    return [*terms, *names] if verb.cued or _is_expected(text, verb, unit, place, terms) else []


def _is_expected(text: str, verb: _Verb, unit: Unit, place: Place, terms: list[Term]) -> bool:
    """Whether a subject without any mark may be taken for a term that is defined here."""
    if place.definitions:
        first = verb.sentence == unit.body
        entry = first and verb.subject > verb.sentence and not verb.the  # "A flooring line is a …"
        return verb.form in (*_MEANS, "refers") or (verb.form == "is" and entry)
    if verb.scope:
        return verb.form in (*_MEANS, "refers")
    if verb.form not in _MEANS or verb.the or not terms[0].text[:1].isupper() or _ABSTRACT.search(terms[0].text):
        return False
    if max(len(t.text.split()) for t in terms) > _PLAIN_WORDS:
        return False
    weak = _BARE_MEANS.search(text[verb.start : verb.end]) is not None
    return not weak or _DEFINING.match(text, verb.end) is not None


def _parts(subject: str, *, plural: bool) -> list[tuple[int, int]]:
    """The names in a subject: "X and Y mean" are two, "X or ABC means" too, "factor or value means" is one."""
    if plural and (joined := re.search(r"\s+and\s+(?:the\s+)?", subject)):
        return [(0, joined.start()), (joined.end(), len(subject))]
    joined = re.search(r",?\s+or\s+(?:the\s+|an?\s+)?", subject)
    if joined and any(_ACRONYM.fullmatch(s.strip()) for s in (subject[: joined.start()], subject[joined.end() :])):
        return [(0, joined.start()), (joined.end(), len(subject))]
    return [(0, len(subject))]


def _of_title(before: str, place: Place, form: Form) -> list[Term]:
    """ "Adverse action", and on the next line "The term means": the title is what is defined."""
    if place.title is None or form == "is" or not _BARE_CUE.match(before):
        return []
    if form in ("includes", "excludes") and before.casefold() in ("it", "this"):
        return []
    return [place.title] if is_term(place.title.text) else []


def _scope_behind(text: str, start: int, end: int) -> str:
    """ "means, in this section only, …": a scope right behind the verb."""
    found = _SCOPE_BEHIND.match(text, start, min(end, start + 70))
    return stated(found.group()) if found else ""


def _definition_end(text: str, start: int, unit: Unit, *, whole: bool) -> int:
    """The end of the unit when the term stands at its beginning; else the end of the sentence."""
    limit = min(unit.end, start + MAX_DEFINITION)
    if whole:
        return limit
    stops = (m for m in _STOP.finditer(text, start, limit) if not _is_abbreviation(text, start, m.start()))
    return next((stop.end() for stop in stops), limit)


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and (text[start].isspace() or text[start] in ":,*"):
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
