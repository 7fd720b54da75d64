"""The nightly ingestion: folders that were ever given are synced, and what cannot be seen removes nothing."""

from pathlib import Path
from typing import Any

import pytest

from agent_server.catalog import Collection, create_collection
from agent_server.db import Database
from agent_server.ingest import pipeline
from agent_server.ingest.steps import IngestOptions
from agent_server.settings import Settings
from nightly import ingestion
from nightly.jobs import NightContext, StepReport
from tests.hash_embedder import HashEmbedder
from tests.nightly.nights import Clock


@pytest.fixture
def docs(database: Database, hash_embedder: HashEmbedder) -> Collection:
    return create_collection(database, "DOCS", hash_embedder.identity())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "rules"
    path.mkdir()
    (path / "fees.md").write_text(
        "# Fees\n\nThe fee for a berth is ninepence a night, and the crew pays at the office.\n"
    )
    (path / "dogs.md").write_text("# Dogs\n\nDogs are kept on a lead on every pier of the harbour, day and night.\n")
    return path


def _give(database: Database, embedder: HashEmbedder, *paths: Path) -> None:
    pipeline.ingest(database, "DOCS", paths, embedder, IngestOptions(isolate=False))


def _night(database: Database, docs: Collection, settings: Settings, embedder: HashEmbedder) -> StepReport:
    context = NightContext(settings, Clock(), None, lambda: embedder, {"isolate": False})
    return ingestion.job(database, docs, context)


def _sources(database: Database) -> list[str]:
    with database.owner("kb_docs") as connection:
        rows: list[Any] = connection.execute("SELECT source FROM files WHERE status = 'indexed' ORDER BY 1").fetchall()
    return [row[0] for row in rows]


def test_folders_are_synced_as_they_are_now(
    database: Database, docs: Collection, settings: Settings, hash_embedder: HashEmbedder, folder: Path
) -> None:
    _give(database, hash_embedder, folder)
    (folder / "dogs.md").unlink()
    (folder / "cats.md").write_text(
        "# Cats\n\nCats go where they like, on the piers and in the office of the harbour.\n"
    )
    report = _night(database, docs, settings, hash_embedder)
    assert report.ok
    assert {k: n for k, n in report.counts.items() if n} == {"indexed": 1, "unchanged": 1, "removed": 1, "embedded": 1}
    assert report.summary == "1 indexed, 1 unchanged, 1 removed, 1 embedded"
    assert _sources(database) == ["cats.md", "fees.md"]


def test_a_collection_that_was_never_given_a_folder_has_nothing_to_do(
    database: Database, docs: Collection, settings: Settings, hash_embedder: HashEmbedder
) -> None:
    report = _night(database, docs, settings, hash_embedder)
    assert (report.ok, report.counts, report.summary) == (True, {}, "no folder to look at")


def test_a_folder_that_is_not_there_is_reported_and_its_files_stay(
    database: Database, docs: Collection, settings: Settings, hash_embedder: HashEmbedder, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "bus.md").write_text("# Buses\n\nThe bus leaves the depot before sunrise on every day of the week.\n")
    _give(database, hash_embedder, folder, other)
    folder.rename(tmp_path / "away")
    (other / "bus.md").write_text("# Buses\n\nThe bus leaves the depot after sunrise on every day of the week.\n")
    report = _night(database, docs, settings, hash_embedder)
    assert not report.ok
    assert report.findings == (f"{folder} is not there: its 2 files stay as they are",)
    assert (report.counts["unreachable"], report.counts["indexed"], report.counts["removed"]) == (1, 1, 0)
    assert _sources(database) == ["bus.md", "dogs.md", "fees.md"]


def test_a_folder_that_is_empty_as_when_it_is_not_mounted_keeps_its_files(
    database: Database, docs: Collection, settings: Settings, hash_embedder: HashEmbedder, folder: Path, tmp_path: Path
) -> None:
    _give(database, hash_embedder, folder)
    folder.rename(tmp_path / "away")
    folder.mkdir()
    (folder / "sub").mkdir()
    report = _night(database, docs, settings, hash_embedder)
    assert not report.ok
    assert report.findings[0].startswith(f"{folder} is empty: its 2 files stay")
    assert _sources(database) == ["dogs.md", "fees.md"]
    _give(database, hash_embedder, folder)  # by hand it is meant
    assert _sources(database) == []
    assert _night(database, docs, settings, hash_embedder).ok


def test_of_a_folder_that_single_files_were_taken_from_no_other_file_is_taken(
    database: Database, docs: Collection, settings: Settings, hash_embedder: HashEmbedder, folder: Path
) -> None:
    _give(database, hash_embedder, folder / "fees.md")
    (folder / "fees.md").write_text(
        "# Fees\n\nThe fee for a berth is tenpence a night, and the crew pays at the office.\n"
    )
    report = _night(database, docs, settings, hash_embedder)
    assert (report.ok, report.counts["indexed"]) == (True, 1)
    assert _sources(database) == ["fees.md"]
    (folder / "fees.md").unlink()
    told = f"of the single files taken from {folder} these are gone, and stay: fees.md (`kb remove` takes them out)"
    report = _night(database, docs, settings, hash_embedder)
    assert (report.ok, report.findings) == (True, (told,))
    away = folder.rename(folder.with_name("away"))
    report = _night(database, docs, settings, hash_embedder)
    assert (report.ok, report.findings) == (True, (told,))
    assert _sources(database) == ["fees.md"]
    away.rename(folder)
    _give(database, hash_embedder, folder)  # now the folder is meant
    assert _night(database, docs, settings, hash_embedder).ok
    assert _sources(database) == ["dogs.md"]


def test_a_folder_below_which_a_single_file_is_given_later_stays_whole(
    database: Database, docs: Collection, settings: Settings, hash_embedder: HashEmbedder, folder: Path
) -> None:
    _give(database, hash_embedder, folder)
    _give(database, hash_embedder, folder / "fees.md")
    (folder / "dogs.md").unlink()
    assert _night(database, docs, settings, hash_embedder).counts["removed"] == 1


def test_files_that_could_not_be_embedded_fail_the_step_and_those_that_cannot_be_read_do_not(
    database: Database, docs: Collection, settings: Settings, hash_embedder: HashEmbedder, folder: Path
) -> None:
    (folder / "a_picture.md").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    _give(database, hash_embedder, folder)
    report = _night(database, docs, settings, hash_embedder)
    assert report.ok
    assert report.findings[0].startswith("a_picture.md: rejected: ")
    (folder / "dogs.md").write_text("# Dogs\n\nDogs are not allowed on any pier of the harbour, day or night.\n")
    hash_embedder.lost_after = 0
    report = _night(database, docs, settings, hash_embedder)
    assert not report.ok
    assert report.findings[0] == "the embedder was lost: the hash embedder is switched off"
    hash_embedder.lost_after = None
    assert _night(database, docs, settings, hash_embedder).ok


def test_what_follows_an_ingestion_is_left_to_the_jobs_after_it(
    database: Database, docs: Collection, settings: Settings, hash_embedder: HashEmbedder, folder: Path
) -> None:
    _give(database, hash_embedder, folder)
    (folder / "terms.md").write_text("# Terms\n\n“Berth” means a place at a pier where a ship lies for the night.\n")
    _night(database, docs, settings, hash_embedder)
    with database.owner("kb_docs") as connection:
        assert connection.execute("SELECT count(*) FROM terms").fetchone() == (0,)
