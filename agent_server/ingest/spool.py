"""Parts of a file with their vectors, kept until the file's one transaction: in memory, and on disk when many."""

import pickle
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

from agent_server.embedding import Vectors
from agent_server.ingest.prepare import Part

MEMORY_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class EmbeddedPart:
    """A part and its vectors, (n, d) in its order; a row of NaN means that this passage has none."""

    part: Part
    vectors: Vectors | None


class Spool:
    """Takes parts in order and gives them back in order, as often as asked; nothing is left after `with`."""

    def __init__(self, memory_bytes: int = MEMORY_BYTES) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=memory_bytes)  # noqa: SIM115  closed in __exit__
        self._parts = 0
        self.passages = 0

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, part: EmbeddedPart) -> None:
        """Append; not while being read."""
        pickle.dump(part, self._file, pickle.HIGHEST_PROTOCOL)
        self._parts += 1
        self.passages += len(part.part.hashes)

    def __iter__(self) -> Iterator[EmbeddedPart]:
        self._file.seek(0)
        for _ in range(self._parts):
            part: EmbeddedPart = pickle.load(self._file)  # noqa: S301  written by this object, into a file without name
            yield part
