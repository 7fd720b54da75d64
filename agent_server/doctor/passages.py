"""Passages: vectors, copies, term counts, lengths."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from agent_server.catalog import Collection
from agent_server.doctor.check import FIX, Check, cure

#: As at the end of a load: mean lengths that differ by less do not move BM25.
LENGTH_DRIFT = 0.10


def check_vectors(name: str, row: Mapping[str, Any]) -> Check:
    """`row` is that of doctor_passages.sql."""
    searched, without, zero, refused = row["searched"], row["without_vector"], row["zero"], row["refused"]
    if zero:
        return Check(f"{name} vectors", "error", f"{zero} of {searched} are zero: no question is near them", FIX)
    if without:
        found = f"{without} of {searched} passages have none: only their words find them"
        return Check(f"{name} vectors", "error" if without == searched else "warn", found, FIX)
    if refused:
        return Check(f"{name} vectors", "ok", f"{searched} searched passages; the model refused {refused} of them")
    return Check(f"{name} vectors", "ok", f"{searched} searched passages, each with one")


def check_width(collection: Collection, row: Mapping[str, Any]) -> Check:
    """`row` is that of doctor_passages.sql."""
    name, width = f"{collection.name} width", row["width"]
    if width == collection.dimensions:
        return Check(name, "ok", f"{width} numbers a vector")
    found = f"vectors are {width or 'of any number'} wide, the collection's model {collection.dimensions}"
    return Check(name, "error", found, cure("reembed", collection.name, "--again"))


def check_copies(name: str, broken: Sequence[Mapping[str, Any]]) -> Check:
    """`broken` are rows of doctor_copies.sql."""
    if not broken:
        return Check(f"{name} copies", "ok", "one passage stands for each text")
    lost = sum(1 for r in broken if not r["standing"])
    found = f"{lost} texts have no passage that is searched, {len(broken) - lost} have several or only retired ones"
    return Check(f"{name} copies", "error", found, FIX)


def check_counts(name: str, row: Mapping[str, Any], what: str = "passages") -> Check:
    """`row` is that of doctor_lexemes.sql, or of doctor_claim_lexemes.sql for `what` = "claims"."""
    title = f"{name} term counts" if what == "passages" else f"{name} {what}' term counts"
    if row["wrong"]:
        example = f", such as {row['example']!r}" if row["example"] else ""
        found = f"{row['wrong']} are wrong{example}; {row['stated']} {what} stated, {row['counted']} counted"
        return Check(title, "error", found, FIX)
    if row["pending"]:
        return Check(title, "warn", f"true, with {row['pending']} changes not merged yet", FIX)
    return Check(title, "ok", f"true over {row['counted']} {what}")


def check_length(collection: Collection, row: Mapping[str, Any]) -> Check:
    """`row` is that of length_measure.sql: the mean length that the BM25 vectors should be made with."""
    name, stored, measured = f"{collection.name} mean length", collection.avg_length, row["avg_length"]
    if not measured:
        return Check(name, "ok", "nothing to measure yet")
    if stored is None:
        found = f"never set, {float(measured):.1f} measured: the first load was not finished"
        return Check(name, "error", found, FIX)
    if abs(math.log(float(measured) / stored)) > LENGTH_DRIFT:
        found = f"{stored:.1f} stored, {float(measured):.1f} measured: word ranking leans to long or short passages"
        return Check(name, "warn", found, FIX)
    return Check(name, "ok", f"{stored:.1f} words, {float(measured):.1f} measured")
