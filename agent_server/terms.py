"""How a defined term is looked up: one key for a term however it is written, in documents and in questions.

Pure, and the same on both sides: "Debt-to-Income Ratios" and "the debt to income ratio" have one key. Plurals are
undone word by word; stems are not taken, as "applicant" and "application" would become one.
"""

import re
import unicodedata
from functools import lru_cache

MAX_TERM_WORDS = 10

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*[+#]{0,2}")
_MARKS = re.compile("[\u0300-\u036f]")
_ARTICLES = ("a", "an", "the")
_MIN_PLURAL = 4  # "gas", "bus": shorter words keep their s


def term_words(text: str) -> list[tuple[str, int, int]]:
    """The words of `text` as keys are made of, each with its start and end."""
    return [(_word(m.group()), m.start(), m.end()) for m in _WORD.finditer(text)]


def fold_term(term: str) -> str:
    """The key of a term; '' for one without words."""
    words = [word for word, _, _ in term_words(term)]
    while len(words) > 1 and words[0] in _ARTICLES:
        del words[0]
    return " ".join(words)


@lru_cache(maxsize=65_536)
def _word(word: str) -> str:
    word = _MARKS.sub("", unicodedata.normalize("NFKD", word)).casefold().replace("’", "'")
    word = word.removesuffix("'s").removesuffix("'").replace("'", "")
    if len(word) < _MIN_PLURAL or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > _MIN_PLURAL:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return word[:-2]
    return word[:-1]
