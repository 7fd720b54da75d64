"""`kb ingest --password`: opens encrypted PDFs, is tried again on those that stayed closed, and is kept nowhere."""

from pathlib import Path

from agent_server.db import Database
from agent_server.ingest.reading import Task
from agent_server.ingest.steps import IngestOptions
from tests.doors.conftest import Kb
from tests.ingest.pdfs import book, encrypted


def test_a_password_opens_what_stayed_closed_and_is_stored_nowhere(kb: Kb, database: Database, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(encrypted(book(lambda pdf: pdf.text_block("The ferry leaves at noon.")), "s3cret"))
    assert kb("collection", "create", "DOCS").code == 0

    closed = kb("ingest", "DOCS", str(folder))
    assert closed.code == 3
    assert "a password is needed" in closed.out
    assert kb("ingest", "DOCS", str(folder), "--password", "wr0ng", "--json").json["counts"].get("indexed", 0) == 0

    opened = kb("ingest", "DOCS", str(folder), "--password", "wr0ng", "--password", "s3cret")
    assert opened.code == 0, opened.err
    assert "s3cret" not in opened.out + opened.err
    again = kb("ingest", "DOCS", str(folder))  # settled: it needs no password now
    assert again.code == 0, again.err

    with database.owner("kb_docs") as connection:
        tables = connection.execute(
            "SELECT format('%I.%I', table_schema, table_name) FROM information_schema.tables "
            "WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        for (table,) in tables:
            query = f"SELECT count(*) FROM {table} t WHERE t::text ~ 's3cret|wr0ng'"
            assert connection.execute(query).fetchone() == (0,), table  # type: ignore[call-overload]


def test_passwords_are_not_shown_where_options_and_tasks_are() -> None:
    assert "s3cret" not in repr(IngestOptions(passwords=("s3cret",)))
    assert "s3cret" not in repr(Task(Path("a"), Path("b"), "a", 1, 2, 3, ("s3cret",)))
