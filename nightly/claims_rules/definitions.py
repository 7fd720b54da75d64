"""Definitions as claims: the sentence or the entry that defines a term, with what it adds about the term."""

import re
from collections.abc import Iterator, Sequence

from agent_server.terms import fold_term
from nightly.claims_rules.alone import EXCEPTS, doubts_about, is_given_up
from nightly.claims_rules.model import Found, Kind, Surroundings
from nightly.claims_rules.places import resolved
from nightly.claims_rules.splitting import sentences
from nightly.claims_rules.wording import holds_placeholder, plain, sentence
from nightly.definitions.find import find_definitions
from nightly.definitions.model import Definition
from nightly.definitions.units import Unit, units

#: Sentences right behind a definition that belong to it.
_GOES_ON = re.compile(
    r"(?:the\s+term|this\s+term|it|this\s+definition|the\s+(?:word|expression))\s+(?:also\s+|only\s+|specifically\s+)*"
    r"(?:(?:does|do|shall)\s+not\s+include|includes?|excludes?|means?|refers?)\b[^:]*\Z",
    re.IGNORECASE | re.DOTALL,
)
_LEADS = re.compile(
    r"(?:(?:solely\s+)?for\s+(?:the\s+)?(?:limited\s+)?purposes?\s+of|as\s+used\s+in|when\s+used\s+in|within|under|in|throughout)\s+"
    r"(?:this|these)\s+\w+(?:\s+only)?,\s*",
    re.IGNORECASE,
)
_SEES = re.compile(r"has\s+the\s+(?:same\s+)?meaning|as\s+defined\s+in|see\b", re.IGNORECASE)
_SEE_ALSO = re.compile(r"(?<=[.!?)])\s+See\s(?:[^.]|\.\d)*\.?\s*\Z")
#: "The following definition applies for use in this formula:"
_FOR_LESS = re.compile(
    r"\bthis\s+(?:formula|paragraph|subparagraph|table|figure|example|comment|chart|equation|form|worksheet|subsection|"
    r"clause|sentence)\b|\bparagraphs?\s*\(",
    re.IGNORECASE,
)
#: "Waiver: A member cannot waive …", "Standing: Not a ground for …": what is so of a thing, and not what it is.
_NO_ENTRY = re.compile(
    r"not\b|(?:an?\s+|the\s+|every\s+|each\s+|no\s+)?[\w’'-]+(?:\s+(?!that|which|who|whose|where|when)[\w’'-]+){0,3}?\s+"
    r"(?:cannot|must|shall|may\s+not|may\s+only)\b",
    re.IGNORECASE,
)
_CALLED = re.compile(
    r"\b(?:is|are)\s+(?:also\s+|often\s+|sometimes\s+|commonly\s+)?(?:called|known\s+as|termed|referred\s+to\s+as)\s+(?:an?\s+|the\s+)?\W{0,3}",
    re.IGNORECASE,
)
_BARE_TERM = re.compile(r"(?:the\s+)?(?:term|word|expression|phrase|it|this|that)\b", re.IGNORECASE)


def in_definitions(text: str, around: Surroundings) -> list[Found]:
    """The definitions in `text` as claims; several terms that one sentence defines are one claim with several names."""
    found: dict[tuple[int, int], Found] = {}
    every = list(units(text))
    for one in find_definitions(text, around.heading_path):
        unit = next((u for u in every if u.start <= one.start < u.end), None)
        claim = None if unit is None else _claim(text, one, unit, around)
        if claim is None:
            continue
        key = claim.quote_start, claim.quote_end
        if key in found:
            first = found[key]
            claim = Found(
                first.kind,
                first.subject,
                first.statement,
                *key,
                first.rule,
                (*first.names, claim.subject),
                first.doubts,
            )
        found[key] = claim
    return list(found.values())


def _claim(text: str, one: Definition, unit: Unit, around: Surroundings) -> Found | None:
    match one.form:
        case "entry" | "table":
            return _entry(text, one, around)
        case "abbreviation":
            return _abbreviation(text, one)
        case _:
            return _sentence(text, one, unit, around)


def _entry(text: str, one: Definition, around: Surroundings) -> Found | None:
    """ "Term: what it is", from a glossary, a definition list or a row of a table."""
    start, end = one.span
    body = _SEE_ALSO.sub("", text[one.definition_start : one.definition_end])
    words, doubts = resolved(plain(body), around)
    if not words or one.start > one.definition_start:
        return None
    doubts += doubts_about(sentence(words), definition=True)
    if one.form == "entry" and _NO_ENTRY.match(words):
        doubts.append("does not say what it is")
    if re.search(r"\bours\b", words):
        doubts.append("speaks as somebody: ours")
    if re.match(r"[^\n.,;:]{3,40}\n\s+[A-Z]", body):
        doubts.append("several terms")
    if " | " in words:
        doubts.append("several columns")
    if one.form == "entry" and end >= len(text.rstrip()) and not words.endswith((".", "!", "?", ")", "”")):
        doubts.append("may be cut")
    doubts += _narrow(one)
    return Found("definition", one.term, f"{one.term}: {sentence(words)}", start, end, one.form, (), tuple(doubts))


def _abbreviation(text: str, one: Definition) -> Found | None:
    start, end = one.span
    while end < len(text) and text[end] in "”\"'":
        end += 1
    end += text[end : end + 1] == ")"
    long = plain(text[one.definition_start : one.definition_end])
    long = re.sub(r"\A(?:the|an?)\s+", "", long, flags=re.IGNORECASE)
    long = re.sub(r"['’]s?\Z", "", long)
    if not long or long[0] in ".,;)":
        return None
    statement = sentence(f"{one.term} stands for {long}")
    doubts = ["brackets or quotes are open"] if long.count("(") != long.count(")") else []
    return Found("definition", one.term, statement, start, end, "abbreviation", (long,), tuple(doubts))


def _sentence(  # noqa: PLR0912  one doubt after the other
    text: str, one: Definition, unit: Unit, around: Surroundings
) -> Found | None:
    """The sentence that defines, with the list that it introduces and the sentences that go on about the term."""
    every = list(units(text))
    spans = list(sentences(text, unit.body, unit.end))
    at = next((n for n, (low, high) in enumerate(spans) if low <= one.start < high), None)
    if at is None:
        return None
    start, end = spans[at]
    doubts = _announced(text, unit, every)
    if one.definition_end > unit.end:  # a list below
        end = one.definition_end
        doubts += _list_doubts(text, unit.end, end, every)
    else:
        for low, high in spans[at + 1 :]:
            if not (_GOES_ON.match(text, low, high) or EXCEPTS.match(text, low, high)):
                break
            end = high
    if lead := _LEADS.match(text, start, end):
        doubts += _scope_doubts(lead.group(), around)
    else:
        doubts += _narrow(one)
    words, open_places = resolved(plain(text[start:end]), around)
    doubts += open_places
    if holds_placeholder(text[start:end]):
        doubts.append("a letter stands for something")
    if is_given_up(around.heading_path):
        doubts.append("may not be in force")
    if one.start - start > 160 or not words:
        return None
    if _BARE_TERM.match(words) and not re.match(
        r"(?:the\s+)?(?:term|word|expression|phrase)s?\s+[“\"'‘]?\w", words, re.IGNORECASE
    ):
        doubts.append("a pronoun for the subject")
    head = words[: max(words.lower().find(one.term.lower()), 0) + len(one.term)]
    if re.match(
        r"(?:the\s+|this\s+)?(?:term|word|expression|phrase)s?\s+(?:also\s+)?(?:does|do|includes?|means?|shall|is|refers?)\b",
        words,
        re.IGNORECASE,
    ):
        doubts.append("a term without its name")
    doubts += doubts_about(_without_term_talk(sentence(words)), subject_end=len(head), definition=True)
    if one.form == "elsewhere" or (_SEES.search(words) and len(words.split()) < 20):
        doubts.append("points to another definition")
    if one.form == "alias" and not any(
        words[m.end() :].lower().startswith(one.term.lower()) for m in _CALLED.finditer(words)
    ):
        doubts.append("named in passing")
    if one.form in ("alias", "is", "includes", "refers"):
        doubts += [d for d in doubts_about(words, subject_end=0) if d not in doubts]
    if not re.search(r"[.!?;][”\"’')]*\Z", text[start:end].rstrip("*")):
        doubts.append("may be cut")
    kind: Kind = "exclusion" if one.form == "excludes" else "definition"
    if one.form == "includes":
        kind = "statement"
    return Found(kind, one.term, sentence(words), start, end, one.form, (), tuple(dict.fromkeys(doubts)))


def _without_term_talk(words: str) -> str:
    """Sentences about "the term" and "it" behind a definition are about its subject."""
    return re.sub(r"(?<=[.!?] )(?:The term|It|This term|This definition)\b", "The member", words)


def _list_doubts(text: str, start: int, end: int, every: Sequence[Unit]) -> Iterator[str]:
    """What may be wrong with the items between `start` and `end`: whether the list goes on behind the passage."""
    items = [u for u in every if u.start >= start and u.end <= end]
    if not text[start:end].rstrip().endswith("."):
        yield "may be cut"
    elif len(items) < 2 or not re.search(r"\b(?:and|or)\W*\Z", text[items[-2].start : items[-2].end]):
        yield "the list may go on"
    elif any(u.kind != "item" for u in items):
        yield "text between the items"


def _scope_doubts(lead: str, around: Surroundings) -> list[str]:
    return resolved(lead, around)[1]


def _announced(text: str, unit: Unit, every: Sequence[Unit]) -> list[str]:
    """A doubt when the words above say that what they announce holds for less than a part of a document."""
    above = [u for u in every if u.end <= unit.start and text[u.start : u.end].rstrip().endswith((":", "—"))]
    if above and _FOR_LESS.search(text, above[-1].start, above[-1].end):
        return ["holds for less than a part"]
    return []


def _narrow(one: Definition) -> list[str]:
    """A definition for less than a part of a document must say so itself."""
    if one.scope in ("document", "part", ""):
        return []
    return [f"holds for a {one.scope} alone"]


def terms_in(text: str, heading_path: tuple[str, ...]) -> Iterator[str]:
    """Keys of the terms that a passage defines."""
    for one in find_definitions(text, heading_path):
        yield fold_term(one.term)
