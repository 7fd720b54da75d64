"""The things that travel between rooms: frozen, slotted, plain.

Write path: `SourceFile | Rejected` -> `Document` -> `Chunk` -> rows.
Read path: `Passage` inside `SearchResult`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal


class FileStatus(StrEnum):
    """What became of a file; the ledger (`files.status`) holds one of these for every file seen."""

    INDEXED = "indexed"
    PARTIAL = "partial"  # some chunks have no vector: the lexical arm finds them
    EMPTY = "empty"
    REJECTED = "rejected"  # not a format we read, or not what its name says
    ENCRYPTED = "encrypted"
    DAMAGED = "damaged"
    NO_TEXT = "no_text"  # readable, but holds no text (a scan)
    TOO_LARGE = "too_large"
    FAILED = "failed"  # our fault or the embedder's: tried again at the next run
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file whose bytes were read once and found to be of a kind we index."""

    path: Path
    source: str  #: path relative to its root, forward slashes: the name used in citations
    data: bytes
    sha256: str  #: hex, of `data`
    size_bytes: int
    media_type: str  #: by content: text/markdown, text/plain, text/html, text/x-rst, application/pdf, or DOCX's


@dataclass(frozen=True, slots=True)
class LargeText:
    """A text file too large to be held: checked and hashed once, to be read again in windows."""

    path: Path
    source: str
    sha256: str
    size_bytes: int
    media_type: str  #: text/plain or text/markdown
    encoding: str  #: as `codecs` knows it


@dataclass(frozen=True, slots=True)
class Rejected:
    """A file that will not become passages, and why."""

    source: str
    status: FileStatus
    reason: str
    sha256: str = ""
    size_bytes: int = 0
    media_type: str = ""
    settled: bool = True  #: False where the same bytes may fare better another time: a busy machine, a killed reader


BlockKind = Literal["heading", "paragraph", "list_item", "code", "table", "definition"]


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch `text[start:end]` of a document that a reader sees as one thing.

    Blocks are in order, do not overlap, and cover every non-blank character of the text.
    """

    kind: BlockKind
    start: int
    end: int
    #: headings above (and, for a heading, its own title last), outermost first, markup removed
    heading_path: tuple[str, ...]
    #: heading level 1..6 of a heading; 0 otherwise
    level: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """A page `text[start:end]`: `number` counts from 1 physically, `label` is what is printed on it."""

    number: int
    start: int
    end: int
    label: str = ""


MarkKind = Literal["heading", "link", "anchor", "repeated"]


@dataclass(frozen=True, slots=True)
class Mark:
    """What a stretch of text is besides words; offsets in the text of its document or chunk.

    "heading": a heading, `value` its level. "link": the words of a link, `value` its address. "anchor": a place that
    links can name, `value` the name. "repeated": what a chunk repeats before its own text.
    """

    kind: MarkKind
    start: int
    end: int
    value: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says: clean text with its structure, offsets in characters of `text`."""

    title: str
    text: str
    blocks: tuple[Block, ...]
    pages: tuple[Page, ...] = ()
    dated: date | None = None
    retired: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  #: what was found odd: "removed 3 NUL characters", "pages without text: 2, 5"
    marks: tuple[Mark, ...] = ()  #: links and anchors where the text does not show them, in order


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A stretch of a chunk's text and the hash of the whole paragraph that it belongs to.

    `start`/`end` are offsets in `Chunk.text`. `hash` is a signed 64-bit hash of the normalised text of the
    whole paragraph, also where the stretch is only its last sentence carried over as overlap; a paragraph cut
    into several chunks is hashed stretch by stretch. Only paragraphs of 80 normalised characters or more.
    """

    start: int
    end: int
    hash: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage as it will be stored: `document.text[char_start:char_end]` verbatim.

    A part of a long table or fence can be read alone: its text is `prelude`, then the slice, then a fence's closing
    line.
    """

    index: int
    text: str
    context: str  #: "Title > Section > Subsection"
    heading_path: tuple[str, ...]
    label: str  #: numbering of the innermost heading ("4.2", "§ 1002.9", "Article 6"), "" without one
    page_first: int | None
    page_last: int | None
    char_start: int
    char_end: int
    paragraphs: tuple[Paragraph, ...] = ()
    #: what was repeated before the verbatim text so that the part can be read alone (table header, fence line)
    prelude: str = ""
    marks: tuple[Mark, ...] = ()  #: headings, links and anchors in `text`, and what is repeated


Relation = Literal["cites", "defines"]
Via = Literal["search", "cites", "defines"]


@dataclass(frozen=True, slots=True)
class Edge:
    """Why a passage is there, or stands first: the chunk that led to it, the relation and the words that say so."""

    from_chunk: str  #: "question" where the question itself asks for what the passage defines
    relation: Relation
    anchor: str


@dataclass(frozen=True, slots=True)
class Passage:
    """One result with everything needed to cite it and to see why it stands where it stands."""

    rank: int  #: from 1
    chunk_id: str
    source: str
    title: str
    chunk_index: int
    page: int | None
    heading: tuple[str, ...]
    text: str
    context: str
    score: float
    dense_rank: int | None
    dense_score: float | None  #: cosine similarity
    lexical_rank: int | None
    lexical_score: float | None  #: BM25
    authority: float
    also_in: tuple[str, ...] = ()
    via: Via = "search"
    edge: Edge | None = None

    def to_json(self) -> dict[str, Any]:
        """The contract's shape; `edge` uses the key `from`."""
        out = asdict(self)
        out["heading"] = list(self.heading)
        out["also_in"] = list(self.also_in)
        if self.edge is not None:
            out["edge"] = {
                "from": self.edge.from_chunk,
                "relation": self.edge.relation,
                "anchor": self.edge.anchor,
            }
        return out


@dataclass(frozen=True, slots=True)
class Degraded:
    """An arm that did not run, and why."""

    arm: str  #: "dense", "lexical", "expansion", "trace"
    reason: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The answer to one question, best passage first."""

    query: str
    collection: str
    passages: tuple[Passage, ...]
    trace_id: str
    timings_ms: Mapping[str, float]
    degraded: tuple[Degraded, ...] = ()
    diagnostic: str | None = None
    support: float | None = None
    answerable: bool | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "collection": self.collection,
            "passages": [p.to_json() for p in self.passages],
            "support": self.support,
            "answerable": self.answerable,
            "diagnostic": self.diagnostic,
            "degraded": [asdict(d) for d in self.degraded],
            "trace_id": self.trace_id,
            "timings_ms": dict(self.timings_ms),
        }
