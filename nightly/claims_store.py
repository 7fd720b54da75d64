"""Rows of claims: put in with their evidence, settled, weighed against each other. Every change leaves an event."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent_server import db
from agent_server.catalog import Collection
from agent_server.db import Conn
from agent_server.lexemes import label_lexemes, lexical_text
from nightly.claims_rules.conflicts import Rival, conflicts
from nightly.claims_rules.model import Found
from nightly.claims_rules.wording import fingerprint, subject_keys
from nightly.statements import execute, fetch_all

#: Length in words that BM25 takes as usual: claims are of one length, and a fixed one never has to be restated.
USUAL_LENGTH = 20.0


def claim_row(
    chunk: int, text: str, claim: Found, *, vouched: bool = False, confidence: float | None = None
) -> dict[str, Any]:
    """A claim as `put` takes it: `text` is the passage's, which holds the quote; `vouched`: a rule may verify it."""
    words = lexical_text(claim.statement)
    words = replace(words, extras=(*words.extras, *label_lexemes(claim.subject)))
    return {
        "kind": claim.kind,
        "subject": claim.subject,
        "subject_keys": subject_keys(claim.subject, *claim.names),
        "statement": claim.statement,
        "print": fingerprint(claim.statement).hex(),
        "chunk": chunk,
        "quote": text[claim.quote_start : claim.quote_end],
        "quote_start": claim.quote_start,
        "quote_end": claim.quote_end,
        "confidence": claim.confidence if confidence is None else confidence,
        "vouched": vouched,
        "words": words.words,
        "extras": words.extras_tsvector,
    }


def put(
    connection: Conn, collection: Collection, rows: Sequence[Mapping[str, Any]], extractor: str, who: str, why: str
) -> dict[str, int]:
    """Store claims, rows of `claim_row`; their ids by fingerprint (hex). One whose quote does not stand in its passage
    is not among them. `settle` them afterwards."""
    values = {
        "config": collection.text_search_config,
        "avg_length": USUAL_LENGTH,
        "extractor": extractor,
        "who": who,
        "why": why,
        "rows": json.dumps(list(rows)),
    }
    return {bytes(r["fingerprint"]).hex(): r["id"] for r in fetch_all(connection, "claims_put", values)}


def settle(connection: Conn, ids: Iterable[int], who: str, why: str, rules: Mapping[int, str] | None = None) -> int:
    """Give claims their leading evidence and the status that follows from it; how many contradictions they have now.

    `rules` names the rule that vouches for a claim.
    """
    touched = sorted(set(ids))
    if not touched:
        return 0
    fetch_all(connection, "claims_settle", {"ids": touched, "who": who, "why": why})
    names = json.dumps({str(n): rule for n, rule in (rules or {}).items()})
    execute(connection, "claims_by_rule", {"ids": touched, "who": who, "rules": names})
    return flag_conflicts(connection, touched)


def flag_conflicts(connection: Conn, ids: Sequence[int]) -> int:
    """Find anew what contradicts some claims; how many pairs."""
    execute(connection, "claims_conflicts_clear", {"ids": list(ids)})
    rivals = [
        Rival(r["id"], tuple(r["subject_keys"]), r["statement"], r["source"], r["authority"], r["touched"])
        for r in fetch_all(connection, "claims_rivals", {"ids": list(ids)})
    ]
    pairs = [{"claim": a, "other": b, "reason": reason} for a, b, reason in conflicts(rivals)]
    if pairs:
        execute(connection, "claims_conflicts_put", {"rows": json.dumps(pairs)})
    return len(pairs)


def merge_counts(connection: Conn, collection: Collection) -> None:
    """Bring the document frequencies that recall weighs words by up to date."""
    db.execute(connection, "lexemes_lock", {"collection": collection.name})
    if execute(connection, "claims_merge"):
        execute(connection, "claims_prune")
