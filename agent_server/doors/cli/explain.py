"""`kb explain`: why a passage is where it is in the answer to a question, or where it dropped out."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Annotated, Any

import typer

from agent_server.doors.cli import context, filtering, output
from agent_server.doors.cli.collection import Name
from agent_server.doors.cli.output import Json
from agent_server.doors.cli.search import Fusion, Ranker
from agent_server.retrieval.candidates import SearchOptions, reranker_of
from agent_server.retrieval.expand import RELATIONS
from agent_server.retrieval.explain import explain as run_explain
from agent_server.retrieval.explanation import Explained, Explanation
from agent_server.retrieval.search import MAX_TOP_K
from agent_server.retrieval.verdict import Arm


def register(app: typer.Typer) -> None:
    app.command()(explain)


def explain(
    name: Name,
    query: Annotated[str, typer.Argument(help="The question, as `kb search` was asked it.")],
    chunk: Annotated[
        list[str] | None,
        typer.Option(
            "--chunk", metavar="ID", help="This passage, as rules/lending.md::12, whether found or not; again for more."
        ),
    ] = None,
    top_k: Annotated[int, typer.Option(min=1, max=MAX_TOP_K, help="How many passages the search shows.")] = 6,
    fusion: Annotated[Fusion | None, typer.Option(help="How both lists are fused; unset: the collection's.")] = None,
    authority_weight: Annotated[
        float | None, typer.Option(min=0, max=0.1, help="Bonus of a source of authority 1; unset: the collection's.")
    ] = None,
    ranker: Annotated[Ranker | None, typer.Option(help="Ranking of the words; unset: the collection's.")] = None,
    expand: Annotated[
        bool | None, typer.Option("--expand/--no-expand", help="With what edges add; unset: the collection's.")
    ] = None,
    hops: Annotated[int, typer.Option(min=1, max=2, help="2: also what a cited passage cites.")] = 1,
    no_rerank: Annotated[
        bool, typer.Option("--no-rerank", help="Without the reranker that KB_RERANK_URL names.")
    ] = False,
    source: filtering.Source = None,
    heading: filtering.Heading = "",
    min_authority: filtering.MinAuthority = None,
    media_type: filtering.MediaType = None,
    since: filtering.Since = "",
    until: filtering.Until = "",
    field: filtering.Field = None,
    phrase: filtering.Phrase = None,
    exclude: filtering.Exclude = None,
    as_json: Json = False,
) -> None:
    """Say at which step of a search passages were ranked or dropped: those shown and the next few, or those named."""
    asked = filtering.filters(source, heading, min_authority, media_type, since, until, field, phrase, exclude)
    with ExitStack() as stack:
        settings, database = stack.enter_context(context.opened())
        context.collection_called(database, name)  # before a model is loaded
        embedder = None if fusion is Fusion.LEXICAL else stack.enter_context(context.opened_embedder(settings))
        options = SearchOptions(
            top_k=top_k,
            fusion=None if fusion is None else fusion.value,
            authority_weight=authority_weight,
            lexical_ranker=None if ranker is None else ranker.value,
            filters=asked,
            expand=None if expand is None else RELATIONS if expand else (),
            hops=hops,
            rerank=not no_rerank,
            reranker=reranker_of(settings),
            statement_timeout_s=settings.statement_timeout_s,
            max_query_chars=settings.max_query_chars,
        )
        result = run_explain(database, name, query, embedder, options, tuple(chunk or ()))
    if as_json:
        output.emit(result.to_json())
    else:
        output.write(render(result, one_by_one=bool(chunk)))


def render(result: Explanation, *, one_by_one: bool) -> str:
    """An explanation for people: a table of passages, or each with the parts of its score."""
    parts = [_search(result)]
    if one_by_one:
        parts += [_passage(p) for p in result.passages]
    elif result.passages:
        cells = [
            [p.rank, p.score, *_places(p.dense), *_places(p.lexical), p.fused_place, p.chunk_id, p.outcome]
            for p in result.passages
        ]
        head = ("rank", "score", "dense", "of all", "cosine", "words", "of all", "bm25", "fused", "passage", "outcome")
        parts.append(output.table(cells, head))
        parts.append("\n".join(f"{p.chunk_id}: {output.clean(p.reason)}" for p in result.passages if p.rank is None))
    return "\n\n".join(p for p in parts if p)


def _search(result: Explanation) -> str:
    """What was asked of the collection, and the terms with what they weigh there."""
    counts = ", ".join(f"{name} {n}" for name, n in result.candidates.items())
    names = ("fusion", "top_k", "candidates", "keep", "rrf_k", "fusion_weight", "ranker", "authority_weight", "exact")
    lines = [
        f"candidates  {counts}",
        f"settings    {', '.join(f'{n} {_short(result.settings[n])}' for n in names)}",
    ]
    lines += [f"without {d.arm}: {output.clean(d.reason)}" for d in result.degraded]
    if result.diagnostic:
        lines.append(output.wrapped(result.diagnostic, ""))
    if result.terms:
        cells = [[t.term, t.kind, t.qtf, t.ndoc, _short(t.idf)] for t in result.terms]
        lines += ["", output.table(cells, ("term", "kind", "in question", "passages", "idf"))]
    return "\n".join(lines)


def _passage(passage: Explained) -> str:
    lines = [
        f"{output.style(output.clean(passage.chunk_id), 'bold')}  {passage.outcome}: {output.clean(passage.reason)}",
        f"  dense      {_arm(passage.dense)}",
        f"  words      {_arm(passage.lexical)}",
    ]
    if (fused := passage.fusion) is not None:
        code = f" + codes {_short(fused.by_code)} (rank {fused.code_rank})" if fused.code_rank is not None else ""
        held = ", held back" if fused.is_capped else ""
        lines.append(
            f"  fusion     dense {_short(fused.by_dense)} + words {_short(fused.by_lexical)}{code}"
            f" = {_short(fused.fused)}; authority {passage.authority:g} adds {_short(fused.bonus)}{held}"
        )
    if passage.score is not None:
        places = [("fusion", passage.fused_place), ("folding", passage.folded_place)]
        after = ", ".join(f"place {n} after {step}" for step, n in places if n is not None)
        lines.append(f"  score      {_short(passage.score)}{f'; {after}' if after else ''}")
    held_terms = [t for t in passage.terms if t.tf or t.score]
    if held_terms:
        cells = [[t.term, t.kind, t.qtf, t.tf, t.ndoc, _short(t.idf), _short(t.score)] for t in held_terms]
        cells.append(["sum", "", "", "", "", "", _short(sum(t.score for t in passage.terms))])
        head = ("term", "kind", "in question", "here", "passages", "idf", "bm25")
        lines += ["    " + line for line in output.table(cells, head).splitlines()]
    return "\n".join(lines)


def _places(arm: Arm) -> Sequence[Any]:
    return arm.rank, arm.exact_rank, arm.score


def _arm(arm: Arm) -> str:
    """`rank 3, 4th of all, scores .61`, or why there is no rank."""
    said = [] if arm.rank is None else [f"rank {arm.rank}"]
    if arm.why:
        said.append(arm.why)
    elif arm.exact_rank is not None and arm.exact_rank != arm.rank:
        said.append(f"{arm.exact_rank} of all")
    if arm.score is not None:
        said.append(f"score {_short(arm.score)}")
    return output.clean(", ".join(said))


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
