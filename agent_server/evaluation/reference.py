"""Rankers that the product does not have, to compare with: `ts_rank_cd` as plain Postgres offers it."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from agent_server.catalog import Collection
from agent_server.db import Database, fetch_all, fetch_one, translated
from agent_server.embedding import Embedder
from agent_server.evaluation.gold import Shown
from agent_server.retrieval.candidates import SearchOptions, ef_search, vector_text


@dataclass(frozen=True, slots=True)
class Found:
    """Results, best first, and milliseconds."""

    shown: tuple[Shown, ...]
    timings_ms: dict[str, float]


def ask(
    database: Database,
    collection: Collection,
    question: str,
    embedder: Embedder | None,
    options: SearchOptions,
    *,
    any_word: bool,
    clock: Callable[[], float] = time.perf_counter,
) -> Found:
    """The best passages by words alone, or with `embedder` by RRF of words and vectors (`reference.sql`).

    Raises what the embedder raises: a reference without its vectors is none.
    """
    started = clock()
    vector = "" if embedder is None else vector_text(embedder.embed_query(question))
    before_sql = clock()
    values = {
        "config": collection.text_search_config,
        "question": question.replace("\0", " "),
        "vector": vector,
        "rrf_k": options.rrf_k,
        "candidates": options.candidates,
        "limit": options.top_k,
        **({"any": "on"} if any_word else {}),
    }
    session = {
        "ef_search": str(ef_search(collection, options.candidates)),
        "iterative_scan": "relaxed_order",
        "timeout_ms": str(int(options.statement_timeout_s * 1000)),
        "seqscan": "off" if collection.has_hnsw else "on",
    }
    with translated(), database.reader(collection.reader_role, collection.schema_name) as connection:
        fetch_one(connection, "session", session)
        rows = fetch_all(connection, "reference", values)
    now = clock()
    timings = {"sql": round((now - before_sql) * 1000, 2), "total": round((now - started) * 1000, 2)}
    if embedder is not None:
        timings["embed"] = round((before_sql - started) * 1000, 2)
    return Found(tuple(Shown(row["chunk_id"], row["text"]) for row in rows), timings)
