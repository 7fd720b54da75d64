"""Vectors for Postgres in binary: as text each number costs more than all else that storing a passage asks of Python.

The form is Postgres' own of a one-dimensional array (`array_recv`) of pgvector's `halfvec` (`halfvec_recv`: width and a
zero as int16, then half-precision numbers), all big-endian.
"""

import struct
from dataclasses import dataclass

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format
from psycopg.types import TypeInfo

from agent_server.db import Conn
from agent_server.embedding import Vectors
from agent_server.errors import MigrationNeeded

_NULL = struct.pack("!i", -1)


@dataclass(frozen=True, slots=True)
class HalfVectors:
    """A value for a placeholder of type `halfvec[]`."""

    array: bytes


class _HalfVectorsDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: HalfVectors) -> Buffer:
        return obj.array


psycopg.adapters.register_dumper(HalfVectors, _HalfVectorsDumper)


def half_vectors(connection: Conn, vectors: Vectors | None, count: int) -> HalfVectors:
    """`vectors`, (n, d), as an array of `count` halfvecs in their order; NULL for a row that is not finite, and for
    every row without vectors. Raises ValueError unless the counts agree."""
    if vectors is not None and len(vectors) != count:
        raise ValueError(f"{len(vectors)} vectors for {count} passages")
    oid = _type_number(connection)
    elements = [_NULL] * count if vectors is None else _elements(vectors)
    has_null = int(_NULL in elements)
    return HalfVectors(struct.pack("!iiIii", 1, has_null, oid, count, 1) + b"".join(elements))


def _type_number(connection: Conn) -> int:
    """The number of `halfvec` in the database of this connection: types of extensions have another one in each."""
    known = connection.adapters.types.get("halfvec") or TypeInfo.fetch(connection, "halfvec")
    if known is None:
        raise MigrationNeeded("the database has no type halfvec", hint="Run `kb doctor`: pgvector is missing.")
    known.register(connection)
    return known.oid


def finite_rows(vectors: Vectors) -> NDArray[np.bool_]:
    """Which rows of (n, d) are vectors, and not the mark of one that is missing."""
    finite: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(vectors), axis=1)
    return finite


def _elements(vectors: Vectors) -> list[bytes]:
    """Each row with its length in bytes before it."""
    head = struct.pack("!ihh", 4 + 2 * vectors.shape[1], vectors.shape[1], 0)
    finite = finite_rows(vectors)
    with np.errstate(over="ignore"):  # Postgres refuses what does not fit, and says so
        halves = vectors.astype(">f2")
    return [head + row.tobytes() if good else _NULL for row, good in zip(halves, finite.tolist(), strict=True)]
