"""The plan before the work: what a sync will do to each file, decided by hashes alone."""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent_server.ingest import authority
from agent_server.ingest.store import LedgerRow
from agent_server.models import FileStatus

Action = Literal["index", "unchanged", "rename", "remove", "skip"]

#: Outcomes that only another file, another pipeline or another model can change.
SETTLED = frozenset(FileStatus) - {FileStatus.FAILED, FileStatus.REMOVED}


@dataclass(frozen=True, slots=True)
class Found:
    """A file in the folder: where it is, what it is called there, and the hash of its bytes."""

    source: str
    path: Path
    sha256: str
    size_bytes: int
    problem: str = ""  #: why it cannot be read at all: a link, no permission


@dataclass(frozen=True, slots=True)
class Step:
    """One file's part of a plan. `old` is its ledger row, or the one it is renamed from."""

    action: Action
    source: str
    found: Found | None = None
    old: LedgerRow | None = None
    reason: str = ""


def walk(folder: Path) -> list[Path]:
    """Files below `folder` in a fixed order. Hidden files, editors' backups and the authority rules are no documents;
    links are listed, not followed."""
    out: list[Path] = []
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        linked = [f for f in folders if (Path(here) / f).is_symlink()]
        folders[:] = [f for f in folders if f not in linked]
        for name in sorted([*names, *linked]):
            if not name.startswith((".", "~$")) and not name.endswith("~") and name != authority.FILE_NAME:
                out.append(Path(here) / name)
    return out


def look(path: Path, source: str) -> Found:
    """Hash one file; a link or an unreadable file becomes a Found with its problem."""
    if path.is_symlink():
        return Found(source, path, "", 0, "a symbolic link: links are not followed")
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return Found(source, path, "", 0, "not a regular file")  # opening a FIFO would wait for ever
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Found(source, path, digest, path.stat().st_size)
    except OSError as error:
        return Found(source, path, "", 0, f"cannot be read: {error.strerror}")


def name_taken(root: str) -> str:
    """Why a file with the name of another root's file is not indexed, and what to do."""
    return f"the name belongs to a file of root {root!r}; ingest a folder above both, or use another collection"


def make_plan(
    found: Iterable[Found],
    ledger: Mapping[str, LedgerRow],
    *,
    root: str,
    pipeline_version: str,
    in_scope: Sequence[str] | None,
    retry: frozenset[FileStatus] = frozenset(),
) -> list[Step]:
    """What to do with each file found, and with those of the ledger that are no longer there.

    `in_scope` lists the ledger's sources that this sync is about; None: no file may be found missing (single files
    were named). A new file with the bytes of a missing one is that file under a new name. Files whose status is in
    `retry` are read again although nothing about them has changed.
    """
    there = {f.source: f for f in found}
    missing = [s for s in in_scope or () if s not in there and ledger[s].status != FileStatus.REMOVED]
    movable: dict[str, list[str]] = {}
    for source in missing:
        row = ledger[source]
        if row.status in (FileStatus.INDEXED, FileStatus.PARTIAL) and row.pipeline_version == pipeline_version:
            movable.setdefault(row.sha256, []).append(source)
    steps: list[Step] = []
    moved: set[str] = set()
    for source, file in there.items():
        row_there = ledger.get(source)
        if row_there is not None and row_there.status in retry and row_there.root == root and not file.problem:
            steps.append(Step("index", source, file, row_there))
            continue
        steps.append(_step(file, row_there, root, pipeline_version, movable, moved, ledger))
    steps.extend(Step("remove", s, old=ledger[s]) for s in missing if s not in moved)
    return steps


def _step(
    file: Found,
    row: LedgerRow | None,
    root: str,
    pipeline_version: str,
    movable: Mapping[str, list[str]],
    moved: set[str],
    ledger: Mapping[str, LedgerRow],
) -> Step:
    if row is not None and row.root != root and row.status != FileStatus.REMOVED:
        return Step("skip", file.source, file, row, name_taken(row.root))
    if file.problem:
        return Step("skip", file.source, file, row, file.problem)
    if row is not None and row.status in SETTLED:
        if row.sha256 == file.sha256 and row.pipeline_version == pipeline_version:
            return Step("unchanged", file.source, file, row)
        return Step("index", file.source, file, row)
    candidates = [s for s in movable.get(file.sha256, []) if s not in moved]
    if candidates and (row is None or row.status == FileStatus.REMOVED):
        moved.add(candidates[0])
        return Step("rename", file.source, file, ledger[candidates[0]])
    return Step("index", file.source, file, row)
