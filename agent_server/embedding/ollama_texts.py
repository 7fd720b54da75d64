"""What is put before a text, which texts are not worth sending, and where a long one is cut in two."""

import re
from collections.abc import Iterator

from agent_server.embedding import is_blank

_SENTENCE_QUERY = "Represent this sentence for searching relevant passages: "
#: (pattern of the model's bare name, prefix of questions, prefix of passages), first match wins. The server adds
#: none of them, and a model asked without its own answers with vectors that rank worse.
_PREFIXES: tuple[tuple[str, str, str], ...] = (
    (r"nomic-embed-text", "search_query: ", "search_document: "),
    (r"mxbai-embed-large", _SENTENCE_QUERY, ""),
    (r"snowflake-arctic-embed2|snowflake-arctic-embed.*v2", "query: ", ""),
    (r"snowflake-arctic-embed", _SENTENCE_QUERY, ""),  # the first generation was trained with the sentence
    (r"bge-m3", "", ""),  # trained without an instruction, unlike its family
    (r"bge-", _SENTENCE_QUERY, ""),
    (r"(.*[-_])?e5-mistral", "", ""),  # wants an instruction per task, which nobody here can know
    (r"(.*[-_])?e5([-_]|$)", "query: ", "passage: "),
)
#: Where to cut, best first: blank line, line end, sentence end, space.
_SEAMS = (r"\n[^\S\n]*\n\s*", r"\n\s*", r"[.!?…。！？]['\"»”’)\]]*\s+|[。！？]", r"\s+")


def prefixes(model: str) -> tuple[str, str]:
    """(prefix of questions, prefix of passages) for a model name such as `nomic-embed-text:v1.5`."""
    bare = model.lower().rsplit("/", 1)[-1].partition(":")[0]
    for pattern, query, passage in _PREFIXES:
        if re.match(pattern, bare):
            return query, passage
    return "", ""


def halves(text: str) -> tuple[str, str] | None:
    """`text` cut in two near its middle at the best seam; None when no cut leaves two texts to read.

    Nothing but white space at the seam is lost.
    """
    middle = len(text) / 2
    for seam in _SEAMS:
        # A seam in the outer quarters would leave a part about as long as the whole.
        near = [cut for cut in _cuts(seam, text) if middle / 2 <= cut <= middle * 1.5]
        for cut in sorted(near, key=lambda cut: abs(cut - middle)):
            if not is_blank(text[:cut]) and not is_blank(text[cut:]):
                return text[:cut].strip(), text[cut:].strip()
    cut = len(text) // 2
    if is_blank(text[:cut]) or is_blank(text[cut:]):
        stripped = text.strip()
        return halves(stripped) if len(stripped) < len(text) else None
    return text[:cut].strip(), text[cut:].strip()


def _cuts(seam: str, text: str) -> Iterator[int]:
    return (match.end() for match in re.finditer(seam, text))
