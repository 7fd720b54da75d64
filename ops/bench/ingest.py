"""How fast files become rows, and in how much memory: the whole write path with an embedder that costs nearly nothing.

    python ops/bench/ingest.py [--megabytes 64] [--large-megabytes 200] [--once] [--workers 2]

Makes a folder of Markdown files of about 100 kB and, with --large-megabytes, one large text file in it; ingests it into
a private server, once as a first load and, without --once, again after every file has changed; prints passages a second
with the dense index timed apart, the greatest memory of the ingesting process and of its reading children. A large text
is then ingested alone in a quarter of its size and whole, to see how the time per megabyte grows, and once more by a
process that is killed in its middle, to see what the next run embeds again. Edges and claims, which follow an
ingestion, are left out (ops/bench/edges.py, ops/bench/claims.py). Texts are made words, vectors are made: nothing here
says anything about quality.
"""

import argparse
import multiprocessing
import random
import resource
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from agent_server import catalog
from agent_server.db import Database
from agent_server.embedding import Embedded, EmbedderIdentity, Vectors
from agent_server.ingest.pipeline import ingest
from agent_server.ingest.report import IngestReport
from agent_server.ingest.steps import IngestOptions
from ops.bench.private import private_bank

FILE_BYTES = 100_000
BATCH = 512
DIMENSIONS = 384
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvw" for vowel in "aeiou"]


class MadeEmbedder:
    """Unit vectors from a table, by the length of the text."""

    def __init__(self) -> None:
        table = np.random.default_rng(5).normal(size=(997, DIMENSIONS)).astype(np.float32)
        self._table: Vectors = table / np.linalg.norm(table, axis=1, keepdims=True)

    def identity(self) -> EmbedderIdentity:
        return EmbedderIdentity("local", "made", "0", DIMENSIONS, "", "", 8192)

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        return Embedded(vectors=self._table[[len(t) % len(self._table) for t in texts]], failures={})

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._table[len(text) % len(self._table)]
        return vector

    def close(self) -> None: ...


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=32, help="0 leaves the folder out")
    parser.add_argument("--large-megabytes", type=int, default=0)
    parser.add_argument("--once", action="store_true", help="leave the load of changed files out")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    with private_bank() as (database, home):
        sizes = options.megabytes, options.large_megabytes
        measure(database, home / "docs", *sizes, workers=options.workers, once=options.once)


def measure(
    database: Database, folder: Path, megabytes: int, large_megabytes: int, *, workers: int, once: bool
) -> None:
    folder.mkdir()
    if megabytes:
        of_folder(database, folder, megabytes, large_megabytes, workers=workers, once=once)
    if large_megabytes:
        of_large_text(database, folder, large_megabytes, workers)


def of_folder(
    database: Database, folder: Path, megabytes: int, large_megabytes: int, *, workers: int, once: bool
) -> None:
    for n in range(megabytes * 1_000_000 // FILE_BYTES):
        write(folder / f"file-{n:05}.md", FILE_BYTES, seed=n, heading="## ")
    what = f"{megabytes} MB in files of {FILE_BYTES // 1000} kB"
    if large_megabytes:
        write(folder / "large.txt", large_megabytes * 1_000_000, seed=1, heading="SECTION ")
        what += f" and a text of {large_megabytes} MB"
    catalog.create_collection(database, "MANY", MadeEmbedder().identity())
    show(f"{what}, first load", run(database, "MANY", folder, workers))
    if once:
        return
    for path in folder.glob("*.md"):
        path.write_text(path.read_text().replace(" Made ", " Remade "))
    show("the same, every passage of the files changed", run(database, "MANY", folder, workers))


def of_large_text(database: Database, folder: Path, megabytes: int, workers: int) -> None:
    catalog.create_collection(database, "LARGE", MadeEmbedder().identity())
    for size in (megabytes // 4, megabytes):
        path = folder / f"large-{size}.txt"
        write(path, size * 1_000_000, seed=size, heading="SECTION ")
        report, seconds = show(f"one text of {size} MB", run(database, "LARGE", path, workers))
        print(f"  {seconds / size:.3f} s a megabyte, {sum(o.chunks for o in report.outcomes)} passages", flush=True)
    kill_in_the_middle(database, path, report.embedded, workers)


def kill_in_the_middle(database: Database, path: Path, texts: int, workers: int) -> None:
    """Kills -9 a process that has embedded half of the text's `texts` passages, and lets another run end its work."""
    with database.owner() as connection:
        connection.execute("TRUNCATE kb.vector_cache")
    catalog.create_collection(database, "KILLED", MadeEmbedder().identity())
    counted = multiprocessing.Value("q", 0)
    process = multiprocessing.get_context("fork").Process(
        target=_ingest_counted, args=(database.dsn, path, workers, counted)
    )
    process.start()
    while process.is_alive() and counted.value < texts // 2:
        time.sleep(0.01)
    process.kill()
    process.join()
    report, seconds, _ = run(database, "KILLED", path, workers)
    twice = counted.value + report.embedded - texts
    print(
        f"killed when {counted.value} of {texts} passages were embedded: the next run took {seconds:.1f} s, embedded "
        f"{report.embedded}, found {report.cached} in the cache; embedded twice: {twice} (a batch is {BATCH})"
    )


class _Counted(MadeEmbedder):
    """Says in shared memory how many texts it was given."""

    def __init__(self, counted: "Synchronized[int]") -> None:
        super().__init__()
        self._counted = counted

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        with self._counted.get_lock():
            self._counted.value += len(texts)
        return super().embed_passages(texts)


def _ingest_counted(dsn: str, path: Path, workers: int, counted: "Synchronized[int]") -> None:
    with Database(dsn, b"bench") as database:
        options = IngestOptions(batch_size=BATCH, workers=workers, follow_up=False)
        ingest(database, "KILLED", [path], _Counted(counted), options)


def run(database: Database, name: str, path: Path, workers: int) -> tuple[IngestReport, float, int]:
    """The report, seconds without the dense index, and the greatest memory of process and children together."""
    with watched_memory() as peak:
        options = IngestOptions(batch_size=BATCH, workers=workers, follow_up=False)
        report = ingest(database, name, [path], MadeEmbedder(), options)
    return report, report.seconds["files"] + report.seconds["statistics"], peak[0]


def show(what: str, ran: tuple[IngestReport, float, int]) -> tuple[IngestReport, float]:
    report, seconds, peak = ran
    stored = sum(o.chunks for o in report.outcomes if o.mark == "+")
    print(
        f"{what}: {stored} passages in {seconds:.1f} s = {stored / seconds:.0f} a second "
        f"(files {report.seconds['files']:.1f} s, statistics {report.seconds['statistics']:.1f} s; "
        f"dense index {report.seconds['dense index']:.1f} s apart); memory {peak // 2**20} MB",
        flush=True,
    )
    return report, seconds


@contextmanager
def watched_memory() -> Iterator[list[int]]:
    """The greatest sum of resident bytes of this process and its children, looked at ten times a second (Linux)."""
    peak, done = [0], threading.Event()

    def look() -> None:
        while not done.wait(0.1):
            peak[0] = max(peak[0], sum(resident_bytes(pid) for pid in family()))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def family() -> list[str]:
    children = [p.read_text().split() for p in Path("/proc/self/task").glob("*/children")]
    return ["self", *(pid for pids in children for pid in pids if "postgres" not in command(pid))]


def command(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return "postgres"


def resident_bytes(pid: str) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0  # gone meanwhile


def write(path: Path, size_bytes: int, *, seed: int, heading: str) -> None:
    """A text of made sentences with a natural frequency curve, numbered so that no two passages are equal."""
    rng = random.Random(seed)
    # Of letters alone: a word with a digit in it is a code, of which documents have a few in a passage (3 to 8).
    words = ["".join(rng.choices(SYLLABLES, k=1 + n % 4)) for n in range(20_000)]
    weights = list(accumulate(1 / (n + 1) for n in range(len(words))))
    pool = [" ".join(rng.choices(words, cum_weights=weights, k=12)) for _ in range(2_000)]
    written = 0
    with path.open("w") as file:
        for n in range(size_bytes):
            text = f"{heading}{n}\n\n" if n % 40 == 0 else ""
            text += (
                f"Item {n} of {path.stem}, § {n // 40}.{n % 40}(b), is Made here. "
                + ". ".join(rng.choices(pool, k=4))
                + ".\n\n"
            )
            file.write(text)
            written += len(text)
            if written >= size_bytes:
                return


if __name__ == "__main__":
    main()
