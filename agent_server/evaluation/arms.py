"""What can be measured side by side: named arms, each one way to search, and what its name promises.

An arm is a set of search options, a reference ranker that the product does not have, or a collection made differently
(`variant`). Reports look a row's label up here and refuse a result file that says something else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from agent_server.catalog import Collection
from agent_server.errors import InvalidArgument
from agent_server.retrieval.candidates import Run, SearchOptions, resolved
from agent_server.retrieval.expand import followed

Reference = Literal["", "and", "or", "rrf-and"]


@dataclass(frozen=True, slots=True)
class Arm:
    """`options` go to `search` (those not named stay as the collection is set); `reference` and `variant` say what
    else is different, '' for nothing."""

    name: str
    label: str
    options: Mapping[str, Any] = field(default_factory=dict)
    reference: Reference = ""
    variant: str = ""


#: Rows are compared with this one: the product without edges, which collections made differently lack.
PLAIN = "no-edges"
#: Measured only where a reranker is set.
RERANKED = "reranked"
_WITHOUT: Mapping[str, Any] = {"expand": (), "rerank": False}
#: Options that files from before them do not name: these runs were made without.
_LATER: Mapping[str, Any] = {"rerank": False}


def _plain(name: str, label: str, variant: str = "", **options: Any) -> Arm:
    return Arm(name, label, {**_WITHOUT, **options}, variant=variant)


_ALL = (
    Arm("hybrid", "hybrid, as the collection is set"),
    Arm("cites", "hybrid, of the edges citations alone", {"expand": ("cites",)}),
    Arm("defines", "hybrid, of the edges definitions alone", {"expand": ("defines",)}),
    _plain(PLAIN, "hybrid without edges, as all rows below"),
    Arm(RERANKED, "hybrid, reranked", {**_WITHOUT, "rerank": True}),
    _plain("dense", "dense alone", fusion="dense"),
    _plain("bm25", "BM25 alone", fusion="lexical", lexical_ranker="bm25"),
    Arm("ts-and", "`ts_rank_cd`, all words (AND)", reference="and"),
    Arm("ts-or", "`ts_rank_cd`, any word (OR)", reference="or"),
    Arm("rrf-ts-and", "RRF of dense and `ts_rank_cd` AND, k = 60", reference="rrf-and"),
    _plain("rrf-10", "RRF k = 10", fusion="rrf", lexical_ranker="bm25", rrf_k=10.0),
    _plain("rrf", "RRF k = 60", fusion="rrf", lexical_ranker="bm25", rrf_k=60.0),
    _plain("score", "scores, .5 dense + .5 BM25", fusion="score", lexical_ranker="bm25", fusion_weight=0.5),
    _plain("no-context", "without the context line", "no-context"),
    _plain("no-authority", "without authority", authority_weight=0.0),
    _plain("no-folding", "without folding of copies", "no-folding", fold_near_copies=False),
    _plain("no-stemming", "without stemming (`simple`)", "no-stemming"),
    _plain("weak", "with a weak embedder (48 dimensions)", "weak"),
    _plain("weak-dense", "the weak embedder alone", "weak", fusion="dense"),
    _plain("size-400", "chunks of 400 characters", "size-400"),
    _plain("size-800", "chunks of 800 characters", "size-800"),
    _plain("size-1600", "chunks of 1,600 characters", "size-1600"),
)
ARMS: Mapping[str, Arm] = {arm.name: arm for arm in _ALL}
#: Arms that need no other collection than the one at hand.
IN_PLACE = tuple(arm.name for arm in _ALL if not arm.variant)


def chosen(names: Sequence[str]) -> tuple[Arm, ...]:
    """The arms called `names`, each once. Raises InvalidArgument for an unknown one, and for none at all."""
    wanted = list(dict.fromkeys(name.strip() for name in names if name.strip()))
    if not wanted:
        raise InvalidArgument("arms", "names no arm: nothing would be measured", hint=f"Known: {', '.join(ARMS)}.")
    if unknown := [name for name in wanted if name not in ARMS]:
        raise InvalidArgument("arms", f"no arm is called {unknown[0]!r}", hint=f"Known: {', '.join(ARMS)}.")
    return tuple(ARMS[name] for name in wanted)


def search_options(arm: Arm, base: SearchOptions) -> SearchOptions:
    """What the arm asks of `search`."""
    return replace(base, **arm.options)


def settings(arm: Arm, options: SearchOptions, collection: Collection) -> dict[str, Any]:
    """Everything that the ranking depends on besides data and model: as the search records it in its trace."""
    if arm.reference:
        hybrid = {"rrf_k": options.rrf_k} if arm.reference == "rrf-and" else {}
        return {"reference": arm.reference, "candidates": options.candidates, "top_k": options.top_k, **hybrid}
    run = Run(collection, options)
    found = replace(resolved(run), expand=followed(run)).to_json()
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def keeps_promise(arm: Arm, recorded: Mapping[str, Any]) -> str:
    """What in the recorded settings (`settings`) contradicts the arm; '' when nothing does."""
    if arm.reference:
        promised: Mapping[str, Any] = {"reference": arm.reference}
    else:
        promised = {"reference": None, **arm.options}
    for name, value in promised.items():
        expected = list(value) if isinstance(value, tuple) else value
        found = recorded.get(name, _LATER.get(name))
        if found != expected:
            return f"{name} is {found!r}, expected {expected!r}"
    return ""
