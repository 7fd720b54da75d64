"""Near copies: what weigh.py needs from Postgres to fold them, and the copy that stands for a folded group."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agent_server.db import Conn, fetch_all
from agent_server.lexemes import lexical_text
from agent_server.retrieval import weigh
from agent_server.retrieval.candidates import Run, variables
from agent_server.retrieval.weigh import Candidate, Found, Group

#: Copies listed under `also_in`.
MAX_COPIES = 1000


def folded(connection: Conn, run: Run, ranked: Sequence[Candidate]) -> list[Group]:
    """The candidates as groups, near copies folded into the best of them, in the candidates' order."""
    shared = weigh.shared_paragraphs(ranked) if run.options.fold_near_copies else {}
    if not shared:
        return [Group(c) for c in ranked]
    weights = {t.lexeme: t.weight for t in run.lexical.terms}
    found = _found(connection, run, [c for c in ranked if c.id in shared], shared, list(weights))
    groups = weigh.fold(ranked, found, weights)
    for group in groups:
        _promote(connection, run, group, found, weights)
    return groups


def _found(
    connection: Conn,
    run: Run,
    candidates: Sequence[Candidate],
    shared: Mapping[int, frozenset[int]],
    lexemes: Sequence[str],
) -> dict[int, Found]:
    """Where the question's lexemes stand in each candidate: in shared paragraphs, or in the rest."""
    if not lexemes:
        return {}
    texts = [lexical_text(part) for c in candidates for part in weigh.split_text(c, shared[c.id])]
    values = {
        "config": run.collection.text_search_config,
        "words": [t.words for t in texts],
        "extras": [t.extras_tsvector for t in texts],
        "lexemes": list(lexemes),
    }
    by_position = {r["position"]: frozenset(r["found"]) for r in fetch_all(connection, "novelty", values)}
    empty: frozenset[str] = frozenset()
    return {
        c.id: Found(by_position.get(2 * n + 1, empty), by_position.get(2 * n + 2, empty))
        for n, c in enumerate(candidates)
    }


def _promote(
    connection: Conn, run: Run, group: Group, found: Mapping[int, Found], weights: Mapping[str, float]
) -> None:
    """Let the copy of highest authority stand for a folded group, where the paragraph is all that matched."""
    head = group.head
    if not group.hashes or head.id not in found or weigh.novelty(found[head.id], weights) > weigh.NOVELTY:
        return
    holders = near_copies(connection, group)
    if run.filters:  # copies that the filter leaves out cannot stand for the group
        fit = {c.id for c in group.folded}
        holders = [h for h in holders if h["id"] in fit]
    best = next((h for h in holders if h["canonical"]), None)
    if best is None or best["authority"] <= head.authority:
        return
    authority_weight = float(variables(run)["authority_weight"])
    folded = next((c for c in group.folded if c.id == best["id"]), None)
    group.folded.append(head)
    if folded is not None:
        group.folded.remove(folded)
        group.head = replace(folded, score=max(folded.score, head.score))
        return
    # Neither arm brought it among its candidates: it has no rank of its own, and takes the group's place.
    group.head = replace(
        head,
        id=best["id"],
        chunk_id=best["chunk_id"],
        score=head.score + authority_weight * (best["authority"] - head.authority),
        dense_rank=None,
        lexical_rank=None,
        dense_score=None,
        lexical_score=None,
        authority=best["authority"],
        passage_hash=b"",
    )


def near_copies(connection: Conn, group: Group) -> list[dict[str, Any]]:
    """All passages that hold a folded paragraph whole (not just its last sentence), best authority first."""
    values = {"hashes": sorted(group.hashes), "limit": MAX_COPIES}
    rows = fetch_all(connection, "near_copies", values)
    longest: dict[int, int] = {}
    for row in rows:
        longest[row["hash"]] = max(longest.get(row["hash"], 0), row["span"])
    whole = [r for r in rows if r["span"] >= weigh.COVERAGE * longest[r["hash"]]]
    return sorted(whole, key=lambda r: -r["authority"])
