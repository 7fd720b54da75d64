"""The bank of one measurement: a server of its own in a temporary folder, both gone afterwards."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_server.db import Database, migrate
from agent_server.postgres import EmbeddedServer


@contextmanager
def private_bank() -> Iterator[tuple[Database, Path]]:
    """An empty bank, and the folder that goes with it."""
    home = Path(tempfile.mkdtemp(prefix="kb-bench-"))
    home.chmod(0o755)
    server = EmbeddedServer(home)
    try:
        server.start()
        with Database(server.dsn, b"bench") as database:
            migrate(database)
            yield database, home
    finally:
        server.stop()
        shutil.rmtree(home, ignore_errors=True)
