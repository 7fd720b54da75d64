"""Runs the statements of `nightly/sql`, as `agent_server.db` runs those of the server."""

from pathlib import Path
from typing import Any

from psycopg.rows import dict_row

from agent_server import sql
from agent_server.db import Conn

FOLDER = Path(__file__).parent / "sql"


def fetch_all(connection: Conn, name: str, values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Rows of `nightly/sql/<name>.sql` as dictionaries."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(sql.ready(name, FOLDER, given=values or ()), values or {}).fetchall()


def execute(connection: Conn, name: str, values: dict[str, Any] | None = None) -> int:
    """Run `nightly/sql/<name>.sql`; the number of rows it touched."""
    return connection.execute(sql.ready(name, FOLDER, given=values or ()), values or {}).rowcount
