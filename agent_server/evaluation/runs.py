"""One run, top to bottom: check the asked-for model -> ask every question -> judge -> check that all went as asked.

Questions go through the `search` that the tools call. A run that did not measure what was asked for (another model, an
arm that did not answer, settings that were not in force, a collection that changed meanwhile) raises RunRefused and
reports nothing. Its traces are taken back: nobody asked these questions.
"""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agent_server import __version__
from agent_server.catalog import Collection, get_collection
from agent_server.db import Database, execute, fetch_all, fetch_one
from agent_server.embedding import Embedder, check_contract
from agent_server.errors import InvalidArgument, RunRefused
from agent_server.evaluation import arms, metrics, reference, results
from agent_server.evaluation.arms import Arm
from agent_server.evaluation.dataset import Asked, Dataset
from agent_server.evaluation.fingerprint import code_sha256
from agent_server.evaluation.gold import Shown
from agent_server.retrieval.candidates import SearchOptions, reranks
from agent_server.retrieval.search import search

SEED = 20_000  #: of every bootstrap and test
TOP_K = 10


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one question."""

    shown: tuple[Shown, ...]
    timings_ms: Mapping[str, float]
    trace_id: str = ""
    degraded: Mapping[str, str] = field(default_factory=dict)  #: arm -> why it did not run
    answerable: bool | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """What a run is told besides what to measure: for its file, and to be called while it goes on."""

    date: str  #: YYYY-MM-DD
    command: str = ""
    seed: int = SEED
    watch: Callable[[str, int, int], None] = lambda *_: None


def run(
    database: Database,
    embedder: Embedder | None,
    dataset: Dataset,
    arm: Arm,
    given: Given,
    base: SearchOptions = SearchOptions(top_k=TOP_K),  # noqa: B008  frozen
) -> dict[str, Any]:
    """Measure one arm on one dataset; the run as a result file holds it.

    `base` are the options that the arm does not decide. Raises RunRefused, ContractMismatch (the embedder is not the
    one that the collection's vectors come from), and what `search` raises, but for questions that it does not accept:
    these count as found nothing.
    """
    if not dataset.questions:
        raise RunRefused(f"{dataset.name} has no questions")
    options = arms.search_options(arm, base)
    if arm.name == arms.RERANKED and options.reranker is None:
        raise RunRefused(
            "no reranker is set, so that nothing would be reranked",
            hint="KB_RERANK_URL names one; or leave the arm out.",
        )
    collection = _collection(database, dataset)
    if needs_vectors(arm, options, collection):
        if embedder is None:
            raise RunRefused(f"{arm.name} needs an embedder, and none was given")
        check_contract(collection.contract, embedder.identity())
    counts = counted(database, collection)
    if not counts["searched"]:
        raise RunRefused(f"collection {collection.name} is empty: nothing would be measured")
    answers, not_accepted = _ask_all(database, embedder, dataset, collection, arm, options, given)
    asked_for = arms.settings(arm, options, collection)
    try:
        _check_arms(answers, needs_vectors(arm, options, collection), reranks(options))
        _check_settings(database, collection, asked_for, answers)
    finally:
        _forget(database, collection, answers)
    if _collection(database, dataset) != collection or counted(database, collection)["passages"] != counts["passages"]:
        raise RunRefused(f"collection {collection.name} was changed during the run", hint="Run it again.")
    rows = [_row(dataset, question, answers.get(question.id)) for question in dataset.questions]
    return {
        "dataset": {
            "name": dataset.name, "kind": dataset.kind, "sha256": dataset.sha256, "questions": len(rows),
            **dataset.about,
        },
        "arm": arm.name,
        "label": arm.label,
        "settings": asked_for,
        "embedder": asdict(collection.contract),
        "collection": described(collection, counts),
        "software": software(database),
        "date": given.date,
        "command": given.command,
        "seed": given.seed,
        "not_accepted": not_accepted,
        "degraded": _degraded(answers),
        **_measured(rows, given.seed),
        "refusals": results.refusals(
            [_refused(answers.get(q.id)) for q in dataset.questions], [not q.answerable for q in dataset.questions]
        ),
        "ms": _milliseconds(list(answers.values())),
        "questions": rows,
    }  # fmt: skip


def needs_vectors(arm: Arm, options: SearchOptions, collection: Collection) -> bool:
    """Whether questions are embedded at all."""
    if arm.reference:
        return arm.reference == "rrf-and"
    return (options.fusion or collection.fusion) != "lexical"


# -- asking -----------------------------------------------------------------------------------------------------


def _ask_all(
    database: Database,
    embedder: Embedder | None,
    dataset: Dataset,
    collection: Collection,
    arm: Arm,
    options: SearchOptions,
    given: Given,
) -> tuple[dict[str, Answer], list[str]]:
    """Answers by question id, and the ids of questions that the search does not accept (too long, say)."""
    answers: dict[str, Answer] = {}
    not_accepted: list[str] = []
    if not needs_vectors(arm, options, collection):
        embedder = None
    for n, question in enumerate(dataset.questions):
        given.watch(f"{dataset.name} {arm.name}", n, len(dataset.questions))
        try:
            answers[question.id] = _ask(database, embedder, collection, question, arm, options)
        except InvalidArgument:
            not_accepted.append(question.id)
    return answers, not_accepted


def _ask(
    database: Database,
    embedder: Embedder | None,
    collection: Collection,
    question: Asked,
    arm: Arm,
    options: SearchOptions,
) -> Answer:
    if arm.reference:
        found = reference.ask(database, collection, question.text, embedder, options, any_word=arm.reference == "or")
        return Answer(found.shown, found.timings_ms)
    result = search(database, collection.name, question.text, embedder, options)
    return Answer(
        tuple(Shown(p.chunk_id, p.text, p.also_in) for p in result.passages),
        result.timings_ms,
        result.trace_id,
        {d.arm: d.reason for d in result.degraded},
        result.answerable,
    )


# -- checking ---------------------------------------------------------------------------------------------------


def _check_arms(answers: Mapping[str, Answer], dense: bool, reranked: bool) -> None:
    """Raise RunRefused when the dense arm or the reranker was asked and did not answer. The lexical arm may have
    nothing to say to a question of stop words: that is how the product answers it."""
    kept = {id_: answer.degraded["rerank"] for id_, answer in answers.items() if "rerank" in answer.degraded}
    if reranked and kept:
        raise RunRefused(
            f"the reranker failed for {len(kept)} of {len(answers)} questions: {next(iter(kept.values()))}",
            hint="KB_RERANK_TIMEOUT_S is the longest wait for it.",
            details={"questions": sorted(kept)},
        )
    lost = {id_: answer.degraded["dense"] for id_, answer in answers.items() if "dense" in answer.degraded}
    if dense and lost:
        raise RunRefused(
            f"the dense arm did not run for {len(lost)} of {len(answers)} questions: {next(iter(lost.values()))}",
            hint="Is the embedder up and warm? KB_QUERY_TIMEOUT_S is the longest wait for a question's vector.",
            details={"questions": sorted(lost)},
        )


def _check_settings(
    database: Database, collection: Collection, asked_for: Mapping[str, Any], answers: Mapping[str, Answer]
) -> None:
    """Raise RunRefused unless the recorded searches were run with what was asked for."""
    ids = [a.trace_id for a in answers.values() if a.trace_id and "trace" not in a.degraded]
    with database.owner(collection.schema_name) as connection:
        ways = fetch_all(connection, "run_settings", {"trace_ids": ids})
    for way in ways:
        asked = {**way["asked"], "model_digest": way["digest"]}
        for name, value in {**asked_for, "model_digest": collection.model_digest}.items():
            if asked.get(name) != value:
                raise RunRefused(
                    f"{way['searches']} of {len(ids)} searches had {name} {asked.get(name)!r}, {value!r} was asked for",
                    hint="The collection was changed during the run, or the search does not do what it is told.",
                )


def _forget(database: Database, collection: Collection, answers: Mapping[str, Answer]) -> None:
    ids = [answer.trace_id for answer in answers.values() if answer.trace_id]
    with database.owner(collection.schema_name) as connection:
        execute(connection, "traces_forget", {"trace_ids": ids})


# -- result -----------------------------------------------------------------------------------------------------


def _row(dataset: Dataset, question: Asked, answer: Answer | None) -> dict[str, Any]:
    """One question's line; without an answer it counts as zero."""
    shown: Sequence[Shown] = answer.shown if answer is not None else ()
    row: dict[str, Any] = {"id": question.id, "kind": question.kind, "ranked": list(dataset.ranked(shown))}
    if question.answerable:
        row |= results.scores(dataset.judge(question.id, shown), [s.text for s in shown])
    return row


def _measured(rows: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
    judged = [row for row in rows if results.METRICS[0] in row]
    kinds = results.by_kind(judged, seed)
    return {"metrics": results.summary(judged, seed), "kinds": kinds if len(kinds) > 1 else {}}


def _refused(answer: Answer | None) -> bool | None:
    return None if answer is None or answer.answerable is None else not answer.answerable


def _degraded(answers: Mapping[str, Answer]) -> dict[str, int]:
    """How many questions each arm did not answer."""
    lost = [arm for answer in answers.values() for arm in answer.degraded]
    return {arm: lost.count(arm) for arm in dict.fromkeys(lost)}


def _milliseconds(answers: Sequence[Answer]) -> dict[str, dict[str, float]]:
    """Median and 95th percentile of each timing over all questions."""
    names = dict.fromkeys(name for answer in answers for name in answer.timings_ms)
    by_name = {name: [a.timings_ms[name] for a in answers if name in a.timings_ms] for name in names}
    return {
        name: {"p50": round(metrics.percentile(values, 0.5), 1), "p95": round(metrics.percentile(values, 0.95), 1)}
        for name, values in by_name.items()
    }


def _collection(database: Database, dataset: Dataset) -> Collection:
    with database.owner() as connection:
        return get_collection(connection, dataset.collection)


def counted(database: Database, collection: Collection) -> dict[str, Any]:
    """How much a collection holds."""
    with database.owner(collection.schema_name) as connection:
        row = fetch_one(connection, "stats") or {}
    return {k: row[k] for k in ("files", "passages", "searched", "retired", "without_vector")}


def described(collection: Collection, counts: Mapping[str, Any]) -> dict[str, Any]:
    """A collection as a result file names it."""
    kept = ("name", "text_search_config", "chunk_size", "chunk_overlap", "avg_length", "has_hnsw")
    return {**{name: getattr(collection, name) for name in kept}, **counts}


def software(database: Database) -> dict[str, str]:
    """Versions of all that took part, as a result file names them."""
    with database.owner() as connection:
        versions = fetch_one(connection, "server_versions") or {}
    return {
        "knowledge_bank": __version__,
        "code_sha256": code_sha256(),
        "python": platform.python_version(),
        **versions,
    }
