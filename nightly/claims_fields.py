"""Fields of claims that come from outside, from a file or from a language model: what they may hold."""

import unicodedata
from typing import Annotated

from pydantic import AfterValidator, Field

from nightly.claims_rules.wording import content, plain

MAX_STATEMENT_CHARS = 4000
MAX_SUBJECT_CHARS = 300
#: Left-to-right and right-to-left overrides: text that holds them is read in another order than it is shown.
_TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def _line(text: str) -> str:
    """`text` in one line. Raises ValueError for what drives terminals or turns text around."""
    out = " ".join(text.split())
    for char in out:
        if unicodedata.category(char) in ("Cc", "Cs") or char in _TURNS:
            raise ValueError(f"holds the control character U+{ord(char):04X}; expected plain text")
    return out


def _with_words(text: str) -> str:
    """`text` unchanged. Raises ValueError when all statements like it would be taken for one."""
    if len(content(plain(text))) < 2:
        raise ValueError("holds fewer than two words that say something; expected a sentence")
    return text


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds the character U+0000; expected text as it stands in a passage")
    return text


Name = Annotated[str, Field(min_length=1, max_length=MAX_SUBJECT_CHARS), AfterValidator(_line), Field(min_length=1)]
Sentence = Annotated[
    str, Field(min_length=3, max_length=MAX_STATEMENT_CHARS), AfterValidator(_line), AfterValidator(_with_words)
]
#: Words that must stand in a passage as they are.
Verbatim = Annotated[str, Field(min_length=1, max_length=MAX_STATEMENT_CHARS), AfterValidator(_without_nul)]
