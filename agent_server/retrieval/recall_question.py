"""What a question asks of claims, read from its words alone: names of what it is about, codes, and words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent_server.errors import InvalidArgument
from agent_server.lexemes import LexicalText, lexical_text
from agent_server.retrieval.intent import read_intent
from agent_server.terms import fold_term

_WHAT_IS = re.compile(
    r"\W*(?:(?:what|who)(?:['’]s|\s+is|\s+are)\s+(?:an?\s+|meant\s+by\s+)(?P<term>.+)\Z"
    r"|what\s+(?:does|do)\s+(?P<verb>.+?)\s+(?:mean|stand\s+for)\b|define\s+(?P<order>.+)\Z)",
    re.IGNORECASE,
)
_QUALIFIES = frozenset(
    [
        "in",
        "for",
        "on",
        "at",
        "to",
        "from",
        "with",
        "under",
        "when",
        "if",
        "after",
        "before",
        "during",
        "according",
        "within",
    ]
)
#: "the word hold", "the term loan": what follows is a name, whether or not these words belong to it.
_CALLED = re.compile(
    r"\b(?:the\s+(?P<term>term|concept)|(?P<word>word|phrase|expression|abbreviation|acronym))s?\s+", re.IGNORECASE
)
#: Questions that a figure answers: "what is the grace period", not "what is a grace period".
_THE_ONE = re.compile(r"\A\W*(?:what|which)\s+(?:is|are|'s|’s)\s+the\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks for: `names` are keys of what it may be about, likeliest first; `whole` are the words of the
    whole name, which a claim found by the end of it alone must hold."""

    text: LexicalText
    the_one: bool
    names: tuple[str, ...]
    sure: frozenset[str]  #: names that are no mere end of another
    whole: frozenset[str]
    codes: tuple[str, ...]
    used: tuple[str, ...]


def checked(query: str, max_chars: int) -> str:
    """The question in one line, without what cannot be printed. Raises InvalidArgument when it is blank or too long."""
    text = " ".join("".join(c for c in query if c.isprintable() or c.isspace()).split())
    if not text:
        raise InvalidArgument("query", "is blank; expected a question or some words")
    if len(text) > max_chars:
        raise InvalidArgument("query", f"has {len(text)} characters; expected at most {max_chars}")
    return text.encode("utf-8", "replace").decode()


def read_asked(query: str) -> Asked:
    """What a question (of `checked`) asks for."""
    intent = read_intent(query)
    text = lexical_text(query, question=True)
    codes = tuple(dict.fromkeys(e for e in text.extras if e.startswith("#=")))
    asked = intent.asked
    if not asked and (found := _WHAT_IS.match(query)):  # "what is a new car": no measure, whatever its first word
        asked = (key,) if (key := fold_term(next(filter(None, found.groups()), ""))) else ()
    whole = asked[0].split() if asked else []
    called = _called(query, whole)
    names = tuple(dict.fromkeys((*asked[:1], *called, *_shortened(asked), *asked)))
    # Names come from the whole to its beginnings; what does not begin like the whole is an end of it.
    begins = [whole, *(name.split() for name in called)]
    sure = frozenset(n for n in names if any(_is_beginning(n.split(), of) for of in begins))
    shortest = min((n.split() for n in sure), key=len, default=whole)
    return Asked(text, _THE_ONE.match(query) is not None, names, sure, frozenset(shortest), codes, intent.used)


def _called(query: str, whole: Sequence[str]) -> list[str]:
    """What stands behind "the term" and its like, as the name that it is."""
    found = _CALLED.search(query)
    if found is None or len(whole) < 2 or whole[0] != fold_term(found["term"] or found["word"]):
        return []
    return [" ".join(whole[1:])]


def _shortened(names: Sequence[str]) -> list[str]:
    """The name without what says where or for whom it is asked: "eligible student in the record policy"."""
    words = names[0].split() if names else []
    at = next((n for n, word in enumerate(words) if n and word in _QUALIFIES), None)
    return [" ".join(words[:at])] if at is not None else []


def _is_beginning(words: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether a name begins with these words. They may not leave out what it is of: "cost" of "cost of attendance" is
    something else."""
    length = len(words)
    return list(whole[:length]) == list(words) and not (length < len(whole) and whole[length] == "of")
