"""One Postgres a run, one migrated template database, one clone a test.

KB_TEST_DATABASE_URL (a role that may create databases and roles, and the vector extension) if it is set; else a
container when Docker answers and testcontainers is installed; else the embedded server. The environment of the
person who runs the tests never reaches them.
"""

import contextlib
import os
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import hypothesis
import psycopg
import pytest
from psycopg import conninfo, sql

from agent_server.catalog import ensure_roles, list_collections, reader_role_name
from agent_server.db import Database, migrate
from agent_server.postgres import EmbeddedServer
from agent_server.settings import Settings, load_settings
from tests.hash_embedder import HashEmbedder

TEST_KEYS = ("KB_TEST_DATABASE_URL", "KB_TEST_DATA", "KB_TEST_OLLAMA_URL")
_SWEPT = (
    "KB_",
    "OLLAMA_",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
)
for key in [k for k in os.environ if k.startswith(_SWEPT) and k not in TEST_KEYS]:
    del os.environ[key]

# Else every worker, and every `kb` that a test starts, would compile the project anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The same examples each time: a run fails for what was changed. `--hypothesis-profile default` looks for new ones.
hypothesis.settings.register_profile("steady", derandomize=True, database=None)
hypothesis.settings.load_profile("steady")

SECRET = b"tests"
#: Room that the servers of all workers need for their databases and logs.
MEMORY_BYTES = 8 * 2**30


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest test first: begun among the last, it would be waited for with one core at rest."""
    items.sort(key=lambda item: item.path.name != "test_quality_gate.py")


@dataclass(frozen=True)
class Server:
    """A Postgres for one run: DSN of a role that may create databases, and of the owner of a database."""

    admin_dsn: str
    template: str

    def dsn(self, database: str) -> str:
        return conninfo.make_conninfo(self.admin_dsn, dbname=database)


@contextlib.contextmanager
def _some_postgres() -> Iterator[str]:
    given = os.environ.get("KB_TEST_DATABASE_URL")
    if given:
        yield given
        return
    with contextlib.suppress(ImportError):
        from testcontainers.postgres import PostgresContainer  # noqa: PLC0415  not installed everywhere

        if _docker_answers():
            with PostgresContainer("pgvector/pgvector:pg17", driver=None) as container:
                yield container.get_connection_url()
            return
    home = Path(tempfile.mkdtemp(prefix="kb-tests-", dir=_quick_folder()))
    home.chmod(0o755)  # the server's own folders below are closed; its user must get to them
    server = EmbeddedServer(home)
    try:
        server.start()
        admin_dsn = server.dsn_for("postgres", "postgres")
        with psycopg.connect(admin_dsn, autocommit=True) as admin:
            # The tests kill clients, never the machine: what they wrote need not outlive its power. A database lives
            # for a second, and what vacuuming does is tested by vacuuming.
            admin.execute("ALTER SYSTEM SET fsync = off")
            admin.execute("ALTER SYSTEM SET full_page_writes = off")
            admin.execute("ALTER SYSTEM SET autovacuum = off")
            admin.execute("ALTER SYSTEM SET scram_iterations = 1")
            admin.execute("SELECT pg_reload_conf()")
        yield admin_dsn
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)


def _quick_folder() -> str | None:
    """Where a thousand databases come and go: in memory where there is room for them (a container may have 64 MB)."""
    memory = Path("/dev/shm")
    if memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > MEMORY_BYTES:
        return str(memory)
    return "/tmp" if Path("/tmp").is_dir() else None


def _docker_answers() -> bool:
    import docker  # noqa: PLC0415  not installed everywhere

    try:
        docker.from_env(timeout=2).ping()
    except Exception:  # noqa: BLE001  whatever is wrong with it, it does not answer
        return False
    return True


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with _some_postgres() as admin_dsn:
        template = f"kb_template_{uuid.uuid4().hex[:8]}"
        with psycopg.connect(admin_dsn, autocommit=True) as admin:
            admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(template)))
        found = Server(admin_dsn, template)
        with Database(found.dsn(template), SECRET) as database:
            migrate(database)
        yield found
        with psycopg.connect(admin_dsn, autocommit=True) as admin:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(template)))


Builder = Callable[[Database], object]


class Stocks:
    """Databases with content that many tests start from: each is made once a worker, then cloned."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._admin = psycopg.connect(server.admin_dsn, autocommit=True)  # one for all: a new session costs more
        self._made: dict[Builder | None, str] = {None: server.template}

    def template(self, build: Builder | None) -> str:
        if build not in self._made:
            name = f"kb_stock_{uuid.uuid4().hex[:8]}"
            self._made[build] = name
            self._create(name, self._server.template)
            assert build is not None
            with Database(self._server.dsn(name), SECRET) as database:
                build(database)
        return self._made[build]

    def clone(self, name: str, build: Builder | None) -> None:
        """A database of what `build` makes, with reader roles of its own."""
        self._create(name, self.template(build))
        if build is None:
            return
        with Database(self._server.dsn(name), SECRET) as database:
            with database.owner() as connection:
                for collection in list_collections(connection):
                    role = reader_role_name(name, collection.name)
                    connection.execute(
                        "UPDATE kb.collections SET reader_role = %s WHERE name = %s", (role, collection.name)
                    )
            ensure_roles(database)

    def drop(self, name: str) -> None:
        self._admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
        own = f"kb_read_{name}_"  # so readers' roles are named, in full for names as short as these
        roles = self._admin.execute("SELECT rolname FROM pg_roles WHERE starts_with(rolname, %s)", (own,)).fetchall()
        for (role,) in roles:
            self._admin.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))

    def close(self) -> None:
        for build, name in self._made.items():
            if build is not None:
                self.drop(name)
        self._admin.close()

    def _create(self, name: str, template: str) -> None:
        self._admin.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )


@pytest.fixture(scope="session")
def stocks(server: Server) -> Iterator[Stocks]:
    made = Stocks(server)
    yield made
    made.close()


@pytest.fixture(scope="session")
def stock() -> Builder | None:
    """What a database holds when a test gets it; a module says otherwise by a fixture of this name and scope.

    The same function must come back each time: it is the key under which the content is kept.
    """
    return None


@pytest.fixture
def database_dsn(stocks: Stocks, server: Server, stock: Builder | None) -> Iterator[str]:
    """DSN of a fresh migrated database with what `stock` makes, dropped afterwards with its reader roles."""
    name = f"kb_test_{uuid.uuid4().hex[:10]}"
    stocks.clone(name, stock)
    yield server.dsn(name)
    stocks.drop(name)


@pytest.fixture
def database(database_dsn: str) -> Iterator[Database]:
    with Database(database_dsn, SECRET) as opened:
        yield opened


@pytest.fixture
def settings(database_dsn: str, tmp_path: Path) -> Settings:
    """Settings for this test's database and a home of its own."""
    dsn = conninfo.conninfo_to_dict(database_dsn)
    url = database_dsn if urlsplit(database_dsn).scheme else _as_url(dsn)
    environ = {"KB_DATABASE_URL": url, "KB_HOME": str(tmp_path / "home"), "KB_READER_SECRET": SECRET.decode()}
    return load_settings(environ, dotenv=tmp_path / "none")


@pytest.fixture
def hash_embedder() -> HashEmbedder:
    return HashEmbedder()


def _as_url(parts: dict[str, object]) -> str:
    user, password = parts.get("user", ""), parts.get("password")
    login = f"{user}:{password}@" if password else (f"{user}@" if user else "")
    host = str(parts.get("host", ""))
    if host.startswith("/"):
        return f"postgresql://{login}/{parts['dbname']}?host={host}"
    return f"postgresql://{login}{host}:{parts.get('port', 5432)}/{parts['dbname']}"
