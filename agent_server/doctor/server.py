"""The server: versions, schema, clock, memory, disk."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from psycopg import conninfo

from agent_server.db import Conn, current_revision, head_revision
from agent_server.doctor.check import Check, cure, psql, quoted, size
from agent_server.settings import Settings

LEAST_POSTGRES = 160000
LEAST_PGVECTOR = (0, 8)
#: Times of traces, nights and files are compared with each other: clocks that differ by more mix up their order.
CLOCK_DRIFT_S = 5.0
CLOCK_WRONG_S = 60.0
LEAST_FREE_BYTES = 256 * 1024**2
LOW_FREE_BYTES = 1024**3
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  where Linux keeps it


# -- versions ---------------------------------------------------------------------------------------------------


def check_versions(connection: Conn, server: Mapping[str, Any]) -> Iterator[Check]:
    """Server, extension, migrations: later checks need all of them. `server` is the row of doctor_server.sql."""
    yield check_postgres(connection.info.server_version)
    yield check_pgvector(server["pgvector"])
    yield check_migrations(current_revision(connection), head_revision())


def check_postgres(version: int) -> Check:
    """`version` as libpq numbers it: 160004."""
    text = f"version {version // 10000}.{version % 10000}"
    if version >= LEAST_POSTGRES:
        return Check("postgres", "ok", text)
    found = f"{text}; 16 or newer is needed"
    return Check("postgres", "error", found, "Upgrade the server that KB_DATABASE_URL names.")


def check_pgvector(version: str) -> Check:
    """`version` as the catalogue has it, '' when the extension is not there."""
    if not version:
        return Check("pgvector", "error", "the extension is not installed in this database", cure("init"))
    if tuple(int(n) for n in version.split(".")[:2]) >= LEAST_PGVECTOR:
        return Check("pgvector", "ok", f"version {version}")
    found = f"version {version}; 0.8 or newer is needed, on the server first, then in this database"
    return Check("pgvector", "error", found, psql("ALTER EXTENSION vector UPDATE"))


def check_migrations(at: str | None, head: str) -> Check:
    if at == head:
        return Check("migrations", "ok", f"at {at}, the newest")
    if at is not None and at > head:
        found = f"at {at}, which this program does not know; it needs {head}"
        return Check("migrations", "error", found, "Install the newest Knowledge Bank.")
    return Check("migrations", "error", f"at {at or 'none'}; {head} is needed", cure("init"))


# -- clock ------------------------------------------------------------------------------------------------------


def check_clock(database_now: datetime, host_now: datetime) -> Check:
    """Both times are aware; the way to the server counts as drift, so that little of it says nothing."""
    drift_s = abs((database_now - host_now).total_seconds())
    if drift_s <= CLOCK_DRIFT_S:
        return Check("clock", "ok", "the database's and this host's agree")
    found = f"the database's and this host's differ by {drift_s:.0f} s: the order of nights and traces is not true"
    help_ = "Have both clocks set by NTP (`timedatectl set-ntp true`)."
    return Check("clock", "error" if drift_s > CLOCK_WRONG_S else "warn", found, help_)


# -- memory and disk --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Machine:
    """What can be seen of the machine that the server runs on; None where it is another one."""

    shared_memory_free_bytes: int | None
    disk: Path | None
    disk_free_bytes: int | None


def look_at_machine(settings: Settings, server: Mapping[str, Any]) -> Machine:
    """`server` is the row of doctor_server.sql."""
    if not _is_here(settings):
        return Machine(None, None, None)
    data = settings.home if settings.database_url is None else Path(server["data_directory"] or "/nowhere")
    uses_shm = server["shared_memory"] == "posix"
    free = _free_bytes(data)
    return Machine(_free_bytes(SHARED_MEMORY) if uses_shm else None, None if free is None else data, free)


def _is_here(settings: Settings) -> bool:
    if settings.database_url is None:
        return True
    host = str(conninfo.conninfo_to_dict(settings.database_url.get_secret_value()).get("host") or "")
    return host.startswith("/") or host in ("", "localhost", "127.0.0.1", "::1")


def _free_bytes(path: Path) -> int | None:
    with suppress(OSError):
        return shutil.disk_usage(path).free
    return None


def check_memory(server: Mapping[str, Any], graphs: Mapping[str, Any], shm_free_bytes: int | None) -> Iterator[Check]:
    """`server` and `graphs` are rows of doctor_server.sql and doctor_graphs.sql."""
    needed, database = graphs["largest_bytes"], quoted(server["database"])
    name = "build memory"
    if server["maintenance_bytes"] < needed:
        found = (
            f"the largest dense index is {size(needed)}, maintenance_work_mem {size(server['maintenance_bytes'])}: "
            "building it anew takes many times as long"
        )
        wanted = f"{2 * needed // 1024**2 + 1}MB"
        yield Check(name, "warn", found, psql(f"ALTER DATABASE {database} SET maintenance_work_mem = '{wanted}'"))
    else:
        yield Check(name, "ok", f"maintenance_work_mem {size(server['maintenance_bytes'])}, enough for {size(needed)}")
    if shm_free_bytes is not None and server["workers"] and shm_free_bytes < needed:
        found = (
            f"{size(shm_free_bytes)} are free in {SHARED_MEMORY}, a parallel build of the largest dense index needs "
            f"{size(needed)}: it fails and is begun again on one core"
        )
        statement = f"ALTER DATABASE {database} SET max_parallel_maintenance_workers = 0"
        yield Check("shared memory", "warn", found, psql(statement))
    yield check_buffers(server["buffer_bytes"], graphs["total_bytes"])


def check_buffers(buffer_bytes: int, total_bytes: int) -> Check:
    """Searches walk at random through the dense indexes: what is not in memory is read page by page."""
    if total_bytes <= buffer_bytes:
        return Check("buffers", "ok", f"shared_buffers {size(buffer_bytes)}, dense indexes {size(total_bytes)}")
    found = (
        f"the dense indexes are {size(total_bytes)}, shared_buffers {size(buffer_bytes)}: searches wait for pages; "
        "the setting takes a restart"
    )
    wanted = f"{total_bytes * 5 // 4 // 1024**2 + 1}MB"
    return Check("buffers", "warn", found, psql(f"ALTER SYSTEM SET shared_buffers = '{wanted}'"))


def check_disk(machine: Machine, graphs: Mapping[str, Any]) -> Check:
    """Room for a second copy of the largest dense index, which building it anew takes, and for what comes in."""
    if machine.disk is None or machine.disk_free_bytes is None:
        return Check("disk", "ok", "not to be seen from here")
    free, wanted = machine.disk_free_bytes, max(LOW_FREE_BYTES, 3 * graphs["largest_bytes"])
    if free >= wanted:
        return Check("disk", "ok", f"{size(free)} free under {machine.disk}")
    found = f"{size(free)} free under {machine.disk}; {size(wanted)} are wanted to rebuild indexes and take files in"
    return Check(
        "disk",
        "error" if free < LEAST_FREE_BYTES else "warn",
        found,
        f"Make room on the disk that holds {machine.disk}.",
    )
