"""A made collection whose folders follow the content: clusters of clusters of unit vectors, one folder per cluster.

Nothing here says anything about the quality of answers: words and vectors are made. It is the hard case for filtered
search over a graph index, as a folder's passages are each other's neighbours and far from most questions.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agent_server import catalog
from agent_server.catalog import Collection
from agent_server.db import Database, execute
from agent_server.embedding import Embedded, EmbedderIdentity, Vectors
from agent_server.ingest import index, store
from agent_server.models import Chunk, FileStatus
from agent_server.retrieval.filters import Filters

SHARES = (0.5, 0.2, 0.05, 0.005, 0.0005)  #: of all rows that a filter leaves
CLUSTERS = 200
NEIGHBOURS = 10  #: clusters around one common centre
ROWS_A_FILE = 5


@dataclass(frozen=True, slots=True)
class Made:
    """A made collection with what it takes to search it exactly by other means: rows in the order of storing."""

    collection: Collection
    sources: tuple[str, ...]
    lots: Vectors  #: one random number a row, the same for the rows of a file: random filters leave those below a share
    vectors: Vectors  #: (n, d), unit rows
    centres: Vectors


class Given:
    """An embedder of texts whose vectors are known beforehand."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.known: dict[str, Vectors] = {}

    def identity(self) -> EmbedderIdentity:
        return EmbedderIdentity("local", "made", "0", self.dimensions, "", "", 256)

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        return Embedded(vectors=np.stack([self.known[t] for t in texts]))

    def embed_query(self, text: str) -> Vectors:
        return self.known[text]

    def close(self) -> None:
        pass


def make(database: Database, name: str, *, rows: int, dimensions: int, seed: int) -> Made:
    """Store `rows` made passages with their dense index. Words follow the cluster, as vectors do."""
    rng = np.random.default_rng(seed)
    collection = catalog.create_collection(database, name, Given(dimensions).identity())
    with database.owner(collection.schema_name) as connection:
        execute(connection, "root_upsert", {"root": "r", "path": "/r"})
    around = rng.normal(size=(CLUSTERS // NEIGHBOURS, dimensions)).repeat(NEIGHBOURS, axis=0)
    centres = unit(around + 0.7 * rng.normal(size=(CLUSTERS, dimensions)))
    sources: list[str] = []
    lots: list[float] = []
    vectors: list[Vectors] = []
    files = rows // ROWS_A_FILE
    lot = rng.permutation(files) / files  # exact shares
    for n in range(files):
        cluster = n % CLUSTERS
        source = f"c{cluster:03}/f{n // CLUSTERS:03}.txt"
        own = unit(centres[cluster] + 0.06 * rng.normal(size=(ROWS_A_FILE, dimensions)))
        chunks = [
            Chunk(k, _text(rng, cluster, n * ROWS_A_FILE + k), "", (), "", None, None, k * 999, k * 999 + 99)
            for k in range(ROWS_A_FILE)
        ]
        row = store.LedgerRow(
            source, "r", source, 1, "text/plain", FileStatus.INDEXED, "", "bench", ROWS_A_FILE,
            metadata=json.dumps({f"left_{share:g}": "yes" for share in SHARES if lot[n] < share}),
        )  # fmt: skip
        with database.owner(collection.schema_name) as connection:
            store.replace_file(connection, collection, row, chunks, own)
        sources += [source] * ROWS_A_FILE
        lots += [lot[n]] * ROWS_A_FILE
        vectors.append(own)
    index.finish_load(database, collection, changed_rows=rows)
    with database.owner() as connection:
        collection = catalog.get_collection(connection, name)
    return Made(collection, tuple(sources), np.array(lots, np.float32), np.concatenate(vectors), centres)


def by_path(made: Made, share: float) -> tuple[Filters, "np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
    """A filter that follows the content and leaves this share of the rows, and which rows those are."""
    rows = round(share * len(made.sources))
    folders = round(share * CLUSTERS)
    if folders:
        patterns = tuple(f"c{n:03}/**" for n in range(folders))
        left = np.array([int(s[1:4]) < folders for s in made.sources])
    else:
        names = [s for s in dict.fromkeys(made.sources) if s.startswith("c000/")][: max(1, rows // ROWS_A_FILE)]
        patterns = tuple(names)
        left = np.array([s in patterns for s in made.sources])
    return Filters(sources=patterns), left


def by_lot(made: Made, share: float) -> tuple[Filters, "np.ndarray[tuple[int], np.dtype[np.bool_]]"]:
    """A filter that has nothing to do with the content, by a front-matter field."""
    return Filters(fields=((f"left_{share:g}", "yes"),)), made.lots < np.float32(share)


def questions(made: Made, count: int, rng: np.random.Generator) -> Vectors:
    """Vectors near `count` clusters, chosen at random: most are far from what a filter by path leaves."""
    near = made.centres[rng.integers(CLUSTERS, size=count)]
    return unit(near + 0.06 * rng.normal(size=near.shape))


def unit(raw: "np.ndarray[tuple[int, ...], np.dtype[np.floating]]") -> Vectors:
    out: Vectors = (raw / np.linalg.norm(raw, axis=-1, keepdims=True)).astype(np.float32)
    return out


def _text(rng: np.random.Generator, cluster: int, n: int) -> str:
    common = [f"word{w}" for w in np.minimum(rng.zipf(1.3, size=20), 5000)]
    return " ".join([*common, *(f"topic{cluster}w{w}" for w in rng.integers(30, size=6)), f"row{n}x"])
