"""What follows an ingestion: functions that other packages register refresh what they derive from passages.

Entry-point group `kb.after_ingest`. A function is called with the database, the collection and the sources whose
passages came, changed or went, after every `kb ingest` and `kb remove`, also when nothing changed: what an earlier run
left undone can be made good then. Fast when there is nothing to do. What it returns is not looked at. A fault is
reported and never undoes the ingestion.
"""

import time
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points

from agent_server.catalog import Collection
from agent_server.db import Database

GROUP = "kb.after_ingest"
Hook = Callable[[Database, Collection, Sequence[str]], object]


def registered() -> Sequence[EntryPoint]:
    """The functions of all installed packages, by name."""
    return sorted(entry_points(group=GROUP), key=lambda found: found.name)


def run_hooks(
    database: Database,
    collection: Collection,
    changed: Sequence[str],
    *,
    hooks: Sequence[EntryPoint] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[dict[str, float], list[str]]:
    """Call every function; seconds by name, and what went wrong in words. Never raises but for an interruption."""
    seconds: dict[str, float] = {}
    faults: list[str] = []
    for found in registered() if hooks is None else hooks:
        started = clock()
        try:
            hook: Hook = found.load()
            hook(database, collection, changed)
        except Exception as error:  # noqa: BLE001  somebody else's code: the passages are stored and stay
            said = " ".join(str(error).split())[:300]
            faults.append(f"{found.name} was not refreshed: {type(error).__name__}: {said}")
        seconds[found.name] = clock() - started
    return seconds, faults
