"""What was measured: hashes of the code and of the questions."""

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

#: Rooms whose code decides what comes out of a search.
_ROOMS = ("ingest", "retrieval", "embedding", "evaluation", "sql")


@cache
def code_sha256() -> str:
    """SHA-256 over the program's Python and SQL files that a ranking depends on, by relative path."""
    package = Path(__file__).parents[1]
    files = [p for room in _ROOMS for p in (package / room).rglob("*") if p.suffix in {".py", ".sql"}]
    files += package.glob("*.py")
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def files_sha256(paths: Iterable[Path]) -> str:
    """SHA-256 over the contents of some files in the order given, read a block at a time."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
