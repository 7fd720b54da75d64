"""The embedded server: started on demand, stopped without a trace, and no folder of anybody's opened."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from agent_server.db import Database, reader_secret
from agent_server.errors import ReaderLoginFailed, SettingsError
from agent_server.postgres import EmbeddedServer
from agent_server.settings import load_settings

pytestmark = pytest.mark.skipif(os.environ.get("KB_TEST_DATABASE_URL") is not None, reason="another Postgres is used")


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="kb-home-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _modes(path: Path) -> dict[str, int]:
    return {str(p): p.stat().st_mode for p in [path, *path.parents]}


def test_the_server_starts_once_answers_and_stops(home: Path) -> None:
    before = _modes(home)
    server = EmbeddedServer(home)
    assert not server.status().running
    server.start()
    try:
        assert server.status().running
        pid = server.status().pid
        EmbeddedServer(home).start()
        assert server.status().pid == pid
        with psycopg.connect(server.dsn) as connection:
            row = connection.execute("SELECT current_user, current_database()").fetchone()
        assert row == ("kb_owner", "knowledge_bank")
    finally:
        assert server.stop()
    assert not server.status().running
    assert not server.stop()
    assert _modes(home) == before
    assert (home / "postgres").stat().st_mode & 0o077 == 0
    assert (home / "run").stat().st_mode & 0o077 == 0


def test_roles_other_than_the_owner_need_a_password(home: Path) -> None:
    server = EmbeddedServer(home)
    server.start()
    try:
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE ROLE kb_read_x LOGIN")
        with (
            Database(server.dsn, b"s") as database,
            pytest.raises(ReaderLoginFailed),
            database.reader("kb_read_x", "x"),
        ):
            pass
    finally:
        server.stop()


def test_a_long_home_gets_a_short_socket_folder() -> None:
    server = EmbeddedServer(Path("/tmp") / ("very-long-" * 12))
    assert len(str(server.socket_dir / ".s.PGSQL.5432")) <= 100


def test_servers_that_start_at_once_on_a_new_machine_make_their_user_once(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two `useradd` side by side left a user number that nobody had, and every test of a first `make test` failed."""
    made = home / "made"
    useradd = home / "useradd"
    useradd.write_text(f"#!/bin/sh\nmkdir {home}/at-work || exit 1\necho $6 >>{made}\nrmdir {home}/at-work\n")
    useradd.chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")

    def getpwnam(name: str) -> str:
        if not made.exists():
            raise KeyError(name)
        return name

    monkeypatch.setattr("pwd.getpwnam", getpwnam)
    with ThreadPoolExecutor(4) as pool:
        started = [pool.submit(EmbeddedServer(home / str(n))._make_user) for n in range(4)]
    assert [future.exception() for future in started] == [None] * 4
    assert made.read_text().split() == ["knowledge_bank"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts the server as another user")
def test_root_is_told_when_the_servers_user_cannot_reach_the_data() -> None:
    closed = Path(tempfile.mkdtemp(prefix="kb-closed-"))  # 0700
    try:
        with pytest.raises(SettingsError, match="cannot reach"):
            EmbeddedServer(closed / "home").start()
        assert closed.stat().st_mode & 0o777 == 0o700
    finally:
        shutil.rmtree(closed)


def test_the_reader_secret_is_made_once_and_closed_to_others(tmp_path: Path) -> None:
    settings = load_settings({"KB_HOME": str(tmp_path / "home")}, tmp_path / "none")
    first = reader_secret(settings)
    assert reader_secret(settings) == first
    assert len(first) == 32
    assert (tmp_path / "home" / "reader_secret").stat().st_mode & 0o077 == 0


def test_a_reader_secret_that_is_none_is_refused_with_the_cure(tmp_path: Path) -> None:
    settings = load_settings({"KB_HOME": str(tmp_path)}, tmp_path / "none")
    (tmp_path / "reader_secret").write_text("")
    with pytest.raises(SettingsError, match="holds no secret") as caught:
        reader_secret(settings)
    assert "kb db roles" in caught.value.hint


def test_a_home_with_blanks_and_quotes_in_its_name_works() -> None:
    folder = Path(tempfile.mkdtemp(prefix="kb o'home & co% "))
    folder.chmod(0o755)
    server = EmbeddedServer(folder)
    try:
        server.start()
        with psycopg.connect(server.dsn) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
