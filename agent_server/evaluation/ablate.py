"""Several arms on one gold file: those of one collection side by side, variants made and dropped on the way."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent_server.catalog import Collection
from agent_server.db import Database
from agent_server.embedding import Embedder
from agent_server.evaluation import variants
from agent_server.evaluation.arms import Arm
from agent_server.evaluation.dataset import gold_dataset
from agent_server.evaluation.runs import Given, run
from agent_server.ingest.steps import IngestOptions
from agent_server.retrieval.candidates import SearchOptions


def measure(
    database: Database,
    collection: Collection,
    gold: Path,
    embedder: Embedder,
    chosen: Sequence[Arm],
    given: Given,
    base: SearchOptions,
    options: IngestOptions = IngestOptions(),  # noqa: B008  frozen
    *,
    limit: int = 0,
) -> list[dict[str, Any]]:
    """A run for each arm, in the order of `chosen`; every variant is made once and dropped.

    Raises what `run`, `gold_dataset` and `variants.made` raise.
    """
    runs: dict[str, dict[str, Any]] = {}
    here = gold_dataset(database, collection, gold, limit=limit)
    for arm in chosen:
        if variants.is_in_place(arm.variant, collection):
            runs[arm.name] = run(database, embedder, here, arm, given, base)
    for variant in dict.fromkeys(arm.variant for arm in chosen if arm.name not in runs):
        given.watch(f"{collection.name} {variant}", 0, 1)
        with variants.made(database, collection, variant, embedder, options) as (made, searched_with):
            questions = gold_dataset(database, made, gold, name=collection.name, limit=limit)
            for arm in (a for a in chosen if a.variant == variant):
                runs[arm.name] = run(database, searched_with, questions, arm, given, base)
    return [runs[arm.name] for arm in chosen]
