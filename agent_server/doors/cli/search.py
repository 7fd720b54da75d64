"""`kb search`: a question, and the passages that answer it."""

import sys
from contextlib import ExitStack
from enum import StrEnum
from typing import Annotated

import typer

from agent_server.doors.cli import context, filtering, output
from agent_server.doors.cli.collection import Name
from agent_server.doors.cli.output import Json
from agent_server.models import Passage, SearchResult
from agent_server.retrieval.candidates import SearchOptions, reranker_of
from agent_server.retrieval.expand import RELATIONS
from agent_server.retrieval.search import MAX_TOP_K
from agent_server.retrieval.search import search as run_search

SHOWN_COPIES = 5


class Fusion(StrEnum):
    """How the two lists become one."""

    RRF = "rrf"
    SCORE = "score"
    DENSE = "dense"
    LEXICAL = "lexical"


class Ranker(StrEnum):
    """How the lexical list is ordered."""

    BM25 = "bm25"
    TS_RANK_CD = "ts_rank_cd"


def register(app: typer.Typer) -> None:
    app.command()(search)


def search(
    name: Name,
    query: Annotated[str, typer.Argument(help="A question or some words; `-` reads it from standard input.")],
    top_k: Annotated[int, typer.Option(min=1, max=MAX_TOP_K, help="How many passages.")] = 6,
    fusion: Annotated[
        Fusion | None, typer.Option(help="How both lists are fused; unset: as the collection is set.")
    ] = None,
    authority_weight: Annotated[
        float | None, typer.Option(min=0, max=0.1, help="Bonus of a source of authority 1; unset: the collection's.")
    ] = None,
    ranker: Annotated[Ranker | None, typer.Option(help="Ranking of the words; unset: the collection's.")] = None,
    lexical: Annotated[
        bool, typer.Option("--lexical", help="By words alone, as --fusion lexical: no embedding model is asked.")
    ] = False,
    expand: Annotated[
        bool | None,
        typer.Option(
            "--expand/--no-expand",
            help="Add what hits cite and put definitions first, or not; unset: as the collection is set.",
        ),
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
    """Find the passages of a collection that answer a question, best first."""
    text = sys.stdin.read() if query == "-" else query
    words_alone = lexical or fusion is Fusion.LEXICAL
    if lexical and fusion not in (None, Fusion.LEXICAL):
        raise typer.BadParameter(f"--lexical and --fusion {fusion} contradict each other", param_hint="--lexical")
    asked = filtering.filters(
        source, heading, min_authority, media_type, since, until, field, phrase, exclude
    )  # before a model is loaded
    with ExitStack() as stack:
        settings, database = stack.enter_context(context.opened())
        context.collection_called(database, name)  # before a model is loaded
        embedder = None if words_alone else stack.enter_context(context.opened_embedder(settings))
        options = SearchOptions(
            top_k=top_k,
            fusion="lexical" if words_alone else None if fusion is None else fusion.value,
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
        result = run_search(database, name, text, embedder, options)
    if as_json:
        output.emit(result.to_json())
    else:
        output.write(render(result))


def render(result: SearchResult) -> str:
    """The result for people."""
    parts = [_passage(p) for p in result.passages]
    if result.diagnostic:
        parts.append(output.wrapped(result.diagnostic, ""))
    last = [f"without {d.arm}: {output.clean(d.reason)}" for d in result.degraded]
    total = result.timings_ms.get("total", 0.0)
    count = len(result.passages)
    last.append(
        output.style(
            f"{count} passage{'' if count == 1 else 's'} · {total:.0f} ms · trace {result.trace_id[:8]}", "dim"
        )
    )
    return "\n\n".join([*parts, "\n".join(last)])


def _passage(passage: Passage) -> str:
    where = [output.style(output.clean(passage.chunk_id), "bold")]
    if passage.context:
        where.append(output.clean(passage.context))
    if passage.page is not None:
        where.append(f"page {passage.page}")
    found = [f"score {passage.score:.3f}", found_by(passage)]
    if passage.authority:
        found.append(f"authority {passage.authority:g}")
    lines = [f"{passage.rank:>2}. {' · '.join(where)}", "    " + output.style(" · ".join(found), "dim")]
    lines.append(output.wrapped(passage.text))
    if passage.also_in:
        shown = ", ".join(map(output.clean, passage.also_in[:SHOWN_COPIES]))
        more = len(passage.also_in) - SHOWN_COPIES
        lines.append(output.wrapped(f"also in {shown}{f' and {more} more' if more > 0 else ''}"))
    return "\n".join(lines)


def found_by(passage: Passage) -> str:
    """`dense #2 · words #1`: which list found it at which rank, and which edge put it where it stands."""
    lists = [("dense", passage.dense_rank), ("words", passage.lexical_rank)]
    found = [f"{arm} #{rank}" for arm, rank in lists if rank is not None]
    if passage.edge is not None:
        leads = "defines" if passage.edge.relation == "defines" else "cited by"
        behind = "" if passage.edge.relation == "defines" else f" {output.clean(passage.edge.from_chunk)}"
        found.append(f"{leads}{behind}: {output.clean(passage.edge.anchor)}")
    return " · ".join(found) or "copy of a hit"
