"""A small bank for tests to break, and hands that type what the doctor says."""

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import conninfo

from agent_server.catalog import get_collection
from agent_server.db import Database
from agent_server.settings import Settings
from tests.doors.conftest import Kb, environment
from tests.hash_embedder import HashEmbedder

ROUNDS = 3
#: Another passage with the text of guide.md's: its passage_hash and its embedding are to be filled in.
COPY_OF_A_ROW = (
    "INSERT INTO chunks (source, chunk_index, text, context, heading_path, label, char_start, char_end, passage_hash,"
    " paragraph_hashes, paragraph_spans, canonical, authority, retired, tsv, bm25, embedding)"
    " SELECT source, 90, text, context, heading_path, label, char_start, char_end, {}, paragraph_hashes,"
    " paragraph_spans, true, authority, false, tsv, bm25, {} FROM chunks WHERE source = 'guide.md'"
)


@dataclass(frozen=True)
class Ground:
    """What a test may break, and how it types what the doctor says."""

    kb: Kb
    database: Database
    settings: Settings
    documents: Path
    embedder: HashEmbedder

    def findings(self) -> dict[str, dict[str, Any]]:
        return {c["name"]: c for c in self.kb("doctor", "--json").json["checks"] if c["status"] != "ok"}

    def sql(self, *statements: str) -> None:
        with psycopg.connect(self.database.dsn, autocommit=True) as connection:
            connection.execute("SET search_path = kb_finance, public")
            for statement in statements:
                connection.execute(statement)  # type: ignore[arg-type]

    def break_by_sql(self, damage: list[str]) -> None:
        """Run statements, where {reader} is the reader role's name and {database} the database's."""
        known = {"reader": self.reader, "database": conninfo.conninfo_to_dict(self.database.dsn)["dbname"]}
        self.database.close()
        self.sql(*(statement.format(**known) for statement in damage))

    @property
    def reader(self) -> str:
        with self.database.owner() as connection:
            return get_collection(connection, "FINANCE").reader_role

    def type(self, cure: str) -> None:
        """Run a cure as it is printed; FOLDER is where the documents are now."""
        words = [str(self.documents) if w == "FOLDER" else w for w in shlex.split(cure)]
        assert words[0] == "kb", cure
        if words[1:3] == ["db", "psql"]:  # takes the place of the process
            program = [sys.executable, "-m", "agent_server.doors.cli.main", *words[1:]]
            subprocess.run(program, env=os.environ | environment(self.settings), check=True, capture_output=True)
        else:
            said = self.kb(*words[1:])
            assert said.code in (0, 3) or words[1] == "doctor", said.err

    def cured_of(self, name: str) -> None:
        """See the finding, then type all cures as printed, round for round, until nothing is found."""
        found = self.findings()
        assert name in found
        for _ in range(ROUNDS):
            for cure in dict.fromkeys(c["cure"] for c in found.values()):
                self.type(cure)
            found = self.findings()
            if not found:
                return
        assert found == {}
