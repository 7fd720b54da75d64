"""Questions with a way to judge rankings: what a gold file and a BEIR folder have in common."""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as Some
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agent_server.catalog import Collection
from agent_server.db import Database
from agent_server.evaluation.fingerprint import files_sha256
from agent_server.evaluation.gold import Shown, judge, read_gold, targets
from agent_server.evaluation.metrics import Judged


@dataclass(frozen=True, slots=True)
class Asked:
    """One question; `answerable` False when the collection does not hold the answer."""

    id: str
    kind: str
    text: str
    answerable: bool = True


@dataclass(frozen=True, slots=True)
class Dataset:
    """What a run asks of which collection, and how its results are judged.

    `judge(question id, results)` for answerable questions, `ranked(results)` are the ids that a result file keeps, best
    first. `sha256` is that of questions and judgements (and documents, where they are part of the set).
    """

    name: str
    kind: Literal["gold", "beir"]
    collection: str
    sha256: str
    questions: tuple[Asked, ...]
    judge: Callable[[str, Sequence[Shown]], Judged]
    ranked: Callable[[Sequence[Shown]], Sequence[str]]
    about: Mapping[str, Any] = field(default_factory=dict)  #: counts worth knowing, for the result file


def gold_dataset(
    database: Database,
    collection: Collection,
    path: Path,
    *,
    name: str = "",
    limit: int = 0,
    without: Some[str] = (),
) -> Dataset:
    """The questions of a gold file, asked of `collection` (which may be a variant of the one they were written for,
    then `name` is that one's). `limit` > 0 takes the first questions only; those with an id in `without` are left out.

    Raises BadQuestions for a faulty file and for quotes that stand in no live passage.
    """
    questions = [q for q in read_gold(path) if q.id not in without]
    with database.owner(collection.schema_name) as connection:
        wanted = targets(connection, questions)
    asked = [Asked(q.id, q.kind, q.text, bool(q.relevant)) for q in questions]
    return Dataset(
        name=name or collection.name,
        kind="gold",
        collection=collection.name,
        sha256=files_sha256([path]),
        questions=tuple(asked[:limit] if limit else asked),
        judge=lambda id_, shown: judge(shown, wanted[id_]),
        ranked=lambda shown: [s.chunk_id for s in shown],
        about={
            "unanswerable": sum(not q.relevant for q in questions),
            "split_quotes": sum(not t.whole for of in wanted.values() for t in of),
            **({"limit": limit} if limit else {}),
        },
    )
