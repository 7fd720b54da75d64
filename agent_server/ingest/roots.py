"""Folders that were ingested, and the names of the files below them."""

from dataclasses import dataclass
from pathlib import Path

from agent_server.db import Conn, execute, fetch_all
from agent_server.errors import InvalidArgument
from agent_server.ingest import plan, store
from agent_server.ingest.plan import Step
from agent_server.ingest.validate import source_name
from agent_server.models import FileStatus


@dataclass(frozen=True, slots=True)
class Scope:
    """One path of a run: the root that it belongs to, and what is to be done below it."""

    root: str
    root_path: Path
    steps: tuple[Step, ...]


def scope(connection: Conn, given: Path, pipeline_version: str, retry: frozenset[FileStatus] = frozenset()) -> Scope:
    """What a sync of `given` will do. A folder not seen before is recorded as a root.

    Only a folder can show that files are gone; a single file removes nothing. `retry`: see `make_plan`.
    Raises InvalidArgument for a path that is not there.
    """
    if not given.exists():
        raise InvalidArgument("path", f"{given} does not exist", hint="Name a folder or a file.")
    path = given.resolve()
    root, root_path = _root_of(connection, path)
    ledger = store.read_ledger(connection)
    files = plan.walk(path) if path.is_dir() else [path]
    found = [plan.look(file, source_name(file, root_path)) for file in files]
    in_scope = None
    if path.is_dir():
        below = "" if path == root_path else source_name(path, root_path) + "/"
        in_scope = [s for s, row in ledger.items() if row.root == root and s.startswith(below)]
    steps = plan.make_plan(found, ledger, root=root, pipeline_version=pipeline_version, in_scope=in_scope, retry=retry)
    return Scope(root, root_path, tuple(steps))


def _holds_files_of(connection: Conn, root: str, folder: Path) -> bool:
    """Whether at least half of a root's files stand in `folder`: then it is that root, moved here or checked out a
    second time. Any other folder of the same name would have the root's files removed."""
    sources = [
        row.source
        for row in store.read_ledger(connection).values()
        if row.root == root and row.status != FileStatus.REMOVED
    ]
    return 2 * sum((folder / source).exists() for source in sources) >= max(1, len(sources))


def _root_of(connection: Conn, path: Path) -> tuple[str, Path]:
    """The recorded root that holds `path`; a new one is recorded otherwise, or one that has moved."""
    known = {row["root"]: Path(row["path"]) for row in fetch_all(connection, "root_list")}
    for root, root_path in known.items():
        if path == root_path:
            execute(connection, "root_whole", {"root": root, "whole": True})
        if path == root_path or root_path in path.parents:
            return root, root_path
    folder = path if path.is_dir() else path.parent
    name = folder.name or "root"
    if name in known and not _holds_files_of(connection, name, folder):
        name = next(f"{name}-{n}" for n in range(2, len(known) + 3) if f"{name}-{n}" not in known)
    execute(connection, "root_upsert", {"root": name, "path": str(folder)})
    if name not in known or path.is_dir():
        execute(connection, "root_whole", {"root": name, "whole": path.is_dir()})
    return name, folder
