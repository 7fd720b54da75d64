"""Searches in a loop beside other work: what failed is kept."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from agent_server.db import Database
from agent_server.embedding import Embedder
from agent_server.errors import ContractMismatch
from agent_server.models import SearchResult
from agent_server.retrieval.search import search


@dataclass
class Seen:
    """What the loop has seen; `new` counts searches that went on with the second embedder."""

    old: int = 0
    new: int = 0
    mismatches: int = 0
    failures: list[str] = field(default_factory=list)
    started: threading.Event = field(default_factory=threading.Event)


@contextmanager
def searched(
    database: Database, name: str, questions: dict[str, str], embedder: Embedder, then: Embedder | None = None
) -> Iterator[Seen]:
    """Ask `questions` (question -> source of the first passage) in a loop until the end of the block.

    Once the collection no longer takes `embedder`, the same question is asked with `then`, which must work; at the end
    of the block the loop goes round once more.
    """
    seen = Seen()
    stop = threading.Event()

    def ask(question: str, source: str, which: Embedder) -> None:
        result = search(database, name, question, which)
        if wrong := _wrong(result, source):
            seen.failures.append(f"{question}: {wrong}")

    def loop() -> None:
        last = False
        while not last:
            last = stop.is_set()
            for question, source in questions.items():
                try:
                    ask(question, source, embedder)
                    seen.old += 1
                except ContractMismatch as error:
                    seen.mismatches += 1
                    if then is None:
                        seen.failures.append(f"{question}: {error}")
                        continue
                    try:
                        ask(question, source, then)
                        seen.new += 1
                    except Exception as error:  # noqa: BLE001  whatever it is, it is kept
                        seen.failures.append(f"{question}: {type(error).__name__}: {error}")
                except Exception as error:  # noqa: BLE001  whatever it is, it is kept
                    seen.failures.append(f"{question}: {type(error).__name__}: {error}")
            seen.started.set()

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        assert seen.started.wait(30)
        yield seen
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()


def _wrong(result: SearchResult, source: str) -> str:
    if result.degraded:
        return f"degraded: {result.degraded}"
    if not result.passages:
        return f"nothing found: {result.diagnostic}"
    first = result.passages[0]
    if first.source != source:
        return f"{first.source} instead of {source}"
    if first.dense_rank is None or first.lexical_rank is None:
        return f"ranks {first.dense_rank} and {first.lexical_rank}"
    return ""
