"""Claims of a collection, kept as true as its passages: the database's side of `claims_rules`.

A source is read again when its passages, its authority or the rules are others than those that were read; one
transaction a source. What a rule vouches for is verified by it, the rest waits for a person. Claims whose words went
away turned stale in the transaction that took them; here they follow their words to where these stand now.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_server import db
from agent_server.catalog import Collection
from agent_server.db import Conn, Database
from agent_server.ingest.store import in_transaction
from nightly.claims_rules.definitions import terms_in
from nightly.claims_rules.find import VERSION, find_claims
from nightly.claims_rules.follow import found_again
from nightly.claims_rules.model import Found, Surroundings
from nightly.claims_store import claim_row, merge_counts, put, settle
from nightly.statements import execute, fetch_all

PASSAGES_AT_ONCE = 500
CLAIMS_AT_ONCE = 1000
WHO = "nightly claims"
RULES = "rules"


@dataclass(slots=True)
class ClaimsReport:
    """What a refresh did to a collection's claims."""

    collection: str
    sources: int = 0  #: read, because something had changed
    found: int = 0  #: claims that were read from them
    followed: int = 0  #: pieces of evidence found again in another version
    conflicts: int = 0
    seconds: float = 0.0
    by_status: dict[str, int] = field(default_factory=dict)  #: all claims of the collection afterwards


def after_ingest(database: Database, collection: Collection, changed: Sequence[str]) -> ClaimsReport:  # noqa: ARG001
    """What `kb ingest` and `kb remove` call: what lost its words is stale, and what is not read yet shows itself."""
    return refresh(database, collection)


def refresh(
    database: Database,
    collection: Collection,
    *,
    everything: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> ClaimsReport:
    """Read the sources whose passages, authority or rules have changed, or all of them."""
    started = clock()
    report = ClaimsReport(collection.name)
    with database.owner(collection.schema_name) as connection:
        wanted = {"rules": str(VERSION), "everything": "on" if everything else ""}
        stale = [row["source"] for row in fetch_all(connection, "claims_stale", wanted)]
    for source in stale:
        done: dict[str, int] = {}
        in_transaction(database, collection, lambda c, s=source, d=done: _read_source(c, collection, s, d))  # type: ignore[misc]
        report.sources += 1
        report.found += done["found"]
        report.followed += done["followed"]
        report.conflicts += done["conflicts"]
    with database.owner(collection.schema_name) as connection:
        merge_counts(connection, collection)
    report.by_status = count(database, collection)
    report.seconds = clock() - started
    return report


def count(database: Database, collection: Collection) -> dict[str, int]:
    """How many claims there are of each status."""
    with database.owner(collection.schema_name) as connection:
        return {row["status"]: row["claims"] for row in fetch_all(connection, "claims_count")}


# -- one source -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Read:
    """A claim found in a passage."""

    chunk: int
    text: str
    claim: Found


def _read_source(connection: Conn, collection: Collection, source: str, done: dict[str, int]) -> bool:
    """Make the claims of one source those that its passages make now. An ingestion of it waits, or has come before."""
    done |= {"found": 0, "followed": 0, "conflicts": 0}
    execute(connection, "claims_lock", {"collection": collection.name})
    db.execute(connection, "file_lock", {"collection": collection.name, "source": source})
    row = next(iter(fetch_all(connection, "claims_version", {"rules": str(VERSION), "source": source})), None)
    if row is None:
        return False
    touched: set[int] = set()
    prints: list[dict[str, Any]] = []
    rules: dict[int, str] = {}
    lost = fetch_all(connection, "claims_lost", {"source": source})
    followed: list[dict[str, int]] = []
    read: list[_Read] = []
    terms = frozenset(_terms(connection, source))
    for passage, before in _passages(connection, source):
        read += [_Read(passage["id"], passage["text"], one) for one in _find(passage, before, terms)]
        for one in lost:
            if (at := found_again(passage["text"], one["quote"])) is not None:
                followed.append({"id": one["id"], "chunk": passage["id"], "quote_start": at})
        if len(read) >= CLAIMS_AT_ONCE:
            touched |= _put(connection, collection, read, prints, rules)
            read = []
    touched |= _put(connection, collection, read, prints, rules)
    gone = [r["id"] for r in fetch_all(connection, "claims_unread", {"source": source, "rows": json.dumps(prints)})]
    execute(connection, "claims_forget", {"ids": gone})
    touched |= set(gone)
    first = list({f["id"]: f for f in reversed(followed)}.values())
    found = fetch_all(connection, "claims_follow", {"rows": json.dumps(first)}) if first else []
    touched |= {r["id"] for r in found}
    done["conflicts"] = settle(connection, touched, WHO, f"{source} was read", rules)
    execute(connection, "claims_done", {"source": source, "version": row["version"]})
    done["found"] = len(prints)
    done["followed"] = len(found)
    return True


def _passages(connection: Conn, source: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The passages of a source in order, each with the text of the one before, a part of them in memory at a time.
    `lead` is how many characters at the beginning stand in the one before too."""
    after, before, end = -1, "", 0
    while rows := fetch_all(
        connection, "claims_passages", {"source": source, "after": after, "limit": PASSAGES_AT_ONCE}
    ):
        for row in rows:
            row["lead"] += max(end - row["char_start"], 0)
            yield row, before
            before, end = row["text"], row["char_end"]
        after = rows[-1]["chunk_index"]


def _terms(connection: Conn, source: str) -> Iterator[str]:
    for passage, _ in _passages(connection, source):
        yield from terms_in(passage["text"], tuple(passage["heading_path"]))


def _find(passage: dict[str, Any], before: str, terms: frozenset[str]) -> list[Found]:
    """The claims of a passage but those in words that stand in the passage before too."""
    around = Surroundings(passage["title"], tuple(passage["heading_path"]), passage["label"], before, terms)
    return [one for one in find_claims(passage["text"], around) if one.quote_end > passage["lead"]]


def _put(
    connection: Conn, collection: Collection, read: Sequence[_Read], prints: list[dict[str, Any]], rules: dict[int, str]
) -> set[int]:
    """Store what was read; the ids. `prints` and `rules` grow by what they need to know later."""
    if not read:
        return set()
    rows = [claim_row(r.chunk, r.text, r.claim, vouched=not r.claim.doubts) for r in read]
    ids = put(connection, collection, rows, RULES, WHO, "read by a rule")
    prints += [{k: row[k] for k in ("print", "chunk", "quote_start")} for row in rows]
    rules |= {ids[row["print"]]: r.claim.rule for row, r in zip(rows, read, strict=True) if row["print"] in ids}
    return set(ids.values())
