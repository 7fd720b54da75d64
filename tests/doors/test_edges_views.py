"""`ops/edges.sql` shows the edges of a collection in psql."""

import shutil
import subprocess
from pathlib import Path

import psycopg

from agent_server.catalog import get_collection
from agent_server.db import Database
from agent_server.postgres import find_binaries
from tests.doors.conftest import Kb
from tests.retrieval.edges import cite, define, use

VIEWS = Path(__file__).parents[2] / "ops" / "edges.sql"
DANGLING = """
INSERT INTO dangling_links (from_chunk, anchor, from_start, from_end, target_label, reason)
SELECT id, E'section\n9', 0, 9, '§ 9', 'no § 9' FROM chunks WHERE chunk_id = 'rules.md::0'
"""


def _psql(dsn: str, *options: str) -> list[list[str]]:
    psql = shutil.which("psql") or str(find_binaries() / "psql")
    command = [psql, "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1", *options]
    done = subprocess.run([*command, "--dbname", dsn, "-f", VIEWS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split("|") for line in done.stdout.splitlines()]


def test_edges_dangling_references_and_hubs_are_shown_in_psql(bank: Kb, database: Database) -> None:
    with database.owner() as connection:
        collection = get_collection(connection, "FINANCE")
    define(database, collection, [("income", "rules.md::0")])
    cite(database, collection, ("rules.md::0", "one.txt::0"), ("guide.md::0", "one.txt::0"))
    use(database, collection, "guide.md::0", "rules.md::0", "income")
    with database.owner(collection.schema_name) as connection:
        connection.execute(DANGLING)
    dsn = psycopg.conninfo.make_conninfo(database.dsn, options=f"-c search_path={collection.schema_name},public")
    shown = _psql(dsn)
    assert ["cites", "2", "2", "1"] in shown
    assert ["cites", "rules.md::0", "see one.txt::0", "one.txt::0", "one.txt::0", "T"] in shown
    assert ["no § 9", "1"] in shown
    assert ["rules.md::0", "section 9", "§ 9", "no § 9"] in shown
    assert shown[shown.index(["hubs"]) + 1] == ["cites", "one.txt::0", "2", "2"]
    assert len(_psql(dsn, "--set", "rows=1")) < len(shown)
