"""The gold questions of a night, top to bottom: asked -> compared with the last good night -> what fell, and what has
changed since -> kept.

A drop counts when chance is an unlikely cause of it (paired randomisation test over the questions) and when it is
large enough to matter. Questions whose quotes stand nowhere any more are named apart: they say that a document went, or
that the gold file is out of date, and no figure.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from agent_server.catalog import Collection
from agent_server.db import Database
from agent_server.errors import BadQuestions
from agent_server.evaluation.arms import ARMS
from agent_server.evaluation.compare import MAIN, compare
from agent_server.evaluation.dataset import gold_dataset
from agent_server.evaluation.gold import read_gold
from agent_server.evaluation.runs import SEED, TOP_K, Given, run
from agent_server.retrieval.candidates import SearchOptions, reranker_of
from agent_server.settings import Settings
from nightly import evaluate_changes
from nightly.embedders import ready
from nightly.evaluate_verdict import Finding, drops, lost_quotes, said
from nightly.jobs import NightContext, StepReport
from nightly.statements import execute, fetch_all

ARM = ARMS["hybrid"]  # the collection as it is set


def job(database: Database, collection: Collection, context: NightContext) -> StepReport:
    """Ask a collection's gold questions and hold them against the last good night.

    `ok` is False after a drop and for quotes that stand nowhere any more. Raises BadQuestions for a gold file that
    cannot be read, RunRefused where something else than the collection as it is set would be measured (an embedder that
    does not answer, a change meanwhile), and what `search` raises.
    """
    path = gold_file(context.settings, collection)
    if not path.is_file():
        return StepReport(summary=f"no gold questions: there is no gold/{path.name} in the bank")
    at = context.clock()
    lost = _lost(database, collection, path)
    without = {id_ for id_, _ in lost}
    dataset = gold_dataset(database, collection, path, without=without)
    given = Given(at.date().isoformat(), "kb nightly run evaluate")
    with ready(context) as embedder:
        measured = run(database, embedder, dataset, ARM, given, _options(context.settings))
    questions = _questions(measured, path)
    surroundings = evaluate_changes.surroundings(database, collection, measured)
    before = _last_good(database, collection)
    fell: list[Finding] = []
    if before is not None and (shared := _as_runs(collection, before, questions, at)) is not None:
        fell = drops(compare(*shared, seed=SEED))
    findings = [*fell, *lost_quotes(lost)]
    if findings and before is not None:
        findings += evaluate_changes.since(before["at"], before["context"], surroundings)
    accepted = bool(context.options.get("accept"))
    good = accepted or not fell
    metrics = {"all": measured["metrics"], "kinds": measured["kinds"], "ms": measured["ms"]}
    _keep(database, collection, context, at, good, metrics, questions, surroundings, findings)
    return StepReport(
        counts=_counts(measured, fell, lost),
        ok=good and (accepted or not lost),
        summary=_summary(measured, before, fell),
        findings=tuple(map(said, findings)),
    )


def gold_file(settings: Settings, collection: Collection) -> Path:
    """Where the gold questions of a collection lie, if it has any."""
    return settings.bank / "gold" / f"{collection.name}.jsonl"


def _options(settings: Settings) -> SearchOptions:
    return SearchOptions(
        top_k=TOP_K,
        statement_timeout_s=settings.statement_timeout_s,
        max_query_chars=settings.max_query_chars,
        reranker=reranker_of(settings),
    )


def _lost(database: Database, collection: Collection, path: Path) -> list[tuple[str, str]]:
    """Questions with a quote that stands in no live passage, and the sources of these quotes. Raises BadQuestions when
    that holds for all questions: then it is another gold file's collection."""
    try:
        gold_dataset(database, collection, path)
    except BadQuestions as error:
        lost = [(row["id"], row["source"]) for row in error.details.get("lost", ())]
        if not lost or {id_ for id_, _ in lost} >= {q.id for q in read_gold(path) if q.relevant}:
            raise
        return list(dict.fromkeys(lost))
    return []


def _questions(measured: Mapping[str, Any], path: Path) -> dict[str, dict[str, Any]]:
    """Each judged question's kind and metrics, and what it asks, shortened to a hash: a question that was written anew
    is another one."""
    asked = {q.id: evaluate_changes.short_hash(q.text, *sorted(f"{t.source}\0{t.quote}" for t in q.relevant))
             for q in read_gold(path)}  # fmt: skip
    return {
        row["id"]: {"asked": asked[row["id"]], **{k: v for k, v in row.items() if k not in ("id", "ranked")}}
        for row in measured["questions"]
        if MAIN in row
    }


def _last_good(database: Database, collection: Collection) -> dict[str, Any] | None:
    with database.owner() as connection:
        rows = fetch_all(connection, "evaluation_last_good", {"collection": collection.name})
    return rows[0] if rows else None


def _as_runs(
    collection: Collection, before: Mapping[str, Any], now: Mapping[str, Mapping[str, Any]], at: datetime
) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The last good night and this one, as `compare` takes them, with the questions that both asked alike; None when
    there is no such question."""
    was = before["questions"]
    shared = [id_ for id_, row in now.items() if id_ in was and was[id_]["asked"] == row["asked"]]

    def as_run(questions: Mapping[str, Mapping[str, Any]], night: datetime) -> dict[str, Any]:
        return {
            "dataset": {"name": collection.name, "kind": "gold"},
            "label": ARM.label,
            "date": night.date().isoformat(),
            "embedder": {"model": collection.model},
            "questions": [{"id": id_, **questions[id_]} for id_ in shared],
        }

    return (as_run(was, before["at"]), as_run(now, at)) if shared else None


def _keep(
    database: Database,
    collection: Collection,
    context: NightContext,
    at: datetime,
    good: bool,
    metrics: Mapping[str, Any],
    questions: Mapping[str, Any],
    surroundings: Mapping[str, Any],
    findings: list[Finding],
) -> None:
    values = {
        "run_id": context.run_id,
        "collection": collection.name,
        "at": at,
        "good": good,
        "metrics": json.dumps(metrics),
        "questions": json.dumps(questions),
        "context": json.dumps(surroundings),
        "findings": json.dumps([f.to_json() for f in findings]),
    }
    with database.owner() as connection:
        execute(connection, "evaluation_put", values)
        execute(connection, "evaluation_trim", {"collection": collection.name})


def _counts(
    measured: Mapping[str, Any], fell: list[Finding], lost: list[tuple[str, str]]
) -> dict[str, int | float | str]:
    counts: dict[str, int | float | str] = {"questions": sum(MAIN in row for row in measured["questions"])}
    counts |= {name: measured["metrics"][name]["mean"] for name in (MAIN, "recall@10", "hit@1")}
    if fell:
        counts["fell"] = sum(f.about == "question" for f in fell)
    if lost:
        counts["lost"] = len({id_ for id_, _ in lost})
    return counts


def _summary(measured: Mapping[str, Any], before: Mapping[str, Any] | None, fell: list[Finding]) -> str:
    now = measured["metrics"][MAIN]["mean"]
    if before is None:
        return f"{MAIN} {now:.3f}; the first night, nothing to compare with"
    was = before["metrics"]["all"][MAIN]["mean"]
    verdict = "fell" if fell else "no significant drop"
    return f"{MAIN} {now:.3f}, on {before['at']:%Y-%m-%d} {was:.3f}: {verdict}"
