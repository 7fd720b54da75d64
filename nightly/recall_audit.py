"""Recall audit, top to bottom: recorded searches -> the truth about them -> what the index brings -> kept -> where that
is below the target, `ef_search` is raised step by step until it is not.

Searches with a filter are measured apart: they walk with the widest `ef_search` there is, so that nothing can be raised
for them.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from agent_server.catalog import Collection
from agent_server.db import Database
from agent_server.embedding import check_contract
from agent_server.errors import ContractMismatch, EmbedderUnavailable, EmbeddingRefused
from agent_server.retrieval.candidates import MAX_EF_SEARCH, vector_text
from agent_server.retrieval.filters import Filters
from nightly.embedders import ready
from nightly.jobs import NightContext, StepReport
from nightly.recall_measure import Exact, K, Measured, Question, measure, truth
from nightly.statements import execute, fetch_all

SAMPLE = 100  #: searches without a filter, and as many with one
#: Fewer recorded searches without a filter are filled up with passages' own vectors; fewer with one are measured and
#: not judged.
LEAST = 30
#: Longest that the truth of either kind may take to find.
TRUTH_LIMIT_S = 300.0
STEPS = (300, 400, 600, 800, MAX_EF_SEARCH)
#: Share of searches for which the index brought too little, from which it is spoken of.
STARVED_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Sample:
    """Questions to measure with, and where they come from."""

    questions: tuple[Question, ...]
    recorded: int  #: of them; the others are passages' own vectors
    lost: int = 0  #: recorded ones of another model that could not be embedded


def job(database: Database, collection: Collection, context: NightContext) -> StepReport:
    """Measure the recall of a collection's dense index and widen its walks where it is too low.

    `ok` is False where even the widest walk misses too much. Raises what a search raises when the database does not
    answer.
    """
    if not collection.has_hnsw:
        return StepReport(summary="no dense index stands: vectors are compared one by one, and nothing is missed")
    at = context.clock()
    seed = at.date().isoformat()  # another sample each night, the same one when the night is repeated
    sample = _sample(database, collection, context, seed, filtered=False)
    known, _ = truth(database, collection, sample.questions, limit_s=TRUTH_LIMIT_S)
    with_filter = _sample(database, collection, context, seed, filtered=True)
    known_filtered, exactly = truth(database, collection, with_filter.questions, limit_s=TRUTH_LIMIT_S)

    auditor = _Auditor(database, collection, context, at)
    findings = _about_sample(sample, len(known), with_filter)
    plain, ok = auditor.unfiltered(known, findings)
    filtered = auditor.keep(measure(database, collection, known_filtered), filtered=True)
    if filtered is not None and filtered.searches >= LEAST and filtered.recall < context.settings.recall_target:
        findings.append(
            f"recall@{K} of searches with a filter is {filtered.recall:.3f}, and they walk as wide as there is: "
            f"`kb reindex {collection.name}` builds the index anew"
        )
        ok = False
    return StepReport(
        counts=_counts(plain, filtered, exactly, sample.recorded),
        ok=ok,
        summary=_summary(plain, filtered, context.settings.recall_target),
        findings=tuple(findings),
    )


@dataclass(slots=True)
class _Auditor:
    database: Database
    collection: Collection
    context: NightContext
    at: datetime

    def unfiltered(self, known: Sequence[Exact], findings: list[str]) -> tuple[Measured | None, bool]:
        """What is in force in the end, and whether it will do."""
        target = self.context.settings.recall_target
        first = now = self.keep(measure(self.database, self.collection, known), filtered=False)
        if first is None or now is None:
            return None, True
        if first.starved > STARVED_SHARE * first.searches:
            findings.append(
                f"for {first.starved} of {first.searches} searches the dense index brought too few passages, and "
                f"vectors were compared one by one: `kb reindex {self.collection.name}` builds it anew"
            )
        if first.recall >= target:
            return self._lowered(known, first, findings), True
        for step in (s for s in STEPS if s > first.ef_search):
            tried = self.keep(measure(self.database, replace(self.collection, ef_search=step), known), filtered=False)
            if tried is None:
                break
            now = tried
            if now.recall >= target:
                break
        if now.ef_search > first.ef_search:
            self._set(now.ef_search)
            findings.append(
                f"recall@{K} was {first.recall:.3f}, below the target of {target:g}: ef_search raised from "
                f"{first.ef_search} to {now.ef_search}, where it is {now.recall:.3f} "
                f"({first.index_ms:.1f} -> {now.index_ms:.1f} ms a search)"
            )
        if now.recall < target:
            findings.append(
                f"recall@{K} is {now.recall:.3f} with ef_search {now.ef_search}, below the target of {target:g}: the "
                f"dense index is worn or too sparse; `kb reindex {self.collection.name}` builds it anew"
            )
        return now, now.recall >= target

    def _lowered(self, known: Sequence[Exact], first: Measured, findings: list[str]) -> Measured:
        """A raise that is not needed any more (the index was built anew) is taken back, with a margin, so that it does
        not go up and down from night to night."""
        if self.collection.ef_search is None:
            return first
        target = self.context.settings.recall_target
        without = measure(self.database, replace(self.collection, ef_search=None), known)
        if without is None or without.recall < (1 + target) / 2 or without.ef_search >= first.ef_search:
            return first
        self.keep(without, filtered=False)
        self._set(None)
        findings.append(
            f"recall@{K} is {without.recall:.3f} without the raise of ef_search to {self.collection.ef_search}: "
            f"it is back at {without.ef_search}"
        )
        return without

    def _set(self, ef_search: int | None) -> None:
        with self.database.owner() as connection:
            execute(connection, "recall_ef_search", {"name": self.collection.name, "ef_search": ef_search})

    def keep(self, measured: Measured | None, *, filtered: bool) -> Measured | None:
        """Store what was measured, and hand it on."""
        if measured is None:
            return None
        values = {
            "run_id": self.context.run_id,
            "collection": self.collection.name,
            "at": self.at,
            "filtered": filtered,
            "searches": measured.searches,
            "k": K,
            "ef_search": measured.ef_search,
            "recall": measured.recall,
            "index_ms": measured.index_ms,
            "exact_ms": measured.exact_ms,
        }
        with self.database.owner() as connection:
            execute(connection, "recall_put", values)
        return measured


# -- sample -----------------------------------------------------------------------------------------------------


def _sample(database: Database, collection: Collection, context: NightContext, seed: str, *, filtered: bool) -> Sample:
    """Recorded searches of either kind, their vectors as they were asked with, or of today's model."""
    with database.owner(collection.schema_name) as connection:
        asked = {"filtered": filtered, "seed": seed, "limit": SAMPLE}
        rows = fetch_all(connection, "recall_searches", asked)
        missing = 0 if filtered else LEAST - len(rows)
        values = {"seed": seed, "limit": missing}
        own = fetch_all(connection, "recall_passages", values) if missing > 0 else []
    vectors = {r["query"]: r["vector"] for r in rows if r["model_digest"] == collection.model_digest}
    vectors |= _embedded(collection, context, [r["query"] for r in rows if r["query"] not in vectors])
    found = [Question(vectors[r["query"]], Filters.from_json(r["filters"])) for r in rows if r["query"] in vectors]
    passages = [Question(r["vector"]) for r in own]
    return Sample((*found, *passages), len(found), len(rows) - len(found))


def _embedded(collection: Collection, context: NightContext, queries: Sequence[str]) -> dict[str, str]:
    """Vectors of questions that were asked of another model; those that the embedder gives."""
    vectors: dict[str, str] = {}
    if queries:
        with suppress(EmbedderUnavailable, ContractMismatch), ready(context) as embedder:
            check_contract(collection.contract, embedder.identity())
            for query in queries:
                with suppress(EmbeddingRefused):
                    vectors[query] = vector_text(embedder.embed_query(query))
    return vectors


# -- words ------------------------------------------------------------------------------------------------------


def _about_sample(sample: Sample, known: int, with_filter: Sample) -> list[str]:
    """What a reader has to know of the questions to judge the figures."""
    findings = []
    own = len(sample.questions) - sample.recorded
    if own:
        findings.append(
            f"{sample.recorded or 'no'} recorded searches without a filter: measured with {own} passages' own vectors"
            + (" too" if sample.recorded else "")
        )
    if known < len(sample.questions):
        findings.append(f"{known} of {len(sample.questions)} searches were compared exactly in the time there is")
    if lost := sample.lost + with_filter.lost:
        findings.append(f"{lost} recorded searches were asked of another model and could not be embedded again")
    return findings


def _counts(
    plain: Measured | None, filtered: Measured | None, exactly: int, recorded: int
) -> dict[str, int | float | str]:
    counts: dict[str, int | float | str] = {"recorded": recorded}
    if plain is not None:
        counts |= {"searches": plain.searches, "recall": round(plain.recall, 4), "ef_search": plain.ef_search}
        counts |= {"index_ms": plain.index_ms, "exact_ms": plain.exact_ms}
    if filtered is not None:
        counts |= {"filtered": filtered.searches, "recall_filtered": round(filtered.recall, 4)}
    return counts | ({"filtered_exactly": exactly} if exactly else {})


def _summary(plain: Measured | None, filtered: Measured | None, target: float) -> str:
    if plain is None:
        return "nothing to measure: no passage has a vector"
    text = (
        f"recall@{K} {plain.recall:.3f} (target {target:g}) of {plain.searches} searches, ef_search {plain.ef_search}"
    )
    if filtered is not None:
        text += f"; with a filter {filtered.recall:.3f} of {filtered.searches}"
    return text
