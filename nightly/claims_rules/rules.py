"""Limits, duties, exclusions and conditions in sentences: "X must … within N days", "X does not include …"."""

import re
import textwrap
from collections.abc import Iterator

from nightly.claims_rules.alone import EXCEPTS, continues, doubts_about, is_known, is_place_of_rules
from nightly.claims_rules.model import Found, Kind, Surroundings
from nightly.claims_rules.places import resolved
from nightly.claims_rules.splitting import sentences
from nightly.claims_rules.wording import holds_placeholder, plain, sentence
from nightly.definitions.units import Unit, is_title, units

MAX_SUBJECT_WORDS = 14
MAX_HEADING = 110

_VERB = re.compile(
    r"(?<![\w-])(?:"
    r"(?P<exclusion>(?:does|do)\s+not\s+(?:include|apply\s+to|cover|extend\s+to)|(?:is|are)\s+not\s+(?:an?|the)\s+|excludes?\s)"
    r"|(?P<duty>(?:must|shall)(?:\s+not|\s+only)?|may\s+not|may\s+only|need\s+not|cannot|(?:is|are)\s+(?:not\s+)?(?:required|prohibited|entitled|"
    r"permitted|allowed|obliged)\s+(?:to|from)|(?:has|have)\s+the\s+right\s+to|MUST(?:\s+NOT)?|(?:is|are)\s+never\s+\w+ed\b)"
    r"|(?P<state>is|are|has|have|may|can|costs?|runs?|lasts?|ends?|begins?|expires?|takes?|receives?|lapses?|stays?|pays?|bears?)"
    r")(?![\w-])"
)
#: A number with what it counts.
_AMOUNT = re.compile(
    r"(?:[$€£]\s?\d[\d,.]*|\b\d[\d,.]*\s*(?:%|percent(?:age)?\b)|"
    r"\b(?:\d[\d,.]*|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\s+(?:\w+\s+){0,2}?"
    r"(?:days?|hours?|minutes?|weeks?|months?|years?|quarters?|semesters?|percent|percentage\s+points?|points?|miles?|pages?|times|bytes?|characters?|"
    r"spaces?|columns?|lines?|installments?|payments?|absences?|students?|persons?|copies|acres))",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"\b(?:within|at\s+(?:most|least)|no\s+(?:more|less|later|fewer|sooner)\s+than|not\s+(?:more|less|later|fewer)\s+than|more\s+than|less\s+than|"
    r"(?:not\s+)?exceed(?:s|ing)?|up\s+to|for|from|between|after|before|until|minimum|maximum|limit\w*|is|are|costs?|only)\b",
    re.IGNORECASE,
)
#: "A member is in good standing if …": what is defined stands behind the verb.
_CONDITION = re.compile(
    r"(?:an?|the|each|every)\s+(?P<who>[\w’' -]{2,60}?)\s+(?:is|are)\s+"
    r"(?:considered\s+|treated\s+as\s+|deemed\s+(?:to\s+be\s+)?)?"
    r"(?P<what>in\s+[a-z-]+(?:\s+[a-z-]+)?|past\s+due|excused|unexcused|overdrawn|"
    r"(?!possible|available|free|enough|due|made|sent|given|paid|told|kept|not|necessary|better|best|true|fine|good|used|done|taken|"
    r"shown|held|put|begun|shut|set|only|allowed|there|also|never|always|open|payable)[a-z-]+(?<!ed))"
    r"\s+(?:if|when|where|unless|only\s+if)\b",
    re.IGNORECASE,
)
#: "A business day is a day on which …": a kind, and what sets it apart.
_KIND_OF = re.compile(
    r"an?\s+(?P<what>[\w’'-]+(?:\s+[\w’'-]+){0,4}?)\s+is\s+(?:an?|any|the)\s+[\w’' -]{2,60}?\b"
    r"(?:that|which|who|whose|where|whom)\b",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:if|where|when|whenever|for|in|on|before|after|within|until|unless|except|upon|at|by|between|during|as\s+long\s+as|from|under|to)\b[^,;:]{2,160},\s+",
    re.IGNORECASE,
)
_DETERMINER = re.compile(r"\A(?:an?|the|each|every|any|no|all|some)\s+", re.IGNORECASE)
_GENERIC = re.compile(
    r"(?i:an?|each|every|any|no|all)\s+|[A-Z][\w’'-]*s\b|[A-Z][A-Z]|[A-Z]+-\d|[A-Z]\w+\s+(?:[A-Z]|of\b)"
)
_CLAUSE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|does|do|did|that|which|who|whose|if|when|because|while|may|can|must|shall|should|would|could|not|and\s+the)\b",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"\s+(?:in|for|to|from|with|without|on|under|by|at|between|against|above|below|over|after|before|than|as|not|other|made|sent|whose)\b.*\Z",
    re.IGNORECASE | re.DOTALL,
)
_NO_SUBJECT = re.compile(
    r"\b(?:else|nobody|nothing|everything|everybody|everyone|anyone|anything|before|after|until|as|so|also|within|some|joins?)\b",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?:\A|\s)\(?(?:[a-z]|\d|[ivx]+)\)\s")


def in_rules(text: str, around: Surroundings) -> list[Found]:
    """The limits, duties, exclusions and conditions in `text`, in order."""
    if not is_place_of_rules(around.heading_path, around.title):
        return []
    return list(_all(text, around))


def _all(text: str, around: Surroundings) -> Iterator[Found]:
    every = list(units(text))
    announced = _announces(around.before)
    for unit in every:
        words = text[unit.body : unit.end].strip()
        if unit.kind in ("row", "heading") or (is_title(text, unit) and not words.endswith(".")):
            announced = ""
            continue
        if unit.kind == "text":
            announced = ""
        spans = list(sentences(text, unit.body, unit.end))
        for n, (low, high) in enumerate(spans):
            after = text[spans[n + 1][0] :][:80] if n + 1 < len(spans) else ""
            found = _claim(text, low, high, unit, around, first=n == 0, after=after, announced=announced)
            if found is not None:
                yield found
        if words.endswith((":", "—", "–")):
            announced = words
        elif unit.kind == "item" and re.search(r"\b(?:and|or)\W*\Z|;\Z", words):
            announced = announced or words


def _announces(before: str) -> str:
    """The sentence at the end of the passage before that announces a list, '' when it does not."""
    last = before.rstrip()[-300:]
    return last if last.endswith((":", ";", "—", "; and", "; or", ", and", ", or")) else ""


def _claim(  # noqa: PLR0912  one doubt after the other
    text: str, low: int, high: int, unit: Unit, around: Surroundings, *, first: bool, after: str, announced: str
) -> Found | None:
    raw = text[low:high]
    words, doubts = resolved(plain(raw), around)
    if len(words.split()) < 5 or not re.match(r"[\"“'‘(]?[A-Z0-9$]", words):
        return None
    condition = _CONDITION.match(words)
    lead = _LEAD.match(words)
    at = lead.end() if lead else 0
    verb = next((m for m in _VERB.finditer(words, at)), None)
    if verb is None or verb.start() <= at:
        return None
    subject = re.sub(r"\A(?:then|so)\s+", "", words[at : verb.start()].strip(" ,"))
    kind_of = None if lead else _KIND_OF.match(words)
    kind, rule = _kind(words, verb, condition, kind_of)
    if kind is None:
        return None
    if len(subject.split()) > MAX_SUBJECT_WORDS or not subject:
        return None
    if _CLAUSE.search(subject) or _NO_SUBJECT.search(subject) or re.search(r"[,:;#]", subject):
        return None
    bare = _DETERMINER.sub("", subject, count=1)
    if _AMOUNT.fullmatch(bare):
        return None
    if not re.search(r"[^\W\d_]{2}", bare) or re.match(
        r"(?:it|they|he|she|this|that|these|those|we|you|i|there|which|who)\b", subject, re.IGNORECASE
    ):
        return None
    doubts += doubts_about(words, subject_end=verb.start(), definition=kind == "definition")
    if kind == "definition":
        doubts += continues(words)
    if announced and unit.kind == "item":
        doubts.append("an item of a list")
    if not re.search(r"[.!][”\"’')]*\Z", raw.rstrip("*_")):
        doubts.append("may be cut")
    if holds_placeholder(raw):
        doubts.append("a letter stands for something")
    if _NUMBERED.search(words):
        doubts.append("holds a list")
    if after and EXCEPTS.match(after.lstrip("*_ ")):
        doubts.append("an exception follows")
    if not (_GENERIC.match(subject) or subject.lower().startswith("the ") or _is_plural(subject)):
        doubts.append("what is the subject?")
    heading = _heading(around)
    names = [bare, _TAIL.sub("", bare)]
    if condition:
        what = condition["what"].strip()
        names = [
            re.sub(r"\Ain\s+", "", what, flags=re.IGNORECASE),
            f"{what} {condition['who']}",
            f"{condition['who']} {what}",
        ]
    if subject.lower().startswith("the "):
        if heading is None:
            doubts.append("no heading says where it holds")
        if not first and not lead:
            doubts.append("in which case?")
        if not is_known(bare, heading or "", around.terms):
            doubts.append("which one?")
    statement = sentence(words) if not heading else f"{heading}: {sentence(words)}"
    return Found(
        kind,
        names[0],
        statement,
        low,
        high,
        rule,
        tuple(dict.fromkeys(n for n in names[1:] if n)),
        tuple(dict.fromkeys(doubts)),
    )


def _kind(
    words: str, verb: re.Match[str], condition: re.Match[str] | None, kind_of: re.Match[str] | None
) -> tuple[Kind | None, str]:
    """What a sentence says of its subject, and by which form."""
    amount = _AMOUNT.search(words)
    bounded = amount is not None and _BOUND.search(words) is not None
    if condition is not None:
        return "definition", "condition"
    if kind_of is not None and verb.group() == "is":
        return "definition", "kind"
    if verb["exclusion"]:
        return "exclusion", "exclusion"
    if verb["duty"]:
        return ("limit", "limit") if bounded else ("duty", "duty")
    return ("limit", "limit") if bounded else (None, "")


def _is_plural(subject: str) -> bool:
    head = _TAIL.sub("", subject).split()
    return bool(head) and head[-1].endswith("s") and not head[-1].endswith("ss")


def _heading(around: Surroundings) -> str | None:
    """The innermost heading without its number; None when it says nothing."""
    for heading in reversed(around.heading_path):
        words = plain(heading)
        words = _NUMBERING.sub("", words).strip(" .:–—-")
        if len(words) >= 4 and re.search(r"[^\W\d_]{3}", words):
            return None if _SAYS_NOTHING.fullmatch(words) else textwrap.shorten(words, MAX_HEADING, placeholder=" …")
        return None
    return None


_NUMBERING = re.compile(
    r"\A(?:§{1,2}\s*)?(?:(?:article|section|part|chapter|appendix|annex|policy|step)\s+)?"
    r"(?:(?:\d[\d.]*|[IVXLC]+|[A-Z])(?:\(\w+\))*(?=[.):\s—–-]))?[.:)\s—–-]*(?=[A-Z“\"])",
    re.IGNORECASE,
)
_SAYS_NOTHING = re.compile(
    r"general(?:\s+(?:rules?|provisions?))?|scope|definitions?|purpose|introduction|requirements?|details?|notes?|section.*|in\s+general|other|miscellaneous",
    re.IGNORECASE,
)
