"""Hashes by which equal passages and equal paragraphs are known again in other documents.

Both are pure functions of the text. They are stored, so another normalisation means ingesting again.
"""

import hashlib
import re
import unicodedata

MIN_CHARS = 80  #: normalised characters below which a paragraph is too common to say anything ("See above.")

_QUOTE = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_LIST_MARK = re.compile(r"\A\s*(?:[-*+•‣◦–][ \t]+|#?\d{1,9}[.)][ \t]+|#\.[ \t]+)(?:\[[ xX]\][ \t]+)?")
#: Asterisks, backticks and doubled tildes everywhere; underscores only at the edge of a word (snake_case is a name).
#: The sign comes first in the pattern: a search for what stands before it would stop at every letter.
_EMPHASIS = re.compile(
    r"[*`~_](?:(?<=[*`])[*`]*|(?<=~)~|(?<!\w_)(?<=_)_*(?=\w)|(?<=\w_)_*(?!\w)|(?<=[^\w\s]_)_*(?!\w))"
)


def _folded(text: str) -> str:
    """NFKC, case folded, white space collapsed. NFKC again at the end, because folding can undo it."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).split())


def _bare(text: str) -> str:
    """The words of a paragraph without what a quotation, a list or emphasis puts around them."""
    text = _QUOTE.sub("", text) if ">" in text else text
    text = _LIST_MARK.sub("", text)
    return _folded(_EMPHASIS.sub("", text))


def paragraph_hash(text: str) -> int | None:
    """Signed 64-bit hash (BLAKE2b) of a paragraph's words; None under `MIN_CHARS` normalised characters.

    A quotation of the paragraph (`>` before its lines), its use as a list item, other line breaks and emphasis
    give the same hash. Never raises.
    """
    bare = _bare(text)
    if len(bare) < MIN_CHARS:
        return None
    digest = hashlib.blake2b(bare.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def passage_hash(text: str) -> bytes:
    """SHA-256 of the passage's text, NFKC, case folded and white space collapsed. Never raises."""
    return hashlib.sha256(_folded(text).encode("utf-8", "surrogatepass")).digest()
