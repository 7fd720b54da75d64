"""Chooses how a collection fuses its lists, on its own labelled questions:
candidates of every question -> scores under every setting -> cross-validated choice -> a record that says why.

What a choice is worth is told by questions that had no say in it (folds.py). A hybrid that loses to its better arm
there is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from agent_server.catalog import Collection, get_collection
from agent_server.db import Database
from agent_server.embedding import Embedder, EmbedderIdentity, Vectors, check_contract
from agent_server.errors import BadQuestions, RunRefused
from agent_server.evaluation import metrics, runs
from agent_server.evaluation.arms import Arm
from agent_server.evaluation.dataset import Dataset
from agent_server.evaluation.folds import OutOfFold, Scores, out_of_fold
from agent_server.evaluation.fuse import Setting
from agent_server.evaluation.pool import gather
from agent_server.evaluation.runs import Given
from agent_server.retrieval.candidates import SearchOptions

METRIC = "ndcg@10"
FOLDS = 5
ROUNDS = 20  #: divisions into folds: one alone is a matter of luck where questions are few
LEAST_QUESTIONS = 20
ARMS = (Setting("dense"), Setting("lexical"))
#: What is chosen among; of equal ones the first.
HYBRIDS = (Setting("rrf"), *(Setting("score", n / 10) for n in (5, 4, 6, 3, 7, 2, 8, 1, 9)))

_ROUNDING = 1e-9  #: means of equal scores may differ in their last digits

Verdict = Literal["tuned", "kept", "arm"]


@dataclass(frozen=True, slots=True)
class Measured:
    """nDCG@10 of each question (columns, by id and kind) under each setting (rows)."""

    settings: tuple[Setting, ...]
    ids: tuple[str, ...]
    kinds: tuple[str, ...]
    scores: Scores

    def of(self, setting: Setting) -> Scores:
        """The questions' scores under one setting."""
        return np.asarray(self.scores[self.settings.index(setting)], np.float64)

    def mean(self, setting: Setting) -> float:
        return float(self.of(setting).mean())


@dataclass(frozen=True, slots=True)
class Choice:
    """What to set, and why. `tuned`: the choosing of a hybrid on questions that had no say; `arm`: the better arm."""

    setting: Setting
    verdict: Verdict
    reason: str
    arm: Setting
    tuned: OutOfFold


def tune(
    database: Database,
    embedder: Embedder,
    dataset: Dataset,
    given: Given,
    base: SearchOptions = SearchOptions(top_k=runs.TOP_K),  # noqa: B008  frozen
) -> dict[str, Any]:
    """The record of a choice for the dataset's collection; nothing is stored.

    `base` are the search's options besides the fusion. Raises BadQuestions for too few of them, RunRefused for a
    collection that changed meanwhile, ContractMismatch, and what `runs.run` raises.
    """
    with database.owner() as connection:
        collection = get_collection(connection, dataset.collection)
    counts = runs.counted(database, collection)
    measured = measure(database, embedder, collection, dataset, given, base)
    with database.owner() as connection:
        unchanged = get_collection(connection, dataset.collection) == collection
    if not unchanged or runs.counted(database, collection) != counts:
        raise RunRefused(f"collection {collection.name} was changed during the run", hint="Run it again.")
    choice = choose(measured, present(collection), seed=given.seed)
    return {
        "dataset": {
            "name": dataset.name, "kind": dataset.kind, "sha256": dataset.sha256, "questions": len(measured.ids),
            **dataset.about,
        },
        "collection": runs.described(collection, counts),
        "embedder": asdict(collection.contract),
        "software": runs.software(database),
        "date": given.date,
        "command": given.command,
        "seed": given.seed,
        "folds": FOLDS,
        "rounds": ROUNDS,
        "metric": METRIC,
        **_record(measured, choice, present(collection), given.seed),
    }  # fmt: skip


def present(collection: Collection) -> Setting:
    """How the collection fuses now."""
    return _setting(collection.fusion, collection.fusion_weight)


def _setting(fusion: Any, weight: float) -> Setting:
    return Setting(fusion, weight) if fusion == "score" else Setting(fusion)


# -- measuring --------------------------------------------------------------------------------------------------


def measure(
    database: Database,
    embedder: Embedder,
    collection: Collection,
    dataset: Dataset,
    given: Given,
    base: SearchOptions,
) -> Measured:
    """Every answerable question under every setting. Raises as `tune`."""
    questions = [q for q in dataset.questions if q.answerable]
    if len(questions) < LEAST_QUESTIONS:
        raise BadQuestions(
            f"{dataset.name} has {len(questions)} answerable questions; a choice needs at least {LEAST_QUESTIONS}",
            hint="Write more of them: fewer would choose by chance.",
        )
    check_contract(collection.contract, embedder.identity())
    settings = tuple(dict.fromkeys((*HYBRIDS, *ARMS, present(collection))))
    asked_once = _Remembering(embedder)
    found: dict[Setting, dict[str, float]] = {setting: {} for setting in settings}
    rest = []
    for n, question in enumerate(questions):
        given.watch(f"{dataset.name} candidates", n, len(questions))
        pool = gather(database, collection, question.text, asked_once, base)
        if pool is None:
            rest.append(question)
            continue
        for setting in settings:
            judged = dataset.judge(question.id, pool.shown(setting))
            found[setting][question.id] = metrics.ndcg(judged, 10)
    if rest:
        left = replace(dataset, questions=tuple(rest))
        for setting in settings:
            found[setting] |= _searched(database, asked_once, left, setting, given, base)
    rows = [[found[setting][q.id] for q in questions] for setting in settings]
    ids, kinds = tuple(q.id for q in questions), tuple(q.kind for q in questions)
    return Measured(settings, ids, kinds, np.array(rows, np.float64))


def _searched(
    database: Database,
    embedder: Embedder,
    dataset: Dataset,
    setting: Setting,
    given: Given,
    base: SearchOptions,
) -> dict[str, float]:
    """Scores by question id from the search itself."""
    weight = {"fusion_weight": setting.weight} if setting.fusion == "score" else {}
    arm = Arm(setting.name, setting.name, {"fusion": setting.fusion, **weight})
    run = runs.run(database, embedder, dataset, arm, given, base)
    return {row["id"]: row[METRIC] for row in run["questions"]}


class _Remembering:
    """An embedder that makes each question's vector once."""

    def __init__(self, inner: Embedder) -> None:
        self._inner = inner
        self._known: dict[str, Vectors] = {}
        self.embed_passages = inner.embed_passages
        self.close = inner.close

    def identity(self) -> EmbedderIdentity:
        return self._inner.identity()

    def embed_query(self, text: str) -> Vectors:
        if text not in self._known:
            self._known[text] = self._inner.embed_query(text)
        return self._known[text]


# -- choosing ---------------------------------------------------------------------------------------------------


def choose(measured: Measured, now: Setting, *, seed: int) -> Choice:
    """What to set; pure. `now` is one of the measured settings.

    The best hybrid, if the choosing of it is worth as much as the better arm and as what is set now, on questions that
    had no say in it. Else what is set now, unless the better arm beats that. (The better arm is the better one on all
    questions, which favours it.)
    """
    hybrids = [measured.settings.index(s) for s in HYBRIDS]
    tuned = out_of_fold(measured.scores[hybrids], measured.kinds, folds=FOLDS, rounds=ROUNDS, seed=seed)
    worth = float(tuned.scores.mean())
    arm = max(ARMS, key=measured.mean)
    best = HYBRIDS[int(measured.scores[hybrids].mean(axis=1).argmax())]
    against_arm = f"{METRIC} {worth:.3f} out of fold, {arm.name} alone {measured.mean(arm):.3f}"
    if worth >= max(measured.mean(arm), measured.mean(now)) - _ROUNDING:
        return Choice(best, "tuned", against_arm, arm, tuned)
    if measured.mean(now) >= measured.mean(arm):
        reason = f"{now.name} stays: it has {measured.mean(now):.3f}, a tuned hybrid {against_arm}"
        return Choice(now, "kept", reason, arm, tuned)
    return Choice(arm, "arm", f"every hybrid is refused: {against_arm}", arm, tuned)


# -- record -----------------------------------------------------------------------------------------------------


def _record(measured: Measured, choice: Choice, now: Setting, seed: int) -> dict[str, Any]:
    tuned = choice.tuned
    columns = {"tuned": tuned.scores, **{s.name: measured.of(s) for s in measured.settings}}
    figures = {name: _figure(scores, tuned.scores, seed) for name, scores in columns.items()}
    return {
        "before": _plain(now),
        "chosen": _plain(choice.setting),
        "verdict": choice.verdict,
        "reason": choice.reason,
        "better_arm": choice.arm.name,
        "picks": {HYBRIDS[row].name: times for row, times in tuned.picks.items()},
        "spread": [round(min(tuned.rounds), 5), round(max(tuned.rounds), 5)],
        "figures": figures,
        "kinds": _kinds(columns, measured.kinds),
        "questions": [
            {"id": id_, "kind": kind, **{name: round(float(scores[n]), 5) for name, scores in columns.items()}}
            for n, (id_, kind) in enumerate(zip(measured.ids, measured.kinds, strict=True))
        ],
    }


def _figure(scores: Scores, tuned: Scores, seed: int) -> dict[str, float]:
    """Mean, 95 % bootstrap interval, and `p` of the paired test against the tuned choice."""
    found = metrics.bootstrap(scores.tolist(), seed=seed)
    p = metrics.paired_p_value(scores.tolist(), tuned.tolist(), seed=seed)
    return {"mean": round(found.mean, 5), "low": round(found.low, 5), "high": round(found.high, 5), "p": round(p, 5)}


def _kinds(columns: Mapping[str, Scores], kinds: Sequence[str]) -> dict[str, dict[str, float]]:
    """Means by kind, where there are several."""
    names = list(dict.fromkeys(kinds))
    if len(names) < 2:
        return {}
    return {
        kind: {
            "questions": kinds.count(kind),
            **{name: round(float(scores[[k == kind for k in kinds]].mean()), 5) for name, scores in columns.items()},
        }
        for kind in names
    }


def _plain(setting: Setting) -> dict[str, Any]:
    """As kb.collections holds it; a weight counts in 'score' alone."""
    return {"fusion": setting.fusion, "fusion_weight": setting.weight if setting.fusion == "score" else None}


def evidence(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record as kb.collections keeps it: without its questions' scores."""
    return {key: value for key, value in record.items() if key != "questions"}


def summary(record: Mapping[str, Any], digest: str) -> str:
    """An evidence in one line; `digest` is that of the collection's model now."""
    figures = {name: f"{figure['mean']:.3f}" for name, figure in record["figures"].items()}
    shown = ", ".join(f"{name} {figures[name]}" for name in ("rrf", "dense", "lexical"))
    chosen = _setting(record["chosen"]["fusion"], record["chosen"]["fusion_weight"] or 0.0).name
    stale = "" if record["embedder"]["digest"] == digest else "; measured with another model: tune again"
    return (
        f"{record['date']}, {record['dataset']['questions']} questions: {chosen} ({record['verdict']}); "
        f"{record['metric']} tuned {figures['tuned']} out of fold, {shown}{stale}"
    )
