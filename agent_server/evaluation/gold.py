"""Gold questions: what is asked, and the quotes that answer it.

A label is a source and a verbatim quote, so that it survives another chunking. A passage is relevant when it is of that
source and its text holds the quote, white space aside; where no passage holds it whole (it was cut between two), those
are that hold at least half of its words in sequence.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_server.db import Conn, fetch_all
from agent_server.errors import BadQuestions
from agent_server.evaluation.metrics import Judged

KINDS = ("identifier", "paraphrase", "procedural", "factual", "definitional", "cross-reference", "unanswerable")
#: Fewer words than this in sequence are no part of a quote but chance.
LEAST_WORDS = 4
_FIELDS = {"id": str, "kind": str, "question": str, "relevant": list}


@dataclass(frozen=True, slots=True)
class Label:
    """A quote that answers (part of) a question, and the document it stands in."""

    source: str
    quote: str


@dataclass(frozen=True, slots=True)
class Question:
    """A gold question; `relevant` is empty when the bank does not hold the answer, `citing` is what refers to it."""

    id: str
    kind: str
    text: str
    relevant: tuple[Label, ...]
    citing: Label | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """A label with the passages that hold it: the whole quote, or half of it where none holds it whole."""

    label: Label
    chunk_ids: frozenset[str]
    whole: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """A result as far as judging needs it."""

    chunk_id: str
    text: str
    also_in: tuple[str, ...] = ()


# -- file -------------------------------------------------------------------------------------------------------


def read_gold(path: Path) -> tuple[Question, ...]:
    """The questions of a gold file in order. Raises BadQuestions that names file, line and fault."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadQuestions(f"{path} cannot be read: {error.strerror}", hint="Name a gold file with --gold.") from None
    except UnicodeDecodeError as error:
        raise BadQuestions(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from None
    questions: dict[str, Question] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path.name}:{number}"
        question = _question(where, line)
        if question.id in questions:
            raise BadQuestions(f"{where}: id {question.id!r} stands twice; each question needs an id of its own")
        questions[question.id] = question
    if not questions:
        raise BadQuestions(f"{path} holds no questions")
    return tuple(questions.values())


def _question(where: str, line: str) -> Question:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise BadQuestions(f"{where}: not JSON: {error}") from None
    if not isinstance(row, dict):
        raise BadQuestions(f"{where}: expected an object, found {line.strip()[:40]}")
    for name, kind in _FIELDS.items():
        if not isinstance(row.get(name), kind) or (kind is str and not row[name].strip()):
            what = "is missing" if name not in row else f"is {row[name]!r}"
            raise BadQuestions(f"{where}: field {name!r} {what}; expected a {'text' if kind is str else 'list'}")
    if unknown := sorted(set(row) - {*_FIELDS, "citing"}):
        raise BadQuestions(f"{where}: unknown field {unknown[0]!r}; known: {', '.join([*_FIELDS, 'citing'])}")
    if row["kind"] not in KINDS:
        raise BadQuestions(f"{where}: unknown kind {row['kind']!r}; expected one of {', '.join(KINDS)}")
    if bool(row["relevant"]) == (row["kind"] == "unanswerable"):
        raise BadQuestions(f"{where}: unanswerable questions have no relevant quotes, all others have some")
    labels = tuple(dict.fromkeys(_label(where, label) for label in row["relevant"]))
    citing = _label(where, row["citing"]) if row.get("citing") is not None else None
    return Question(row["id"], row["kind"], row["question"], labels, citing)


def _label(where: str, row: Any) -> Label:
    if (
        not isinstance(row, dict)
        or set(row) != {"source", "quote"}
        or not all(isinstance(v, str) and v.strip() for v in row.values())
    ):
        raise BadQuestions(f"{where}: a label is {{'source': …, 'quote': …}} with texts, found {row!r}")
    return Label(row["source"], row["quote"])


# -- passages ---------------------------------------------------------------------------------------------------


def targets(connection: Conn, questions: Sequence[Question]) -> dict[str, tuple[Target, ...]]:
    """Each question's labels with the live passages that hold them, by question id; `connection` is a collection's.

    Raises BadQuestions that lists every quote, citing ones too, that stands in no live passage of its source.
    """
    wanted = [(q, label) for q in questions for label in (*q.relevant, *([q.citing] if q.citing else []))]
    sources = sorted({label.source for _, label in wanted})
    by_source: dict[str, list[tuple[str, str]]] = {}
    for row in fetch_all(connection, "gold_passages", {"sources": sources}):
        by_source.setdefault(row["source"], []).append((row["chunk_id"], row["text"]))
    found = {label: find(label, by_source.get(label.source, ())) for _, label in wanted}
    if lost := [(q.id, label) for q, label in wanted if not found[label].chunk_ids]:
        shown = "; ".join(
            f"{id_}: {label.quote[:80]!r} in {label.source}"
            + ("" if label.source in by_source else " (which is not in the collection)")
            for id_, label in lost[:10]
        )
        raise BadQuestions(
            f"{len(lost)} quotes stand in no live passage: {shown}" + (" …" if len(lost) > 10 else ""),
            hint="Ingest the documents that the questions were written from, or mend the quotes.",
            details={"lost": [{"id": id_, "source": label.source, "quote": label.quote} for id_, label in lost]},
        )
    return {q.id: tuple(found[label] for label in q.relevant) for q in questions}


def find(label: Label, passages: Iterable[tuple[str, str]]) -> Target:
    """The passages (chunk_id, text) of the label's source that hold its quote; pure."""
    known = list(passages)
    for whole in (True, False):
        ids = frozenset(id_ for id_, text in known if holds(text, label.quote, whole=whole))
        if ids:
            return Target(label, ids, whole)
    return Target(label, frozenset(), True)


def holds(text: str, quote: str, *, whole: bool = True) -> bool:
    """Whether `text` has all of `quote`, or with `whole` False at least half of its words in sequence."""
    flat, words = " ".join(text.split()), quote.split()
    if whole:
        return " ".join(words) in flat
    count = max(-(-len(words) // 2), LEAST_WORDS)
    padded = f" {flat} "
    return any(f" {' '.join(words[at : at + count])} " in padded for at in range(len(words) - count + 1))


# -- judging ----------------------------------------------------------------------------------------------------


def judge(results: Sequence[Shown], wanted: Sequence[Target]) -> Judged:
    """How well results, best first, show the labels of a question; pure.

    A result shows a label when it is one of the label's passages, or when its text holds the quote and such a passage
    is among its copies. Each label counts once, in the first result that shows it.
    """
    seen: set[Label] = set()
    found: list[int] = []
    for result in results:
        new = {t.label for t in wanted if t.label not in seen and _shows(result, t)}
        seen |= new
        found.append(len(new))
    return Judged(tuple(found), tuple(map(float, found)), _ideal(wanted), len(wanted))


def _shows(result: Shown, target: Target) -> bool:
    if result.chunk_id in target.chunk_ids:
        return True
    copies = target.chunk_ids.intersection(result.also_in)
    return bool(copies) and holds(result.text, target.label.quote, whole=target.whole)


def _ideal(wanted: Sequence[Target]) -> tuple[float, ...]:
    """Labels shown first by each passage of a best ranking: always the passage that shows most of those left."""
    left: Mapping[str, set[Label]] = {id_: set() for t in wanted for id_ in t.chunk_ids}
    for target in wanted:
        for id_ in target.chunk_ids:
            left[id_].add(target.label)
    gains: list[float] = []
    open_labels = {t.label for t in wanted}
    while open_labels:
        best = max(sorted(left), key=lambda id_: len(left[id_] & open_labels))
        gains.append(float(len(left[best] & open_labels)))
        open_labels -= left[best]
    return tuple(gains)
