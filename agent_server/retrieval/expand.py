"""Expansion by edges: passages that the question's words alone do not find, put where they are wanted.

A question that asks for a definition gets the defining passages first; a passage that one of the first hits cites, in a
sentence about the question, comes right after that hit; the definition of a term that question and hit use comes last.
At most MAX_ADDED passages are added, no hit is removed, and each says what led to it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg

from agent_server.db import Conn, execute, fetch_all
from agent_server.models import Degraded, Edge, Relation, Via
from agent_server.retrieval.candidates import Run
from agent_server.retrieval.intent import Intent, read_intent
from agent_server.retrieval.weigh import Candidate, Group

RELATIONS: tuple[Relation, ...] = ("cites", "defines")

MAX_ADDED = 3
#: Of a term with many definitions, so many stand in front, hits among them included.
MAX_DEFINING = 3
MAX_OF_USED = 1  #: definitions of terms that the question uses without asking for them
FOLLOWED_HITS = 5  #: hits whose edges are followed
#: Share of the question's words, by weight, that a sentence must have for its citation to be followed. Chosen on the
#: gold sets, where 0.05 to 0.2 do much the same.
SAID_SHARE = 0.1
#: Of what the first hit cites one passage is added whatever the sentence says, but behind so many hits: right behind
#: the first it pushes down more than it brings up.
UNSAID_AFTER = 3
EDGES_A_HIT = 20
EDGES_ONWARD = 5  #: of a passage that was reached itself, for the second hop
HUB = 100  #: what more edges of a relation lead to says nothing about any one of them
DEFINITIONS_A_TERM = 30
DEFINING_AUTHORITY = 0.2  #: what the authority of its source counts for a definition, against 1 for nearness
TIMEOUT_S = 0.25
#: An edge's `from` when no passage but the question itself led to a definition.
QUESTION = "question"
#: Forms that define a part of a term only, or name it in passing, or point elsewhere: they stand behind the others.
_PARTIAL = frozenset({"includes", "excludes", "alias", "abbreviation", "elsewhere"})


@dataclass(frozen=True, slots=True)
class Reached:
    """A row of expand.sql. `place` counts the hits from 1, None where the question itself led there; `nearness` to the
    question lies in [0, 1] or little above, `said` is the share of its words in the sentence that cites the passage."""

    id: int
    chunk_id: str
    edge: Edge
    place: int | None
    hop: int
    form: str
    passage_hash: bytes
    nearness: float
    said: float = 0.0


@dataclass(frozen=True, slots=True)
class Placed:
    """A passage of the merged list: a hit (`group`), or one that an edge added."""

    id: int
    via: Via
    edge: Edge | None = None
    group: Group | None = None
    candidate: Candidate | None = None  #: what the arms know of it, where they found it


def expanded(
    connection: Conn, run: Run, question: str, shown: Sequence[Group], groups: Sequence[Group]
) -> list[Placed]:
    """`shown` merged with what edges lead to. `groups` are all that the arms brought, shown or not.

    Where the question asks for a term that is defined, citations are not followed: its definition is the answer.
    A statement that takes too long is given up: the hits stand as they are, and the result says so.
    """
    relations = followed(run)
    if not (relations and shown):
        return merge(shown, ())
    values = variables(run, read_intent(question), relations, [g.head.id for g in shown])
    rows = _reached(connection, run, values)
    best = max((g.head.lexical_score or 0.0 for g in shown), default=0.0)
    total = sum(t.weight for t in run.lexical.terms if not t.is_code)
    reached = worth_adding(_rows(rows, shown, best, total), len(shown))
    placed = merge(shown, reached, {c.id: c for g in groups for c in (g.head, *g.folded)})
    if added := sum(1 for p in placed if p.group is None):
        run.counts["expanded"] = added
    return placed


def followed(run: Run) -> tuple[Relation, ...]:
    """The relations that this search follows: those asked for, else those of the collection."""
    if run.options.expand is not None:
        return tuple(r for r in RELATIONS if r in run.options.expand)
    on = {"cites": run.collection.expand_cites, "defines": run.collection.expand_defines}
    return tuple(r for r in RELATIONS if on[r])


def worth_adding(reached: Sequence[Reached], hits: int) -> list[Reached]:
    """What may take a place among so many hits: no citation beside a definition that is asked for, else those in a
    sentence about the question, and the nearest of the others that the first hit cites. Pure."""
    cites = [one for one in reached if one.edge.relation == "cites"]
    out = [one for one in reached if one.edge.relation != "cites"]
    if any(one.place is None for one in out):
        return out
    unsaid = [one for one in cites if one.said < SAID_SHARE and one.place == 1]
    out += [one for one in cites if one.said >= SAID_SHARE]
    out += [replace(one, place=min(UNSAID_AFTER, hits)) for one in sorted(unsaid, key=_order)[:1]]
    return out


def merge(
    shown: Sequence[Group], reached: Iterable[Reached], candidates: Mapping[int, Candidate] | None = None
) -> list[Placed]:
    """The hits in their order, definitions of what is asked for before them, others after the hit that led there.

    Pure. A hit that defines what is asked for moves to the front and keeps its ranks; it is not counted as added.
    """
    known = candidates or {}
    holders: dict[int | bytes, Group] = {g.head.id: g for g in shown} | {g.head.passage_hash: g for g in shown}
    front: dict[int, Placed] = {}
    after: dict[int, list[Placed]] = {}
    last: list[Placed] = []
    taken: set[int] = set()
    left = MAX_ADDED
    for one in sorted(reached, key=_order):
        group = holders.get(one.id) or holders.get(one.passage_hash)
        if group is not None:
            if one.place is None and len(front) < MAX_DEFINING:
                front.setdefault(group.head.id, Placed(group.head.id, "search", one.edge, group))
            continue
        if left == 0 or one.id in taken:
            continue
        added = Placed(one.id, one.edge.relation, one.edge, candidate=known.get(one.id))
        if one.place is None:
            if len(front) == MAX_DEFINING:
                continue
            front[one.id] = added
        elif one.edge.relation == "cites":
            after.setdefault(one.place, []).append(added)
        elif len(last) < MAX_OF_USED:
            last.append(added)
        else:
            continue
        taken.add(one.id)
        left -= 1
    out = list(front.values())
    for place, group in enumerate(shown, 1):
        if group.head.id not in front:
            out.append(Placed(group.head.id, "search", group=group))
        out += after.get(place, [])
    return out + last


def _order(one: Reached) -> tuple[Any, ...]:
    """Definitions of what is asked for, whole ones first; then what is near the question, from the first hits on."""
    partial = one.place is None and one.form in _PARTIAL
    return one.place is not None, partial, one.hop, -one.nearness, one.place or 0, one.chunk_id


def variables(run: Run, intent: Intent, relations: Sequence[Relation], hits: Sequence[int]) -> dict[str, Any]:
    """What expand.sql is run with, of each part of it only where that is wanted; `hits` are the ids of the passages
    that are shown, best first."""
    values: dict[str, Any] = {
        "hits": list(hits),
        "followed": FOLLOWED_HITS,
        "per_hit": EDGES_A_HIT,
        "hub": HUB,
        "vector": run.vector,
        "bm25": run.lexical.bm25,
        **run.filters,
    }
    if "cites" in relations or intent.definitional:
        values |= {
            "lexemes": [t.lexeme for t in run.lexical.terms],
            "weights": [t.weight for t in run.lexical.terms],
        }
    if "cites" in relations:
        values["cites"] = "on"
        if run.options.hops > 1:
            values["onward"] = EDGES_ONWARD
    if "defines" in relations and intent.definitional:
        values |= {
            "asked": list(intent.asked),
            "per_term": DEFINITIONS_A_TERM,
            "config": run.collection.text_search_config,
        }
    elif "defines" in relations and intent.used:
        values["used"] = list(intent.used)
    return values


def _reached(connection: Conn, run: Run, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of expand.sql; none when it takes longer than TIMEOUT_S, which is noted."""
    connection.execute("SAVEPOINT edges")
    try:
        execute(connection, "expand_session", {"timeout_ms": str(int(TIMEOUT_S * 1000))})
        return fetch_all(connection, "expand", values)
    except psycopg.errors.QueryCanceled:
        run.degraded.append(Degraded("expansion", f"following edges took over {TIMEOUT_S:g} s"))
        return []
    finally:
        connection.execute("ROLLBACK TO SAVEPOINT edges")  # gives the search its own settings back


def _rows(
    rows: Sequence[Mapping[str, Any]], shown: Sequence[Group], best_lexical: float, total_weight: float
) -> list[Reached]:
    """Rows of expand.sql with the names of what led there. A passage that was passed over leads nowhere."""
    names = {g.head.id: g.head.chunk_id for g in shown} | {row["id"]: row["chunk_id"] for row in rows}
    return [
        Reached(
            id=row["id"],
            chunk_id=row["chunk_id"],
            edge=Edge(QUESTION if row["from_id"] is None else names[row["from_id"]], row["relation"], row["anchor"]),
            place=row["place"],
            hop=row["hop"],
            form=row["form"],
            passage_hash=bytes(row["passage_hash"]),
            nearness=_nearness(row, best_lexical, total_weight),
            said=_share(row, total_weight) if row["relation"] == "cites" else 0.0,
        )
        for row in rows
        if row["from_id"] is None or row["from_id"] in names
    ]


def _nearness(row: Mapping[str, Any], best_lexical: float, total_weight: float) -> float:
    """Cosine and words by halves, and of a cited passage the words of the sentence that cites it; of a definition its
    own words, as its passage holds others, and its source's authority, because documents that explain a term are many.
    """
    meaning = row["dense_score"] or 0.0
    if row["hop"] == 0:
        return float((meaning + _share(row, total_weight)) / 2 + DEFINING_AUTHORITY * row["authority"])
    words = (row["lexical_score"] or 0.0) / best_lexical if best_lexical > 0 else 0.0
    said = _share(row, total_weight) if row["relation"] == "cites" else 0.0
    return float((meaning + words) / 2 + said)


def _share(row: Mapping[str, Any], total_weight: float) -> float:
    """The share of the question's words that the definition or the citing sentence has."""
    return row["own_weight"] / total_weight if total_weight > 0 else 0.0
