"""Connections: one pool as the owner, one pool per collection as its reader role, and migrations."""

import contextlib
import hashlib
import hmac
import os
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg import Connection, conninfo, errors
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolTimeout

from agent_server import sql
from agent_server.errors import DatabaseUnavailable, MigrationNeeded, ReaderLoginFailed, SettingsError
from agent_server.postgres import EmbeddedServer
from agent_server.settings import Settings

Conn = Connection[TupleRow]
POOL_SIZE = 4
CONNECT_TIMEOUT_S = 5
SECRET_BYTES = 32
#: libpq gives no SQLSTATE for a refused login: its words are all there is.
_LOGIN_REFUSED = ("password authentication failed", "does not exist", "not permitted to log in", "permission denied")


class Database:
    """Pools over one Postgres database; close it, or use it in `with`.

    The owner's connections ingest, migrate and write traces. Searches of a collection use connections that
    logged in as its reader role: under a stronger session user, one injected SELECT could switch the role back.
    """

    def __init__(self, dsn: str, reader_secret: bytes) -> None:
        self.dsn = dsn
        self._secret = reader_secret
        self._pools: dict[tuple[str, str], ConnectionPool[Conn]] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    @contextlib.contextmanager
    def owner(self, schema: str = "", *, durable: bool = True) -> Iterator[Conn]:
        """A transaction as the owner: committed at the end, rolled back on an exception.

        With `schema`, unqualified names in its statements mean that collection's tables. One that need not be
        `durable` does not wait until it is on disk: a machine that goes down may take it back, whole, with all that
        came after it. The next durable one that writes something makes it so.
        """
        with self._pool("", "", self.dsn).connection() as connection:
            if schema:
                execute(connection, "transaction", {"search_path": search_path(schema), "durable": durable})
            yield connection

    @contextlib.contextmanager
    def owner_autocommit(self, schema: str = "") -> Iterator[Conn]:
        """A connection of its own in autocommit mode, for statements that refuse a transaction and for locks.

        With `schema`, unqualified names in its statements mean that collection's tables. The session's advisory locks
        are free when this returns, as long as the connection stands.
        """
        with self._connect(self.dsn, autocommit=True) as connection:
            if schema:
                connection.execute("SELECT set_config('search_path', %s, false)", (search_path(schema),))
            try:
                yield connection
            finally:
                with contextlib.suppress(psycopg.Error):
                    execute(connection, "locks_release")

    @contextlib.contextmanager
    def reader(self, role: str, schema: str) -> Iterator[Conn]:
        """A read-only transaction that logged in as `role`, with `schema` first in the search path.

        Raises ReaderLoginFailed when the role or its password is not the one this host expects.
        """
        dsn = conninfo.make_conninfo(self.dsn, user=role, password=self.reader_password(role))
        with self._pool(role, schema, dsn).connection() as connection:
            yield connection

    def forget_reader(self, role: str) -> None:
        """Close the pools of a role that is about to go: an open session would keep it from being dropped."""
        with self._lock:
            gone = [self._pools.pop(key) for key in list(self._pools) if key[0] == role]
        for pool in gone:
            pool.close()

    def reader_password(self, role: str) -> str:
        """Derived, not stored: every host with the same secret can log in, and no table holds passwords."""
        return hmac.new(self._secret, role.encode(), hashlib.sha256).hexdigest()

    def _pool(self, role: str, schema: str, dsn: str) -> ConnectionPool[Conn]:
        with self._lock:
            pool = self._pools.get((role, schema))
            if pool is None:
                # A pool retries a refused login in the background for half a minute; the first one says why.
                with self._connect(dsn, role=role):
                    pass
                pool = ConnectionPool(
                    dsn,
                    min_size=1,
                    max_size=POOL_SIZE,
                    timeout=CONNECT_TIMEOUT_S,
                    kwargs={"connect_timeout": CONNECT_TIMEOUT_S, "prepare_threshold": None},
                    configure=lambda c: _configure(c, schema),
                    check=ConnectionPool.check_connection,
                    open=True,
                )
                self._pools[role, schema] = pool
        return pool

    def _connect(self, dsn: str, *, role: str = "", autocommit: bool = False) -> Conn:
        try:
            return psycopg.connect(
                dsn, connect_timeout=CONNECT_TIMEOUT_S, autocommit=autocommit, prepare_threshold=None
            )
        except psycopg.OperationalError as error:
            text = str(error).strip().splitlines()[-1]
            if role and any(words in str(error) for words in _LOGIN_REFUSED):
                raise ReaderLoginFailed(
                    f"role {role} cannot log in: {text}",
                    hint="Run `kb db roles`: it makes missing reader roles and sets their passwords to this "
                    "host's secret (KB_READER_SECRET, or the file under KB_HOME).",
                ) from error
            raise DatabaseUnavailable(f"no connection to Postgres: {text}", hint="See `kb db status`.") from error


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Driver errors that mean "Postgres is not there" become DatabaseUnavailable; all others pass through."""
    try:
        yield
    except PoolTimeout as error:
        raise DatabaseUnavailable(f"no connection became free: {error}", hint="See `kb db status`.") from error
    except (
        errors.AdminShutdown,
        errors.CrashShutdown,
        errors.CannotConnectNow,
        psycopg.InterfaceError,
    ) as error:
        raise DatabaseUnavailable(f"the connection broke: {error}", hint="See `kb db status`.") from error
    except psycopg.OperationalError as error:
        if error.sqlstate is None:  # not an answer of the server: the socket is gone
            raise DatabaseUnavailable(f"the connection broke: {error}", hint="See `kb db status`.") from error
        raise


def _configure(connection: Conn, schema: str) -> None:
    if not schema:
        return
    # Reading a vector loads the library: before that, Postgres would accept any hnsw.* name without complaint.
    connection.execute("SELECT '[1]'::vector")
    connection.execute("SELECT set_config('search_path', %s, false)", (search_path(schema),))
    connection.execute("SET default_transaction_read_only = on")
    connection.execute("SET plan_cache_mode = force_custom_plan")
    connection.commit()


def search_path(schema: str) -> str:
    """The collection's schema, then the one the vector extension usually lives in."""
    return f'"{schema}", public'


def reader_secret(settings: Settings) -> bytes:
    """KB_READER_SECRET, or a random secret kept under KB_HOME (mode 0600), made at first use."""
    if settings.reader_secret is not None:
        return settings.reader_secret.get_secret_value().encode()
    path = settings.home.absolute() / "reader_secret"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written whole before it has its name: a crash or a second process never sees half a secret.
        unfinished = path.with_name(f"{path.name}.{os.getpid()}")
        unfinished.touch(mode=0o600)
        unfinished.write_text(secrets.token_hex(SECRET_BYTES) + "\n")
        with contextlib.suppress(FileExistsError):
            os.link(unfinished, path)
        unfinished.unlink()
    try:
        secret = bytes.fromhex(path.read_text().strip())
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise SettingsError(
            f"{path} holds no secret of {SECRET_BYTES} bytes",
            hint="Delete it and run `kb db roles`: it makes a new one and sets the reader roles' passwords to it.",
        )
    return secret


def open_database(settings: Settings, *, migrated: bool = True) -> Database:
    """The database the settings name; without KB_DATABASE_URL the embedded server is started when needed.

    Raises DatabaseUnavailable, and MigrationNeeded unless `migrated` is False.
    """
    if settings.database_url is not None:
        dsn = settings.database_url.get_secret_value()
    else:
        server = EmbeddedServer(settings.home)
        server.start()
        dsn = server.dsn
    database = Database(dsn, reader_secret(settings))
    if migrated:
        try:
            _require_head(database)
        except BaseException:
            database.close()
            raise
    return database


def migrations_dir() -> Path:
    """The migrations: inside the installed package, or beside it in a checkout."""
    inside = Path(__file__).parent / "migrations"
    return inside if inside.exists() else Path(__file__).parents[1] / "migrations"


_NEWER = "The database was made by a newer Knowledge Bank, or by another program: use that one."


def head_revision() -> str:
    """The newest migration this program knows; files are numbered."""
    return max(path.stem for path in (migrations_dir() / "versions").glob("[0-9]*.py"))[:4]


def current_revision(connection: Conn) -> str | None:
    """The migration the database stands at; None for an empty database."""
    found: Any = connection.execute("SELECT to_regclass('public.schema_version')").fetchone()
    if found is None or found[0] is None:
        return None
    row: Any = connection.execute("SELECT version_num FROM public.schema_version").fetchone()
    return None if row is None else str(row[0])


def migrate(database: Database) -> str:
    """Bring the database to the newest schema; returns its revision. Nothing happens when it is there already."""
    import alembic.command  # noqa: PLC0415  alembic and SQLAlchemy cost .3 s, searches do not need them
    import alembic.config  # noqa: PLC0415
    import sqlalchemy  # noqa: PLC0415

    with database.owner() as connection:
        if current_revision(connection) == head_revision():
            return head_revision()
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(database.dsn, connect_timeout=CONNECT_TIMEOUT_S),
        poolclass=sqlalchemy.pool.NullPool,
    )
    config = alembic.config.Config()
    config.set_main_option("script_location", str(migrations_dir()))
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        try:
            alembic.command.upgrade(config, "head")
        except alembic.util.CommandError as error:
            raise MigrationNeeded(f"the database cannot be migrated: {error}", hint=_NEWER) from None
        connection.commit()
    engine.dispose()
    return head_revision()


def _require_head(database: Database) -> None:
    with database.owner() as connection:
        revision = current_revision(connection)
    if revision != head_revision():
        raise MigrationNeeded(
            f"the database is at migration {revision or 'none'}, this program needs {head_revision()}",
            hint="Run `kb init`." if revision is None or revision < head_revision() else _NEWER,
        )


def fetch_all(connection: Conn, name: str, values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Rows of `sql/<name>.sql` as dictionaries."""
    with connection.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        return cursor.execute(sql.ready(name, given=values or ()), values or {}).fetchall()


def fetch_one(connection: Conn, name: str, values: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """First row of `sql/<name>.sql`, or None."""
    rows = fetch_all(connection, name, values)
    return rows[0] if rows else None


def execute(connection: Conn, name: str, values: dict[str, Any] | None = None) -> int:
    """Run `sql/<name>.sql`; the number of rows it touched."""
    return connection.execute(sql.ready(name, given=values or ()), values or {}).rowcount
