"""Documents as their passages hold them, made from text by the real extraction and cutting."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from agent_server.ingest.chunk import chunk_document
from agent_server.ingest.extract import extract
from agent_server.models import Document, SourceFile
from nightly.references.books import Book
from nightly.references.edges import Edges, edges_of
from nightly.references.manuscript import Passage, assemble

KINDS = {".md": "text/markdown", ".rst": "text/x-rst", ".txt": "text/plain", ".html": "text/html"}


def book(text: str, source: str = "rules.md", *, size: int = 800) -> Book:
    """A document with its passages numbered from 0."""
    kind = KINDS[Path(source).suffix]
    data = text.encode()
    document = extract(SourceFile(Path(source), source, data, hashlib.sha256(data).hexdigest(), len(data), kind))
    assert isinstance(document, Document), document
    chunks = chunk_document(document, size=size, overlap=size // 8)
    passages = [Passage(c.index, c.char_start, c.char_end, c.text, c.marks) for c in chunks]
    return Book(assemble(source, document.title, kind, passages))


class Shelf:
    """A collection of documents in memory."""

    def __init__(self, *books: Book) -> None:
        self.books = {b.source: b for b in books}

    def called(self, key: str) -> Sequence[str]:
        return sorted(s for s, b in self.books.items() if key in b.names)

    def book(self, source: str) -> Book | None:
        return self.books.get(source)


def edges(text: str, source: str = "rules.md", *others: Book) -> Edges:
    own = book(text, source)
    return edges_of(own, Shelf(own, *others))


def led(text: str, source: str = "rules.md") -> dict[str, str]:
    """What each reference of a document leads to in it, by its words: the first words there, or "! reason"."""
    own = book(text, source)
    found = edges_of(own, Shelf(own))
    texts = {p.id: p.text for p in own.manuscript.passages}
    out = {d.anchor: f"! {d.reason}" for d in found.dangling}
    for link in found.links:
        out[link.anchor] = " ".join(texts[link.target.passage][link.target.start : link.target.end].split())[:40]
    return out
