"""What a run says: an outcome a file, the counts behind them, and a protocol for those who watch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent_server.ingest.index import IndexReport
from agent_server.ingest.plan import Step
from agent_server.models import FileStatus


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one file. `mark` is `+` indexed, `=` unchanged, `~` renamed, `-` removed, `!` not indexed."""

    mark: str
    source: str
    status: FileStatus
    chunks: int = 0
    reason: str = ""
    embedded: int = 0


@dataclass(slots=True)
class IngestReport:
    """What a run did: one outcome a file, in order, and the counts behind them."""

    collection: str
    outcomes: list[Outcome] = field(default_factory=list)
    embedded: int = 0  #: texts sent to the embedder
    cached: int = 0  #: passages whose vector was known already
    seconds: dict[str, float] = field(default_factory=dict)
    index: IndexReport | None = None
    embedder_lost: str = ""  #: why files from some point on were not embedded
    faults: list[str] = field(default_factory=list)  #: what follows an ingestion and went wrong

    @property
    def not_indexed(self) -> list[Outcome]:
        return [o for o in self.outcomes if o.mark == "!"]

    def to_json(self) -> dict[str, Any]:
        marks = {"+": "indexed", "=": "unchanged", "~": "renamed", "-": "removed", "!": "not_indexed"}
        counts = {name: sum(o.mark == mark for o in self.outcomes) for mark, name in marks.items()}
        return {
            "collection": self.collection,
            "counts": {**counts, "embedded": self.embedded, "vectors_reused": self.cached},
            "files": [
                {
                    "mark": o.mark,
                    "source": o.source,
                    "status": str(o.status),
                    "chunks": o.chunks,
                    "reason": o.reason,
                }
                for o in self.outcomes
            ],
            "seconds": {k: round(v, 3) for k, v in self.seconds.items()},
            "faults": list(self.faults),
        }


class Reporter(Protocol):
    """Watches a run."""

    def planned(self, steps: Sequence[Step]) -> None: ...
    def embedding(self, source: str, done: int, total: int) -> None: ...
    def finished(self, outcome: Outcome) -> None: ...
    def indexing(self) -> None: ...


class Silent:
    """A reporter that says nothing."""

    def planned(self, steps: Sequence[Step]) -> None: ...
    def embedding(self, source: str, done: int, total: int) -> None: ...
    def finished(self, outcome: Outcome) -> None: ...
    def indexing(self) -> None: ...


def without_vector(failures: Mapping[int, str], passages: int) -> str:
    """The reason of a partial file: which of its passages have no vector, by index, and why."""
    listed = "; ".join(f"passage {n}: {why}" for n, why in sorted(failures.items())[:5])
    return f"{len(failures)} of {passages} passages have no vector ({listed})"


def foretold(step: Step) -> Outcome:
    """The outcome that a dry run shows for a step."""
    marks = {"index": "+", "unchanged": "=", "rename": "~", "remove": "-", "skip": "!"}
    row = step.old
    status = row.status if row is not None else FileStatus.INDEXED
    if step.action == "index":
        return Outcome("+", step.source, FileStatus.INDEXED, 0, "new" if row is None else "changed")
    if step.action == "unchanged" and status not in (FileStatus.INDEXED, FileStatus.PARTIAL):
        return Outcome("!", step.source, status, 0, row.reason if row is not None else "")
    reason = f"was {row.source}" if step.action == "rename" and row is not None else step.reason
    return Outcome(marks[step.action], step.source, status, 0, reason)
