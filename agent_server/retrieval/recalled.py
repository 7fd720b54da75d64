"""What recall answers with: verified claims, each with the passage it rests on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SHOWN_COPIES = 5


@dataclass(frozen=True, slots=True)
class Recalled:
    """A verified claim with the passage it rests on."""

    rank: int  #: from 1
    id: int
    collection: str
    kind: str
    subject: str
    statement: str
    score: float  #: BM25 over claims, comparable within one collection
    confidence: float
    verified_by: str
    quote: str
    chunk_id: str
    source: str
    title: str
    page: int | None
    heading: tuple[str, ...]
    context: str
    text: str  #: of the passage, verbatim
    authority: float
    also_in: tuple[str, ...]  #: other passages that say the same
    contradicted_by: tuple[Mapping[str, Any], ...]  #: claims from sources of another authority

    def to_json(self) -> dict[str, Any]:
        return {
            "rank": self.rank,
            "id": self.id,
            "collection": self.collection,
            "kind": self.kind,
            "subject": self.subject,
            "statement": self.statement,
            "score": self.score,
            "confidence": self.confidence,
            "verified_by": self.verified_by,
            "quote": self.quote,
            "chunk_id": self.chunk_id,
            "source": self.source,
            "title": self.title,
            "page": self.page,
            "heading": list(self.heading),
            "context": self.context,
            "text": self.text,
            "authority": self.authority,
            "also_in": list(self.also_in),
            "contradicted_by": [dict(c) for c in self.contradicted_by],
        }


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The claims for one question, best first; without any, `diagnostic` says why."""

    query: str
    collections: tuple[str, ...]
    claims: tuple[Recalled, ...]
    diagnostic: str | None
    timings_ms: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "collections": list(self.collections),
            "claims": [c.to_json() for c in self.claims],
            "diagnostic": self.diagnostic,
            "timings_ms": dict(self.timings_ms),
        }


def recalled(rank: int, collection: str, claim: Mapping[str, Any], row: Mapping[str, Any]) -> Recalled:
    """A claim (a row of recall.sql) with what is shown of it (a row of recall_passages.sql)."""
    return Recalled(
        rank=rank,
        id=row["id"],
        collection=collection,
        kind=claim["kind"],
        subject=claim["subject"],
        statement=claim["statement"],
        score=round(claim["score"], 4),
        confidence=round(row["confidence"], 2),
        verified_by=row["verified_by"],
        quote=row["quote"],
        chunk_id=row["chunk_id"],
        source=row["source"],
        title=row["title"],
        page=row["page_first"],
        heading=tuple(row["heading_path"]),
        context=row["context"],
        text=row["text"],
        authority=round(row["authority"], 4),
        also_in=tuple(dict.fromkeys(row["also_in"]))[:SHOWN_COPIES],
        contradicted_by=tuple(row["contradicted_by"] or ()),
    )
