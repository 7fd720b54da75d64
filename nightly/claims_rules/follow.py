"""Where the words of a claim stand in another version of their passage."""

import re

_BEFORE = re.compile(
    r"(?:\A|[.!?:;)\]|>*”\"•–—-])\s*[*_“\"'(\[]*\Z|\n\s*(?:[-*+•]|\(?\w{1,4}[.)])?[ \t]*[*_“\"'(\[]*\Z"
)
_AFTER = re.compile(r"[*_”\"')\]]*(?:\s|\Z|[.;,|]\s)")


def found_again(text: str, quote: str) -> int | None:
    """Where `quote` stands in `text` as a sentence or an entry of its own, None when it does not.

    Inside of a longer sentence the same words may say something else: "it is not true that …".
    """
    at = text.find(quote)
    while at >= 0:
        if _BEFORE.search(text[max(at - 40, 0) : at]) and _AFTER.match(text[at + len(quote) : at + len(quote) + 4]):
            return at
        at = text.find(quote, at + 1)
    return None
