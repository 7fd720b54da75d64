"""`kb` in this process: arguments in, exit code and both streams out; the test's database and the hash embedder."""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agent_server.catalog import create_collection
from agent_server.db import Database
from agent_server.doors.cli import context
from agent_server.doors.cli.main import main
from agent_server.ingest.pipeline import ingest
from agent_server.settings import Settings
from tests.conftest import Builder
from tests.hash_embedder import HashEmbedder


@dataclass(frozen=True)
class Said:
    """What a run of `kb` left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error JSON on standard error."""
        found: dict[str, Any] = json.loads(self.err.splitlines()[-1])["error"]
        return found


Kb = Callable[..., Said]


def environment(settings: Settings) -> dict[str, str]:
    """The variables that make another process use the test's database."""
    assert settings.database_url is not None
    assert settings.reader_secret is not None
    return {
        "KB_DATABASE_URL": settings.database_url.get_secret_value(),
        "KB_READER_SECRET": settings.reader_secret.get_secret_value(),
        "KB_HOME": str(settings.home),
    }


@pytest.fixture
def plain_kb(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kb:
    """`kb` without a database, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KB_HOME", str(tmp_path / "nowhere"))

    def run(*arguments: str) -> Said:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return run


@pytest.fixture
def kb(plain_kb: Kb, settings: Settings, hash_embedder: HashEmbedder, monkeypatch: pytest.MonkeyPatch) -> Kb:
    """`kb` on the test's database, with the hash embedder."""
    for key, value in environment(settings).items():
        monkeypatch.setenv(key, value)

    @contextmanager
    def opened_embedder(_: Settings) -> Iterator[HashEmbedder]:
        yield hash_embedder

    monkeypatch.setattr(context, "opened_embedder", opened_embedder)
    monkeypatch.setattr("agent_server.doctor.make_embedder", lambda _: hash_embedder)
    return plain_kb


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    """A small folder: two good files, two with the same passage, one that cannot be read."""
    return _write_documents(tmp_path / "documents")


def _write_documents(folder: Path) -> Path:
    folder.mkdir()
    (folder / "rules.md").write_text(
        "# Lending rules\n\nA loan needs an income of at least 1,100 dollars a month.\n\n"
        "## Codes\n\nNW-4021 means that the income is too low for the loan.\n"
    )
    (folder / "guide.md").write_text("# Guide\n\nMembers may ask the branch for help with forms of every kind.\n")
    for name in ("one.txt", "two.txt"):
        (folder / name).write_text("The valuation of a house may be at most 120 days old.\n")
    (folder / "a_picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    return folder


def _finance(database: Database) -> None:
    embedder = HashEmbedder()
    create_collection(database, "FINANCE", embedder.identity(), description="lending")
    with tempfile.TemporaryDirectory() as home:
        ingest(database, "FINANCE", [_write_documents(Path(home) / "documents")], embedder)


@pytest.fixture
def stock(request: pytest.FixtureRequest) -> Builder | None:
    return _finance if "bank" in request.fixturenames else None


@pytest.fixture
def bank(kb: Kb, documents: Path, database_dsn: str) -> Kb:
    """`kb` with a collection FINANCE that holds `documents`."""
    with psycopg.connect(database_dsn) as connection:
        connection.execute("UPDATE kb_finance.roots SET path = %s", (str(documents.resolve()),))
    return kb
