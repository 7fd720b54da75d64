"""`kb recall`: verified claims for a question, by words alone."""

import sys
from typing import Annotated

import typer

from agent_server.catalog import list_collections
from agent_server.doors.cli import context, output
from agent_server.doors.cli.output import Json
from agent_server.retrieval.recall import DEFAULT_LIMIT, MAX_LIMIT, recall_claims
from agent_server.retrieval.recalled import Recalled, RecallResult


def register(app: typer.Typer) -> None:
    app.command()(recall)


def recall(
    query: Annotated[str, typer.Argument(help="A question, a term or a code; `-` reads it from standard input.")],
    collection: Annotated[
        str | None, typer.Option("--collection", "-c", help="Only claims of this collection; unset: of all.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LIMIT, help="How many claims at most.")] = DEFAULT_LIMIT,
    as_json: Json = False,
) -> None:
    """Recall verified statements: what a term or code means, limits and deadlines. No embedding model is asked."""
    text = sys.stdin.read() if query == "-" else query
    with context.opened() as (settings, database):
        if collection is not None:
            collections = [context.collection_called(database, collection)]
        else:
            with database.owner() as connection:
                collections = list_collections(connection)
        result = recall_claims(
            database,
            collections,
            text,
            limit,
            max_query_chars=settings.max_query_chars,
            statement_timeout_s=settings.statement_timeout_s,
        )
    if as_json:
        output.emit(result.to_json())
    else:
        output.write(render(result))


def render(result: RecallResult) -> str:
    """The result for people."""
    parts = [_claim(c, several=len(result.collections) > 1) for c in result.claims]
    if result.diagnostic:
        parts.append(output.wrapped(result.diagnostic, ""))
    count = len(result.claims)
    total = result.timings_ms.get("total", 0.0)
    parts.append(output.style(f"{count} claim{'' if count == 1 else 's'} · {total:.0f} ms", "dim"))
    return "\n\n".join(parts)


def _claim(claim: Recalled, *, several: bool) -> str:
    where = [claim.chunk_id, *([claim.context] if claim.context else [])]
    if several:
        where.insert(0, claim.collection)
    if claim.page is not None:
        where.append(f"page {claim.page}")
    lines = [
        output.wrapped(f"{claim.rank}. {claim.statement}", "").replace("\n", "\n   "),
        "    " + output.style(" · ".join(map(output.clean, where)), "dim"),
        "    " + output.style(f"claim {claim.id} · {claim.kind} · {output.clean(claim.verified_by)}", "dim"),
        output.wrapped(claim.text),
    ]
    if claim.also_in:
        lines.append(output.wrapped(f"also in {', '.join(claim.also_in)}"))
    lines += [
        output.wrapped(f"contradicted by claim {c['id']} ({c['chunk_id']}, {c['reason']}): {c['statement']}")
        for c in claim.contradicted_by
    ]
    return "\n".join(lines)
