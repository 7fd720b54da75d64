"""The mean passage length that BM25 vectors are made with: one for all rows of a collection, whoever stores at once.

It is fixed early in the first load, and changed only by restating all rows. What a mean that is off by a share e costs:
a weight tf (k1 + 1) / (tf + k1 (1 - b + b dl / avgdl)) moves by at most e, and by
k1 b / (1 + k1) = .41 e for a word that stands once in a passage of mean length (k1 1.2, b .75); all passages move in
the same direction, so that their order hardly changes.
"""

import math
from collections.abc import Sequence
from typing import TypeVar

from agent_server.catalog import Collection
from agent_server.db import Conn, Database, execute, fetch_one

#: Passages of a first load after which the mean is fixed for the rest of it. Their own vectors are made anew then.
SETTLED_PASSAGES = 1_000
#: avg_length is restated when the true mean is off by more.
LENGTH_DRIFT = 0.10
#: After a load that makes up most of the table: nobody has searched it for long, and its first thousand passages may
#: not be like the rest. To restate a passage costs as much as to store it.
FIRST_LOAD_DRIFT = 0.05
#: So few files stay in the order of their names in a first load.
FEW_FILES = 16
#: The drift is read off about this many passages: their mean is right to about .4 %.
SAMPLE_PASSAGES = 20_000

T = TypeVar("T")


def spread(files: Sequence[T]) -> list[T]:
    """`files` in an order whose beginnings are spread as evenly as the whole, for a first load: neighbours in a folder
    are like each other. It is van der Corput's: the places by their binary digits from the last to the first."""
    if len(files) <= FEW_FILES:
        return list(files)
    bits = (len(files) - 1).bit_length()
    return [files[n] for n in sorted(range(len(files)), key=lambda n: f"{n:0{bits}b}"[::-1])]


def kept_length(connection: Conn, collection: Collection) -> float | None:
    """The mean length to make vectors with; it does not change before the transaction ends.

    None when it is not fixed yet: then this transaction is the only one that stores passages.
    """
    known = _length(connection, collection, "length_keep")
    return _length(connection, collection, "length_take") if known is None else known


def settled_length(connection: Conn, collection: Collection) -> float | None:
    """Fix the mean length when enough is stored to know it, and restate what is stored; None when it is not enough.

    For a transaction to which `kept_length` has given None.
    """
    count = fetch_one(connection, "chunk_count") or {}
    return _restate(connection, collection) if count["canonical"] >= SETTLED_PASSAGES else None


def restate_if_drifted(database: Database, collection: Collection, changed_rows: int) -> bool:
    """After `changed_rows` came or went: make all vectors anew if the mean length has moved too far, or was never
    fixed; whether that was done. The caller holds the lock of lexemes_lock.sql."""
    with database.owner(collection.schema_name) as connection:
        stored = _length(connection, collection, "length_get")
        if not changed_rows and stored is not None:
            return False
        passages = (fetch_one(connection, "chunk_count") or {})["canonical"]
        if not passages:
            return False
        if stored is not None:
            sampled = fetch_one(connection, "length_sample", {"step": 1 + passages // SAMPLE_PASSAGES}) or {}
            most = FIRST_LOAD_DRIFT if changed_rows >= passages / 2 else LENGTH_DRIFT
            if not sampled["avg_length"] or abs(math.log(float(sampled["avg_length"]) / stored)) <= most:
                return False
        _length(connection, collection, "length_take")
        return _restate(connection, collection) is not None


def _length(connection: Conn, collection: Collection, statement: str) -> float | None:
    row = fetch_one(connection, statement, {"collection": collection.name})
    return None if row is None else row["avg_length"]


def _restate(connection: Conn, collection: Collection) -> float | None:
    """The true mean length, with which all vectors are made now; None where no passage has a word."""
    measured = fetch_one(connection, "length_measure") or {}
    if not measured["avg_length"]:
        return None
    length = float(measured["avg_length"])
    execute(connection, "length_set", {"name": collection.name, "avg_length": length})
    execute(connection, "bm25_restate", {"avg_length": length})
    return length
