"""What a question asks for, read from its words alone: whether it wants something defined, and which terms it uses.

Pure. Terms are keys (`fold_term`); whether a collection defines any of them is the database's business, so that
guesses may be generous here: a key that nothing defines finds nothing.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent_server.terms import MAX_TERM_WORDS, fold_term, term_words

MAX_KEYS = 60
#: A question of at most so many words and without a verb may be a term alone.
MAX_BARE_WORDS = 6

_CALLED = (
    r"(?:the\s+|a\s+|an\s+)?"
    r"(?P<called>(?:term|word|phrase|expression|abbreviation|acronym|concept)s?\s+)?"
)
_TERM = _CALLED + r"(?P<term>[^?!\n]{1,200}?)"
_END = r"(?:[?!.].*)?\Z"
_COUNTS = r"(?:counts?|qualif(?:y|ies)|(?:is|are)\s+(?:considered|regarded|treated))\s+(?:as\s+|to\s+be\s+)?"
#: Ways to ask what something means. They stop at the first that fits.
_ASKING = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bwhat\s+(?:do|does|did|would)\s+{_TERM}\s+(?:(?:really|exactly|actually)\s+)?"
        r"(?:mean|stand\s+for|refer\s+to|denote|signify|designate)\b",
        rf"\bwhat\s+(?:is|are|was)\s+(?:meant|understood|intended|covered)\s+(?:by|under)\s+{_TERM}{_END}",
        rf"\b(?:meanings?|definitions?|sense)\s+(?:of|for)\s+{_TERM}{_END}",
        rf"\A\W*(?:please\s+)?(?:define|definition\s*:)\s+{_TERM}{_END}",
        rf"\b(?:how|where)\s+(?:is|are)\s+{_TERM}\s+(?:defined|understood)\b",
        rf"\bhow\s+(?:do|does)\s+[^?]{{1,60}}\s+define\s+{_TERM}{_END}",
        rf"\b(?:what|who|which\s+\w+)\s+{_COUNTS}{_TERM}{_END}",
        rf"\A\W*(?:what|who)(?:'s|’s|\s+is|\s+are)\s+{_TERM}{_END}",
        rf"\A\W*{_TERM}\s*,?\s+(?:definition|meaning|defined)\W*\Z",
    )
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Words that end the name of a thing: what follows says where, when or for whom.
_AFTER_NAME = _words(
    """for in on at by to from with under when if after before during as that which who whose where while according
    within because and or is are was used mean about between"""
)
_VERBS = _words(
    """is are was were be do does did can could will would shall should may might must has have had what who whom which
    when where why how"""
)
#: Words that ask for a quantity or for one of several things, not for what the thing is.
_MEASURES = _words(
    """maximum minimum most least total current average latest first last next new old usual normal exact only right
    best worst amount cost price fee limit deadline date number length size name address difference purpose penalty
    largest smallest highest lowest greatest longest shortest earliest oldest newest cheapest fastest biggest nearest
    closest youngest strictest"""
)
_SMALL = (
    _AFTER_NAME | _VERBS | _words("a an the of not no it its this these those my your our their i we you they he she")
)


@dataclass(frozen=True, slots=True)
class Intent:
    """What a question asks for.

    `definitional`: it asks what something means, and `asked` holds keys of what that may be, likeliest first. Also of a
    question that may be a bare term. `used`: keys of all stretches of its words that may be terms, longest first.
    """

    definitional: bool
    asked: tuple[str, ...]
    used: tuple[str, ...]


def read_intent(question: str) -> Intent:
    """What `question` asks for."""
    text = question.replace("*", " ").replace("`", " ")[:2000]
    found = next((m for pattern in _ASKING if (m := pattern.search(text))), None)
    words = [word for word, _, _ in term_words(text)]
    if found is not None:
        # "the term loan" may be a loan by that name, or the word "loan".
        both = ((found["called"] + found["term"],) if found["called"] else ()) + (found["term"],)
        asked = tuple(_distinct(key for term in both for key in _names(term)))
    elif 0 < len(words) <= MAX_BARE_WORDS and not _VERBS & set(words):
        asked = (key,) if (key := fold_term(text)) else ()
    else:
        asked = ()
    return Intent(bool(asked), asked, tuple(_distinct(_stretches(words))))


def _names(term: str) -> Iterator[str]:
    """Keys of what a stretch of a question may name: all of it, less and less of its end, then the last words of the
    name that it begins with ("good standing": "standing")."""
    words = [word for word, _, _ in term_words(term)]
    while len(words) > 1 and words[0] in ("a", "an", "the"):
        del words[0]
    if not words or words[0] in _MEASURES:
        return
    ends = next((n for n, word in enumerate(words) if n and word in _AFTER_NAME), len(words))
    for end in range(min(len(words), MAX_TERM_WORDS), ends - 1, -1):
        yield " ".join(words[:end])
    of = words.index("of") if "of" in words[1:ends] else ends
    if of < ends:
        yield " ".join(words[:of])
    for start in range(1, ends):
        if words[start] not in _SMALL:
            yield " ".join(words[start:ends])


def _stretches(words: list[str]) -> Iterator[str]:
    """All stretches of the words that can be a term, longest first."""
    for length in range(min(len(words), MAX_TERM_WORDS - 2), 0, -1):
        for start in range(len(words) - length + 1):
            if words[start] not in _SMALL and words[start + length - 1] not in _SMALL:
                yield " ".join(words[start : start + length])


def _distinct(keys: Iterable[str]) -> list[str]:
    """Without repetitions, and no more than are looked up."""
    out: dict[str, None] = {}
    for key in keys:
        if key:
            out.setdefault(key)
        if len(out) == MAX_KEYS:
            break
    return list(out)
