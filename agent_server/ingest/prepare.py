"""Passages made ready for the table: all that can be computed without the database, done where the file is read.

Words, identifiers and hashes of a passage cost more than its insertion, so the reading processes make them and the
process that talks to Postgres passes them on as text.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agent_server.ingest.chunk_label import label
from agent_server.ingest.paragraphs import passage_hash
from agent_server.lexemes import LexicalText, entry_lexemes, label_lexemes, lexical_text
from agent_server.models import Chunk


@dataclass(frozen=True, slots=True)
class Part:
    """Neighbouring passages of one file, in order."""

    texts: tuple[str, ...]  #: what is embedded
    hashes: tuple[bytes, ...]  #: passage hashes
    rows: str  #: JSON array of objects, as chunk_insert.sql wants them


def passage_text(context: str, text: str) -> str:
    """What is embedded for a passage."""
    return f"{context}\n\n{text}"


def prepare(chunks: Sequence[Chunk]) -> Part:
    """`chunks` as a part; pure."""
    hashes = tuple(passage_hash(c.text) for c in chunks)
    contexts = {c: lexical_text(c) for c in {c.context for c in chunks}}
    both = zip(chunks, hashes, strict=True)
    rows = [_row(n, chunk, hash_, contexts[chunk.context]) for n, (chunk, hash_) in enumerate(both, 1)]
    return Part(tuple(passage_text(c.context, c.text) for c in chunks), hashes, json.dumps(rows))


def _row(position: int, chunk: Chunk, hash_: bytes, context: LexicalText) -> dict[str, Any]:
    body = lexical_text(chunk.text)
    # A section without a number of its own ("Why") does not bear the number that it stands under.
    bears_label = label(chunk.heading_path[-1:]) == chunk.label
    own = (label_lexemes(chunk.label) if bears_label else ()) + entry_lexemes(chunk.text)
    return {
        "position": position,
        "chunk_index": chunk.index,
        "text": chunk.text,
        "context": chunk.context,
        "heading_path": list(chunk.heading_path),
        "label": chunk.label,
        "page_first": chunk.page_first,
        "page_last": chunk.page_last,
        "char_start": chunk.char_start,
        "char_end": chunk.char_end,
        "passage_hash": f"\\x{hash_.hex()}",
        "paragraph_hashes": [p.hash for p in chunk.paragraphs],
        "paragraph_spans": [edge for p in chunk.paragraphs for edge in (p.start, p.end)],
        "marks": [[m.kind, m.start, m.end, m.value] for m in chunk.marks],
        "words": body.words,
        "context_words": context.words,
        "extras": LexicalText("", context.extras + body.extras + own).extras_tsvector,
    }
