"""Files: the ledger against the passages, and against the folders that it was made from."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agent_server.doctor.check import Check, cure
from agent_server.ingest import plan
from agent_server.ingest.validate import source_name

#: More files are not named one by one in a cure: their whole folder is.
MOST_NAMED = 3
#: A file written this shortly before it was indexed may have been written again in the same tick of its clock.
SAME_MOMENT = timedelta(seconds=2)


def check_ledger(
    name: str, statuses: Mapping[str, int], differ: Sequence[Mapping[str, Any]], roots: dict[str, str]
) -> Check:
    """`statuses` counts files by status, `differ` are rows of doctor_ledger.sql, `roots` name -> folder."""
    if differ:
        first = differ[0]
        found = (
            f"{len(differ)} hold another number of passages than the ledger says, such as {first['source']}: "
            f"{first['held']} instead of {first['stated']}"
        )
        return Check(f"{name} files", "error", found, _again(name, differ, roots))
    told = ", ".join(f"{n} {status}" for status, n in statuses.items()) or "none yet"
    if statuses.get("failed"):
        return Check(
            f"{name} files", "warn", f"{told}: failed ones are tried again", cure("ingest", name, *roots.values())
        )
    if statuses.get("partial"):
        told += f" ({cure('files', name, '--status', 'partial')} says why)"
    return Check(f"{name} files", "ok", told)


def _again(name: str, differ: Sequence[Mapping[str, Any]], roots: dict[str, str]) -> str:
    """Read the files again although their bytes have not changed; those that are gone from their folder go."""
    paths = [Path(roots[row["root"]]) / row["source"] for row in differ]
    if len(paths) > MOST_NAMED or not all(p.is_file() for p in paths):
        paths = [Path(roots[root]) for root in sorted({row["root"] for row in differ})]
    return cure("ingest", name, *map(str, paths), "--again")


def check_folders(
    name: str, ledger: Sequence[Mapping[str, Any]], roots: Sequence[Mapping[str, Any]]
) -> Iterator[Check]:
    """Whether the folders still hold what was indexed, and nothing else where they are kept in step as a whole.

    `ledger` are rows of file_list.sql, `roots` those of root_list.sql. A file is read only when its size or its time of
    change says that it may be another one.
    """
    known = {row["source"] for row in ledger}
    for root in roots:
        rows = [r for r in ledger if r["root"] == root["root"] and r["status"] != "removed" and r["sha256"]]
        if rows:
            yield _check_folder(f"{name} folder {root['root']}", name, Path(root["path"]), rows, root["whole"], known)


def _check_folder(
    title: str, name: str, folder: Path, rows: Sequence[Mapping[str, Any]], whole: bool, known: set[str]
) -> Check:
    if not folder.is_dir():
        found = f"{folder} is not there: {len(rows)} files cannot be compared; where it has moved, name its new place"
        return Check(title, "warn", found, f"{cure('ingest', name)} FOLDER")
    there = {source_name(file, folder): file for file in plan.walk(folder)}
    paths = {r["source"]: there.get(r["source"], folder / r["source"]) for r in rows}
    gone = [source for source, file in paths.items() if not file.is_file()]
    changed = [r["source"] for r in rows if r["source"] not in gone and _has_changed(paths[r["source"]], r)]
    new = sorted(there.keys() - known) if whole else []
    if not gone and not changed and not new:
        return Check(title, "ok", f"{len(rows)} files as they were indexed")
    told = ", ".join([*gone, *changed, *new][:MOST_NAMED])
    found = (
        f"of {len(rows)} files under {folder} {len(gone)} are gone, {len(changed)} changed; {len(new)} are new: {told}"
    )
    if whole:
        return Check(title, "warn", found, cure("ingest", name, str(folder)))
    if gone:
        return Check(title, "warn", found, cure("remove", name, *gone))
    return Check(title, "warn", found, cure("ingest", name, *(str(paths[source]) for source in changed)))


def _has_changed(path: Path, row: Mapping[str, Any]) -> bool:
    try:
        there = path.stat()
    except OSError:
        return True
    if there.st_size == row["size_bytes"]:
        indexed_at: datetime = row["indexed_at"]
        if there.st_mtime < (indexed_at - SAME_MOMENT).timestamp():
            return False
    return str(row["sha256"]) != plan.look(path, row["source"]).sha256
