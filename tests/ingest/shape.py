"""What every document has to fulfil, and short ways to look at one."""

import hashlib
import pickle
from pathlib import Path

from agent_server.ingest.extract import extract
from agent_server.ingest.hygiene import clean
from agent_server.models import Document, Rejected, SourceFile


def source(data: bytes | str, media_type: str, name: str) -> SourceFile:
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    return SourceFile(Path(name), name, raw, hashlib.sha256(raw).hexdigest(), len(raw), media_type)


def read(data: bytes | str, media_type: str, name: str = "folder/late-fees_2024.x") -> Document:
    """The document, after a check of everything the contract promises for any document."""
    document = extract(source(data, media_type, name))
    assert isinstance(document, Document), document
    check(document)
    return document


def refused(data: bytes | str, media_type: str, name: str = "a.x") -> Rejected:
    rejected = extract(source(data, media_type, name))
    assert isinstance(rejected, Rejected)
    return rejected


def check(document: Document) -> None:
    text = document.text
    assert document.title.strip()
    assert clean(text) == (text, ())
    at = 0
    open_headings: list[int] = []
    for block in document.blocks:
        assert at <= block.start < block.end <= len(text)
        assert not text[at : block.start].strip(), "text between two blocks"
        assert text[block.start : block.end].strip()
        assert (block.kind == "heading") == (1 <= block.level <= 6)
        if block.kind == "heading":
            open_headings = [level for level in open_headings if level < block.level] + [block.level]
        assert len(block.heading_path) == len(open_headings) or block.level == 6
        assert all(title and title == " ".join(title.split()) for title in block.heading_path)
        at = block.end
    assert not text[at:].strip(), "text after the last block"
    for before, after in zip(document.pages, document.pages[1:], strict=False):
        assert before.start <= before.end <= after.start <= after.end <= len(text)
    assert pickle.loads(pickle.dumps(document)) == document


def outline(document: Document) -> list[tuple[int, str]]:
    return [(b.level, b.heading_path[-1]) for b in document.blocks if b.kind == "heading"]


def kinds(document: Document) -> list[tuple[str, str]]:
    return [(b.kind, document.text[b.start : b.end]) for b in document.blocks]


def block_with(document: Document, words: str) -> tuple[str, tuple[str, ...], str]:
    """Kind, heading path and text of the first block that holds the words."""
    for block in document.blocks:
        text = document.text[block.start : block.end]
        if words in text:
            return block.kind, block.heading_path, text
    raise AssertionError(f"no block holds {words!r}")
