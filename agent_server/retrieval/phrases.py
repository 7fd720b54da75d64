"""Words that must stand next to each other, as a tsquery made of our own lexemes: no text reaches a tsquery parser.

Positions come from the same functions that index a passage, so that what is adjacent there is adjacent here: a stop
word between two words keeps its place as a gap, a code is its parts in order (NW-4021, NW 4021 and NW4021 are one
phrase), and a script without spaces is its bigrams one after the other.
"""

from collections.abc import Sequence

from agent_server.db import Conn, fetch_all
from agent_server.errors import InvalidArgument
from agent_server.lexemes import lexical_text, quote_lexeme


def tsqueries(connection: Conn, config: str, field: str, phrases: Sequence[str]) -> list[str]:
    """A tsquery for each phrase. Raises InvalidArgument that names `field` for one without anything to look for."""
    texts = [lexical_text(phrase) for phrase in phrases]
    values = {"config": config, "words": [t.words for t in texts]}
    placed: list[dict[int, list[str]]] = [{} for _ in texts]
    for row in fetch_all(connection, "phrase_terms", values):
        placed[row["phrase"] - 1].setdefault(row["position"], []).append(row["lexeme"])
    out = []
    for phrase, text, words in zip(phrases, texts, placed, strict=True):
        bigrams = [e for e in text.extras if e.startswith("~")]
        if any(len(e) == 2 for e in bigrams):  # the mark and one character
            raise InvalidArgument(
                field, f"{phrase!r} holds a single character of a script without spaces; expected two or more of them"
            )
        # C++, C# and .NET lose their signs as words.
        signed = [e for e in text.extras if e.startswith("#.") or e.endswith(("+", "#"))]
        parts = [*_adjacent(words), *_adjacent({n: [e] for n, e in enumerate(bigrams)}), *map(quote_lexeme, signed)]
        if not parts:
            raise InvalidArgument(field, f"{phrase!r} holds only stop words or symbols; expected words to look for")
        out.append(" & ".join(parts))
    return out


def _adjacent(placed: dict[int, list[str]]) -> list[str]:
    """Lexemes at their distances as one tsquery operand, in a list that is empty when there are none."""
    out, before = "", 0
    for position, lexemes in sorted(placed.items()):
        here = " | ".join(map(quote_lexeme, sorted(lexemes)))
        here = f"({here})" if len(lexemes) > 1 else here
        out = f"{out} <{position - before}> {here}" if out else here
        before = position
    return [f"({out})"] if out else []
