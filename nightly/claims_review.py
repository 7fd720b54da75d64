"""Review of claims: look through them, decide on them, take them out and in as JSON lines."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent_server.catalog import Collection
from agent_server.db import Conn
from agent_server.errors import CallerError, InvalidArgument
from agent_server.globs import expression
from agent_server.terms import fold_term
from nightly.claims_fields import MAX_STATEMENT_CHARS, Name, Sentence, Verbatim
from nightly.claims_rules.model import Found, Kind
from nightly.claims_store import claim_row, flag_conflicts, merge_counts, put, settle
from nightly.statements import execute, fetch_all

MOST_AT_ONCE = 1_000_000

Status = Literal["proposed", "verified", "rejected", "stale"]


class UnknownClaim(CallerError):
    code = "unknown_claim"
    http_status = 404


@dataclass(frozen=True, slots=True)
class Filter:
    """Which claims; each condition given must hold."""

    ids: tuple[int, ...] = ()
    status: Status | None = None
    kind: str | None = None
    subject: str = ""
    source: str = ""  #: a path pattern
    extractor: str = ""
    text: str = ""
    max_confidence: float | None = None

    def __bool__(self) -> bool:
        return self != Filter()

    def values(self) -> dict[str, Any]:
        """The variables of claims_select.sql that are in use."""
        out: dict[str, Any] = {}
        if self.ids:
            out["ids"] = list(self.ids)
        if self.subject:
            out["subject"] = fold_term(self.subject)
        if self.source:
            out["sources"] = expression(self.source)
        if self.max_confidence is not None:
            out["max_confidence"] = self.max_confidence
        for name in ("status", "kind", "extractor", "text"):
            if value := getattr(self, name):
                out[name] = value
        return out


def select(connection: Conn, wanted: Filter, limit: int = MOST_AT_ONCE) -> list[dict[str, Any]]:
    """The claims that a filter leaves, oldest first."""
    return fetch_all(connection, "claims_select", {**wanted.values(), "limit": limit})


def show(connection: Conn, claim: int) -> dict[str, Any]:
    """One claim with all its evidence and what happened to it. Raises UnknownClaim."""
    rows = select(connection, Filter(ids=(claim,)))
    if not rows:
        raise UnknownClaim(f"there is no claim {claim}", hint="`kb claims list` shows those there are.")
    evidence = fetch_all(connection, "claims_evidence", {"id": claim})
    return {**rows[0], "evidence": evidence, "events": fetch_all(connection, "claims_events", {"id": claim})}


@dataclass(slots=True)
class Decided:
    """What became of a decision: the claims it holds for now, and those it could not be carried out for."""

    status: str
    done: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)  #: stale, or their quote does not stand in a live passage


def decide(
    connection: Conn,
    collection: Collection,
    wanted: Filter,
    status: Literal["verified", "rejected"],
    who: str,
    why: str,
) -> Decided:
    """Verify or reject the claims that a filter leaves. Raises UnknownClaim for a number that is not there, and
    InvalidArgument without any filter: a decision on everything is no review."""
    if not wanted:
        raise InvalidArgument("filter", "is empty", hint="Name claims by number, or choose some by a filter.")
    _check_person(who)
    execute(connection, "claims_lock", {"collection": collection.name})
    rows = select(connection, wanted)
    there = {row["id"] for row in rows}
    if missing := [n for n in wanted.ids if n not in there]:
        raise UnknownClaim(
            f"there is no claim {missing[0]} among those asked for", hint="`kb claims list` shows those there are."
        )
    ids = [row["id"] for row in rows]
    values = {"ids": ids, "status": status, "who": who, "why": why or f"{status} by {who}"}
    done = [row["id"] for row in fetch_all(connection, "claims_decide", values)]
    already = {row["id"] for row in rows if row["status"] == status}
    if done:
        flag_conflicts(connection, done)
        merge_counts(connection, collection)
    return Decided(status, done, sorted(there - set(done) - already))


def _check_person(who: str) -> None:
    """Raises InvalidArgument for no name, and for one under which rules decide."""
    if not who.strip() or who.strip().startswith("rule:"):
        raise InvalidArgument("by", f"{who!r} is nobody's name")


# -- JSON lines -------------------------------------------------------------------------------------------------


class Line(BaseModel):
    """A claim as it is written out and read in; what else a line holds is passed over."""

    model_config = ConfigDict(extra="ignore")

    statement: Sentence
    subject: Name
    quote: Verbatim
    source: Verbatim
    chunk_id: str = Field(default="", max_length=MAX_STATEMENT_CHARS, pattern=r"\A[^\x00]*\z")
    kind: Kind = "statement"
    status: Status = "proposed"
    names: list[Name] = Field(default_factory=list, max_length=20)
    confidence: float = Field(default=0.5, ge=0, le=1)


@dataclass(slots=True)
class Imported:
    """What came in."""

    lines: int = 0
    stored: int = 0
    verified: int = 0
    rejected: int = 0
    refused: list[str] = field(default_factory=list)  #: why, with the number of the line


def export_lines(connection: Conn, wanted: Filter) -> Iterable[str]:
    """The claims that a filter leaves as JSON, one a line, as `import_lines` takes them."""
    for row in select(connection, wanted):
        line = {
            k: row[k]
            for k in (
                *("id", "status", "kind", "subject", "statement", "quote", "source", "chunk_id"),
                *("extractor", "confidence", "verified_by"),
            )
        }
        line["names"] = [key for key in row["subject_keys"] if not key.startswith("#")]
        yield json.dumps(line, ensure_ascii=False)


def import_lines(connection: Conn, collection: Collection, lines: Iterable[str], who: str, why: str) -> Imported:
    """Store claims from JSON lines. Whatever a line says of itself, its quote must stand in a live passage of its
    source; `verified` and `rejected` are then decisions of `who`, who hands the file in. Raises InvalidArgument."""
    _check_person(who)
    execute(connection, "claims_lock", {"collection": collection.name})
    report = Imported()
    decided: dict[str, list[int]] = {"verified": [], "rejected": []}
    touched: set[int] = set()
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        report.lines += 1
        try:
            line = Line.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "line"
            report.refused.append(f"line {number}: {where}: {first['msg']}")
            continue
        ids = _store(connection, collection, line, who)
        if not ids:
            report.refused.append(f"line {number}: its quote does not stand in a passage of {line.source}")
            continue
        touched |= ids
        report.stored += 1
        if line.status in decided:
            decided[line.status] += sorted(ids)
    settle(connection, touched, who, why)
    for status, wanted in decided.items():
        stand = select(connection, Filter(ids=tuple(wanted))) if wanted else []
        due = [row["id"] for row in stand if row["status"] != status]
        if due:
            values = {"ids": due, "status": status, "who": who, "why": why}
            done = [row["id"] for row in fetch_all(connection, "claims_decide", values)]
            setattr(report, status, len(done))
            flag_conflicts(connection, done)
    merge_counts(connection, collection)
    return report


def _store(connection: Conn, collection: Collection, line: Line, who: str) -> set[int]:
    values = {"source": line.source, "chunk_id": line.chunk_id, "quote": line.quote}
    place = fetch_all(connection, "claims_place", values)
    if not place:
        return set()
    start = place[0]["quote_start"]
    claim = Found(line.kind, line.subject, line.statement, start, start + len(line.quote), "import", tuple(line.names))
    row = claim_row(place[0]["id"], place[0]["text"], claim, confidence=line.confidence)
    return set(put(connection, collection, [row], "import", who, "imported").values())
