"""At which step of a search a passage was ranked or dropped, in words. Pure: explain.py gathers the facts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agent_server.models import Edge

Outcome = Literal[
    "shown",  #: among the hits
    "added",  #: brought by an edge on top of the hits
    "folded",  #: a near copy of another candidate, which stands for it
    "displaced",  #: within top_k, but an arm's first hit took its place
    "cut",  #: behind the first top_k
    "not_kept",  #: a candidate too far behind to be looked at for near copies
    "retired",
    "filtered",
    "copy",  #: its text stands in a passage that is searched in its place
    "passed_over",  #: holds a paragraph that a hit shows already, and the search looked past all such passages
    "not_found",  #: neither arm brought it
]


@dataclass(frozen=True, slots=True)
class Arm:
    """A passage in one arm's list. `rank` is its place in the list that was fused, `exact_rank` its place among all
    that the arm could bring, `score` a cosine or BM25; `why` says why it is not in the list, '' where it is."""

    rank: int | None
    exact_rank: int | None
    score: float | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What happened to one passage, as far as each step came to it."""

    dense: Arm
    lexical: Arm
    top_k: int
    rank: int | None = None  #: in the result, from 1
    edge: Edge | None = None  #: that added it, or moved it to the front
    is_hit: bool = True  #: False where an edge alone brought it
    fused_place: int | None = None  #: among all candidates by score
    folded_place: int | None = None  #: among what stood after folding
    folded_into: str | None = None
    takes_the_place_of: str | None = None  #: the candidate whose paragraph it holds with higher authority
    holds_for: Sequence[str] = ()  #: near copies that it stands for
    anchor_of: Sequence[str] = ()  #: arms whose first hit it, or a near copy that it stands for, is
    retired: bool = False
    unfit: Sequence[str] = ()  #: conditions of the filter that leave it out
    stands: str | None = None  #: the passage searched for its text
    chunk_id: str = ""
    passed_over_for: str | None = None
    keep: int = 0


def verdict(facts: Facts) -> tuple[Outcome, str]:
    """The step that decided, and why in one sentence."""
    if facts.rank is not None:
        return _in_the_result(facts)
    if facts.folded_into is not None:
        return "folded", f"a near copy of {facts.folded_into}, which stands for it"
    if facts.folded_place is not None:
        if facts.folded_place <= facts.top_k:
            return "displaced", (
                f"place {facts.folded_place} after folding, given up for an arm's first hit: {facts.top_k} are shown"
            )
        return "cut", f"place {facts.folded_place} after folding, and {facts.top_k} are shown"
    if facts.fused_place is not None:
        return "not_kept", f"place {facts.fused_place} after fusion, and the first {facts.keep} are looked at further"
    if facts.retired:
        return "retired", "retired: kept and listed, never searched"
    if facts.unfit:
        return "filtered", f"left out by the filter: {', '.join(facts.unfit)}"
    if facts.stands is not None and facts.stands != facts.chunk_id:
        return "copy", f"its text is searched as {facts.stands}, which stands for all copies"
    if facts.passed_over_for is not None:
        return "passed_over", (
            f"holds a paragraph that {facts.passed_over_for} shows: the search looked past all passages with it"
        )
    return "not_found", f"dense: {facts.dense.why}; words: {facts.lexical.why}"


def _in_the_result(facts: Facts) -> tuple[Outcome, str]:
    if not facts.is_hit:
        led = f"{facts.edge.relation}, from {facts.edge.from_chunk}: {facts.edge.anchor}" if facts.edge else "an edge"
        return "added", f"added at rank {facts.rank} by an edge ({led})"
    said = [f"rank {facts.rank}"]
    if facts.edge is not None:
        said.append("put in front, as it defines what is asked for")
    elif facts.folded_place is not None and facts.folded_place > facts.top_k:
        first = " and ".join(facts.anchor_of)
        said.append(f"place {facts.folded_place} after folding, kept as the first hit by {first}")
    if facts.takes_the_place_of is not None:
        said.append(f"takes the place of {facts.takes_the_place_of}, a near copy of lower authority")
    if facts.holds_for:
        said.append(f"stands for {len(facts.holds_for)} near copies among the candidates")
    return "shown", "; ".join(said)


def why_not_brought(exact_rank: int | None, brought: int, lacks: str) -> str:
    """Why a passage is not in the list of an arm that ran: `lacks` says what it would need to be ranked at all."""
    if exact_rank is None:
        return lacks
    if exact_rank > brought:
        return f"{_nth(exact_rank)} of all, and the first {brought} are candidates"
    return f"{_nth(exact_rank)} of all, but the index did not come to it"


def _nth(n: int) -> str:
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"
