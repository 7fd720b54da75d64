"""Why a passage is where it is, or where it dropped out: one search, run as always, then looked at from all sides.

The search itself is search.py's: the same functions in one transaction. What was fused is read from the same hybrid
statement, run again with its own variables and nothing cut off.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from agent_server.catalog import Collection, get_collection
from agent_server.db import Conn, Database, fetch_all, fetch_one, translated
from agent_server.embedding import Embedder
from agent_server.errors import UnknownPassage
from agent_server.retrieval import filters, lexical
from agent_server.retrieval.candidates import Run, SearchOptions, VectorsReplaced, keep, session, variables
from agent_server.retrieval.empty import why_empty
from agent_server.retrieval.explanation import Explained, Explanation, Fused, TermPart
from agent_server.retrieval.lexical import Term
from agent_server.retrieval.search import Found, begun, checked, found, request_of
from agent_server.retrieval.verdict import Arm, Facts, verdict, why_not_brought
from agent_server.retrieval.weigh import Group

#: Passages explained behind those shown, when none is named.
NEXT_FEW = 5
_EVERYTHING = 2**31 - 1


def explain(
    database: Database,
    collection_name: str,
    query: str,
    embedder: Embedder | None,
    options: SearchOptions = SearchOptions(),  # noqa: B008  frozen
    chunk_ids: Sequence[str] = (),
    *,
    next_few: int = NEXT_FEW,
    must_exist: bool = True,
) -> Explanation:
    """Search, and explain the passages `chunk_ids`; without any those shown and the `next_few` behind them.

    Nothing is recorded. Raises what `search` raises, and UnknownPassage unless `must_exist` is False.
    """
    asked = (database, collection_name, checked(query, options), embedder, options, chunk_ids, next_few, must_exist)
    with suppress(VectorsReplaced):
        return _explain(*asked)
    return _explain(*asked)  # with the contract of now


def _explain(
    database: Database,
    collection_name: str,
    query: str,
    embedder: Embedder | None,
    options: SearchOptions,
    chunk_ids: Sequence[str],
    next_few: int,
    must_exist: bool,
) -> Explanation:
    with translated(), database.owner() as connection:
        collection = get_collection(connection, collection_name)
    run = begun(collection, query, embedder, options)
    with translated(), database.reader(collection.reader_role, collection.schema_name) as connection:
        return _explained(connection, run, query, chunk_ids, next_few, must_exist)


def _explained(
    connection: Conn, run: Run, query: str, chunk_ids: Sequence[str], next_few: int, must_exist: bool
) -> Explanation:
    result = found(connection, run, query)
    diagnostic = None if result.passages else why_empty(connection, run)
    fused = _fused(connection, run)
    ids = [] if chunk_ids else _shown_and_next(result, next_few)
    values = {"chunk_ids": list(chunk_ids), "ids": ids, "hashes": list(run.excluded)}
    rows = fetch_all(connection, "explain_passages", values)
    _check_all_there(run.collection, chunk_ids if must_exist else (), rows)
    _measure_freely(connection, run)
    parts = _parts(connection, run, [r["id"] for r in rows])
    passages = [
        _passage(run, result, fused, row, seen, parts.get(row["id"], ()))
        for row, seen in zip(rows, _seen(connection, run, rows), strict=True)
    ]
    return Explanation(
        query=query,
        collection=run.collection.name,
        terms=tuple(_part(t) for t in run.lexical.terms),
        settings=_settings(run),
        candidates=dict(run.counts),
        degraded=tuple(run.degraded),
        diagnostic=diagnostic,
        passages=tuple(sorted(passages, key=_order)),
        shown=result.passages,
        request=request_of(run),
        variables=variables(run),
    )


# -- gathering --------------------------------------------------------------------------------------------------


def _fused(connection: Conn, run: Run) -> dict[int, dict[str, Any]]:
    """All candidates by id, best first, as the hybrid statement fused them in the round that brought them."""
    rows: dict[int, dict[str, Any]] = {}
    for values in run.rounds:
        for row in fetch_all(connection, "hybrid", {**values, "keep": _EVERYTHING}):
            rows.setdefault(row["id"], row)
    ranked = sorted(rows.values(), key=lambda r: (-r["score"], r["chunk_id"]))
    return {row["id"]: {**row, "place": place} for place, row in enumerate(ranked, 1)}


def _shown_and_next(result: Found, next_few: int) -> list[int]:
    """Passages of the result, then the heads of the next groups that are not in it."""
    shown = [p.id for p in result.placed]
    return shown + [g.head.id for g in result.groups if g.head.id not in shown][:next_few]


def _check_all_there(collection: Collection, chunk_ids: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    missing = sorted(set(chunk_ids) - {r["chunk_id"] for r in rows})
    if missing:
        raise UnknownPassage(
            f"{collection.name} has no passage {', '.join(map(repr, missing))}",
            hint="A passage is named SOURCE::NUMBER, such as rules/lending.md::12: `kb search` shows the names, "
            "`kb files` the sources.",
        )


def _measure_freely(connection: Conn, run: Run) -> None:
    """From here on every passage is looked at: without the limits that keep a search on its indexes."""
    settings = session(run)
    values = {
        "ef_search": settings["hnsw.ef_search"],
        "iterative_scan": settings["hnsw.iterative_scan"],
        "timeout_ms": str(int(run.options.statement_timeout_s * 1000)),
        "seqscan": "on",
    }
    fetch_one(connection, "session", values)


def _seen(connection: Conn, run: Run, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """For each passage its row of explain_ranks.sql, and `unfit`: the filter's conditions that it does not meet."""
    ids = [r["id"] for r in rows]
    if not ids:
        return []
    searched = variables(run)
    values = {name: searched[name] for name in ("vector", "bm25", "ranker")}
    tsquery = lexical.any_of(run.lexical.terms)
    values |= {"ids": ids, "tsquery": tsquery, **run.filters, "exact": "on"}
    ranks = {r["id"]: r for r in fetch_all(connection, "explain_ranks", values)}
    unfit: dict[int, list[str]] = {}
    for condition in run.options.filters.each():
        alone = filters.variables(connection, run.collection.text_search_config, condition)
        fit = {r["id"] for r in fetch_all(connection, "explain_fit", {**alone, "ids": ids, "exact": "on"})}
        for id_ in set(ids) - fit:
            unfit.setdefault(id_, []).append(str(condition))
    return [{**ranks[id_], "unfit": unfit.get(id_, [])} for id_ in ids]


def _parts(connection: Conn, run: Run, ids: Sequence[int]) -> dict[int, tuple[TermPart, ...]]:
    """For each passage the question's terms with their parts of its BM25 score."""
    terms = {t.lexeme: t for t in run.lexical.terms}
    if not (terms and ids):
        return {}
    values = {"ids": list(ids), "lexemes": list(terms), "vectors": _own_vectors(run.lexical.terms)}
    out: dict[int, list[TermPart]] = {}
    for row in fetch_all(connection, "explain_terms", values):
        out.setdefault(row["id"], []).append(_part(terms[row["lexeme"]], row["tf"], row["score"]))
    return {id_: tuple(parts) for id_, parts in out.items()}


def _own_vectors(terms: Sequence[Term]) -> list[str]:
    """Query vectors of one term each; of two that share a dimension only the stronger counts, as in the whole one."""
    strongest: dict[int, Term] = {}
    for term in terms:
        if term.dim not in strongest or term.weight > strongest[term.dim].weight:
            strongest[term.dim] = term
    return [lexical.query_vector([t]) if strongest[t.dim] is t else lexical.EMPTY_BM25 for t in terms]


def _part(term: Term, tf: int = 0, score: float = 0.0) -> TermPart:
    kind = {"#": "identifier", "~": "bigram"}.get(term.lexeme[:1], "word")
    return TermPart(term.lexeme, kind, term.qtf, term.ndoc, term.weight / term.qtf, tf, score)


# -- one passage ------------------------------------------------------------------------------------------------


def _passage(
    run: Run,
    result: Found,
    fused: Mapping[int, Mapping[str, Any]],
    row: Mapping[str, Any],
    seen: Mapping[str, Any],
    terms: tuple[TermPart, ...],
) -> Explained:
    """One passage from `row` (explain_passages.sql), `seen` (explain_ranks.sql) and what the search did with it."""
    id_ = row["id"]
    own = fused.get(id_)
    at = next((n for n, p in enumerate(result.placed) if p.id == id_), None)
    placed = None if at is None else result.placed[at]
    place, group = next(((n, g) for n, g in enumerate(result.groups, 1) if g.head.id == id_), (None, None))
    home = next((g for g in result.groups if any(c.id == id_ for c in g.folded)), None)
    facts = Facts(
        chunk_id=row["chunk_id"],
        dense=_arm(run, "dense", row, seen, own, "it has no vector"),
        lexical=_arm(run, "lexical", row, seen, own, "it holds none of the question's terms"),
        top_k=run.options.top_k,
        keep=keep(run.options),
        rank=None if at is None else at + 1,
        is_hit=placed is None or placed.group is not None,
        edge=placed.edge if placed else None,
        fused_place=own["place"] if own else None,
        folded_place=place,
        folded_into=home.head.chunk_id if home else None,
        takes_the_place_of=_replaced(group, fused) if group else None,
        holds_for=[c.chunk_id for c in group.folded] if group else (),
        anchor_of=_anchor_of(group) if group else (),
        retired=row["retired"],
        unfit=seen["unfit"],
        stands=seen["stands_chunk_id"],
        passed_over_for=next((g.head.chunk_id for g in result.groups if g.hashes & set(row["passed_over"])), None),
    )
    outcome, reason = verdict(facts)
    score: float | None = own["score"] if own else None
    if at is not None:
        score = result.passages[at].score
    elif group is not None:
        score = group.head.score
    return Explained(
        chunk_id=row["chunk_id"],
        source=row["source"],
        title=row["title"],
        outcome=outcome,
        reason=reason,
        rank=facts.rank,
        score=None if score is None else round(score, 6),
        fused_place=facts.fused_place,
        folded_place=place,
        folded_into=facts.folded_into,
        dense=facts.dense,
        lexical=facts.lexical,
        fusion=_fusion(own) if own else None,
        authority=round(row["authority"], 4),
        terms=terms,
    )


def _arm(
    run: Run, arm: str, row: Mapping[str, Any], seen: Mapping[str, Any], own: Mapping[str, Any] | None, lacks: str
) -> Arm:
    """`lacks` says what a searched passage without a rank would need to have one."""
    is_searched = seen["stands_id"] == row["id"]
    rank = own[f"{arm}_rank"] if own else None
    exact_rank = seen[f"{arm}_rank"] if is_searched else None
    score = own[f"{arm}_score"] if own else seen[f"{arm}_score"] if is_searched else None
    if rank is not None:
        why = ""
    elif not (run.vector if arm == "dense" else run.lexical.terms):
        why = _not_run(run, arm)
    else:
        why = why_not_brought(exact_rank, run.counts.get(arm, 0), lacks if is_searched else "it is not searched")
    return Arm(rank, exact_rank, None if score is None else round(float(score), 5), why)


def _not_run(run: Run, arm: str) -> str:
    reason = next((d.reason for d in run.degraded if d.arm == arm), "not asked for")
    return f"did not run ({reason})"


def _replaced(group: Group, fused: Mapping[int, Mapping[str, Any]]) -> str | None:
    """The candidate that headed the group before its copy of highest authority took its place; None without one."""
    members = [fused[c.id] for c in (group.head, *group.folded) if c.id in fused]
    best = min(members, key=lambda r: r["place"])
    return None if best["id"] == group.head.id else str(best["chunk_id"])


def _anchor_of(group: Group) -> list[str]:
    members = (group.head, *group.folded)
    arms = {"meaning": [c.dense_rank for c in members], "words": [c.lexical_rank for c in members]}
    return [arm for arm, ranks in arms.items() if 1 in ranks]


def _fusion(own: Mapping[str, Any]) -> Fused:
    names = ("by_dense", "by_lexical", "by_code", "fused", "bonus", "score")
    return Fused(**{n: float(own[n]) for n in names}, code_rank=own["code_rank"], code_part=own["code_part"])


def _order(passage: Explained) -> tuple[Any, ...]:
    """Those shown, then the candidates by their places, then the others by name."""
    unplaced = _EVERYTHING
    return passage.rank or unplaced, passage.folded_place or unplaced, passage.fused_place or unplaced, passage.chunk_id


def _settings(run: Run) -> dict[str, Any]:
    asked = variables(run)
    names = ("rrf_k", "fusion_weight", "ranker", "authority_weight", "candidates", "keep", "code_weight")
    return {
        "top_k": run.options.top_k,
        "fusion": run.options.fusion or run.collection.fusion,
        **{name: asked[name] for name in names},
        "filters": run.options.filters.to_json(),
        "exact": run.exact,
        "rounds": len(run.rounds),
        "session": session(run),
    }
