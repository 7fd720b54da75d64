"""The server: what a test can break is found and cured as printed; versions, clocks, memory and disks are given."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_server.db import fetch_one
from agent_server.doctor import server
from agent_server.settings import Settings
from tests.doctor.ground import Ground
from tests.doors.conftest import Kb

NOW = datetime(2026, 3, 29, 12, tzinfo=UTC)
GIB = 1024**3
SERVER = {"database": 'a"b', "maintenance_bytes": 64 * 1024**2, "buffer_bytes": GIB, "workers": 2}
ROOM = {"largest_bytes": GIB // 32, "total_bytes": GIB // 16}


DAMAGES = {
    "too little memory for a build": (
        "build memory",
        [
            "INSERT INTO kb.vector_cache SELECT '\\x01', NULL WHERE false",
            "ALTER DATABASE \"{database}\" SET maintenance_work_mem = '64kB'",
            "CREATE TABLE wide (v vector(1500))",
            "INSERT INTO wide SELECT array_fill(n, ARRAY[1500]) FROM generate_series(1, 20) n",
            "CREATE INDEX ON wide USING hnsw (v vector_l2_ops)",
        ],
    ),
    "a migration behind": ("migrations", ["UPDATE public.schema_version SET version_num = '0004'"]),
}


@pytest.mark.parametrize(("name", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_a_server_that_is_set_up_badly_is_found_and_cured_as_printed(
    ground: Ground, name: str, damage: list[str]
) -> None:
    ground.break_by_sql(damage)
    ground.cured_of(name)


def test_an_empty_database_is_found_and_cured_as_printed(ground: Ground) -> None:
    role = ground.reader
    ground.database.close()
    ground.sql(
        f'DROP OWNED BY "{role}"',
        f'DROP ROLE "{role}"',
        "DROP SCHEMA kb, kb_finance CASCADE",
        "DROP TABLE public.schema_version",
        "DROP EXTENSION vector CASCADE",
    )
    assert {name: c["cure"] for name, c in ground.findings().items()} == {
        "pgvector": "kb init",
        "migrations": "kb init",
    }
    ground.cured_of("migrations")


def test_a_server_that_does_not_answer_is_a_finding_and_not_a_crash(
    plain_kb: Kb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    said = plain_kb("doctor", "--json")
    assert said.code == 1
    assert [c["name"] for c in said.json["checks"]] == ["postgres"]


def test_a_server_that_is_too_old_is_an_error() -> None:
    assert server.check_postgres(160000).status == "ok"
    assert server.check_postgres(150007).status == "error"
    assert server.check_pgvector("0.8.1").status == "ok"
    assert server.check_pgvector("0.7.4").cure == "kb db psql -c 'ALTER EXTENSION vector UPDATE'"
    assert server.check_pgvector("").cure == "kb init"


def test_a_database_of_a_newer_program_is_not_to_be_migrated_by_this_one() -> None:
    found = server.check_migrations("0009", "0005")
    assert found.status == "error"
    assert "newest" in found.cure


@pytest.mark.parametrize(("drift_s", "status"), [(0, "ok"), (-4, "ok"), (20, "warn"), (-20, "warn"), (3600, "error")])
def test_clocks_that_differ_are_found(drift_s: int, status: str) -> None:
    assert server.check_clock(NOW + timedelta(seconds=drift_s), NOW).status == status


def test_memory_that_suffices_is_well_and_each_kind_that_does_not_is_found() -> None:
    def found(shm: int | None = GIB, room: dict[str, int] = ROOM, **changed: int) -> set[str]:
        return {c.name for c in server.check_memory(SERVER | changed, room, shm) if c.status == "warn"}

    assert found() == set()
    assert found(maintenance_bytes=1024**2) == {"build memory"}
    assert found(shm=64 * 1024, workers=2) == {"shared memory"}
    assert found(shm=64 * 1024, workers=0) == found(shm=None) == set()
    assert found(room={"largest_bytes": 1, "total_bytes": 2 * GIB}) == {"buffers"}


def test_too_little_shared_memory_is_cured_as_printed(ground: Ground) -> None:
    def measured() -> dict[str, Any]:
        with ground.database.owner_autocommit() as connection:
            return (fetch_one(connection, "doctor_server") or {}) | {"maintenance_bytes": GIB}

    found = [c for c in server.check_memory(measured(), ROOM, 64 * 1024) if c.status != "ok"]
    assert [c.name for c in found] == ["shared memory"]
    ground.type(found[0].cure)
    assert [c for c in server.check_memory(measured(), ROOM, 64 * 1024) if c.status != "ok"] == []


@pytest.mark.parametrize(("free", "status"), [(10 * GIB, "ok"), (GIB // 2, "warn"), (GIB // 8, "error"), (None, "ok")])
def test_a_disk_that_runs_full_is_found(free: int | None, status: str) -> None:
    machine = server.Machine(None, Path("/data"), free)
    assert server.check_disk(machine, ROOM).status == status


def test_the_machine_of_another_host_is_not_taken_for_this_one(settings: Settings) -> None:
    far = settings.model_copy(update={"database_url": type(settings.database_url)("postgresql://kb@db.example.org/kb")})
    row = {"shared_memory": "posix", "data_directory": "/"}
    assert server.look_at_machine(far, row) == server.Machine(None, None, None)
    near = server.look_at_machine(settings, row)
    assert near.disk_free_bytes
    assert server.look_at_machine(settings, row | {"shared_memory": "mmap"}).shared_memory_free_bytes is None
