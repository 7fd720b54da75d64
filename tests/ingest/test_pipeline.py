"""The write path against a real Postgres: the collection holds what the folder holds, and says what became of each."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from agent_server.catalog import create_collection
from agent_server.db import Database
from agent_server.errors import ContractMismatch, InvalidArgument
from agent_server.ingest.pipeline import ingest, remove
from agent_server.ingest.report import IngestReport
from agent_server.ingest.steps import IngestOptions
from agent_server.retrieval.search import search
from tests.hash_embedder import HashEmbedder

Sync = Callable[..., IngestReport]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    (root / "sub").mkdir(parents=True)
    (root / "a.md").write_text("# Ferries\n\nThe ferry costs ninepence.\n\n## Winter\n\nNo ferry runs in February.\n")
    (root / "b.txt").write_text("The lighthouse is painted every third year by the harbor office.\n")
    (root / "sub" / "c.md").write_text("# Chapel\n\nThe chapel opens on Sundays.\n")
    return root


@pytest.fixture
def sync(database: Database, hash_embedder: HashEmbedder, folder: Path) -> Sync:
    create_collection(database, "DOCS", hash_embedder.identity())

    def run(path: Path | None = None, **options: bool) -> IngestReport:
        return ingest(
            database, "DOCS", [path or folder], hash_embedder, IngestOptions(bank=folder, isolate=False, **options)
        )

    return run


def _counted(database: Database, counters: str) -> list[tuple[object, ...]]:
    """The statistics when all sessions have ended, and so have reported theirs."""
    database.close()
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with database.owner_autocommit() as connection:
        while connection.execute(others).fetchone() != (0,):
            pass
    return _rows(database, counters)


def _at_once(sync: Sync, count: int) -> None:
    """So many runs of the same sync, started together; none may fail."""
    faults: list[BaseException] = []
    gate = threading.Barrier(count)

    def run() -> None:
        gate.wait()
        try:
            sync()
        except BaseException as error:  # noqa: BLE001  reported below
            faults.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


def _marks(report: IngestReport) -> dict[str, str]:
    return {o.source: o.mark for o in report.outcomes}


def _rows(database: Database, query: str) -> list[tuple[object, ...]]:
    with database.owner("kb_docs") as connection:
        return connection.execute(query).fetchall()  # type: ignore[call-overload, no-any-return]


def _state(database: Database) -> list[tuple[object, ...]]:
    return _rows(
        database, "SELECT chunk_id, text, canonical, tsv::text, bm25::text, embedding::text FROM chunks ORDER BY 1"
    )


def test_a_folder_becomes_passages_with_their_sources(database: Database, sync: Sync) -> None:
    report = sync()
    assert _marks(report) == {"a.md": "+", "b.txt": "+", "sub/c.md": "+"}
    found = search(database, "DOCS", "winter ferry in February", HashEmbedder()).passages[0]
    assert found.source == "a.md"
    assert found.heading[0] == "Ferries"


def test_a_second_run_writes_no_row_and_embeds_nothing(
    database: Database, sync: Sync, hash_embedder: HashEmbedder
) -> None:
    sync()
    counters = "SELECT sum(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_stat_user_tables WHERE schemaname <> 'public'"
    versions = (
        "SELECT xmin::text, ctid::text FROM chunks UNION ALL SELECT xmin::text, ctid::text FROM files ORDER BY 1, 2"
    )
    before = _rows(database, versions)
    hash_embedder.calls.clear()
    writes = _counted(database, counters)
    assert _marks(sync()) == {"a.md": "=", "b.txt": "=", "sub/c.md": "="}
    assert hash_embedder.calls == []
    assert _rows(database, versions) == before
    assert _counted(database, counters) == writes


def test_one_changed_line_embeds_that_passage_alone_and_the_old_text_is_gone(
    database: Database, sync: Sync, folder: Path, hash_embedder: HashEmbedder
) -> None:
    sync()
    hash_embedder.calls.clear()
    (folder / "b.txt").write_text("The lighthouse is painted every fourth year by the harbor office.\n")
    assert _marks(sync()) == {"a.md": "=", "b.txt": "+", "sub/c.md": "="}
    assert len(hash_embedder.texts) == 1
    assert "fourth year" in hash_embedder.texts[0]
    assert not search(database, "DOCS", "third", None).passages
    assert search(database, "DOCS", "fourth", None).passages


def test_a_renamed_file_keeps_its_vectors_and_is_cited_by_its_new_name(
    database: Database, sync: Sync, folder: Path, hash_embedder: HashEmbedder
) -> None:
    sync()
    hash_embedder.calls.clear()
    (folder / "b.txt").rename(folder / "sub" / "light.txt")
    report = sync()
    assert _marks(report)["sub/light.txt"] == "~"
    assert "b.txt" not in _marks(report)
    assert hash_embedder.calls == []
    assert search(database, "DOCS", "lighthouse", None).passages[0].chunk_id == "sub/light.txt::0"


def test_a_deleted_file_is_gone_with_its_counts_and_stays_in_the_ledger_as_removed(
    database: Database, sync: Sync, folder: Path
) -> None:
    sync()
    (folder / "b.txt").unlink()
    assert _marks(sync())["b.txt"] == "-"
    assert not search(database, "DOCS", "lighthouse", None).passages
    assert _rows(database, "SELECT status, chunk_count FROM files WHERE source = 'b.txt'") == [("removed", 0)]
    assert _rows(database, "SELECT ndoc FROM lexemes WHERE lexeme = 'lighthous'") == []
    assert "b.txt" not in _marks(sync())


def test_one_file_alone_removes_no_other_and_a_subfolder_only_what_lay_in_it(
    database: Database, sync: Sync, folder: Path
) -> None:
    sync()
    (folder / "b.txt").unlink()
    (folder / "sub" / "c.md").unlink()
    assert _marks(sync(folder / "a.md")) == {"a.md": "="}
    assert _marks(sync(folder / "sub")) == {"sub/c.md": "-"}
    assert _marks(sync()) == {"a.md": "=", "b.txt": "-"}


def test_a_dry_run_tells_the_plan_and_does_nothing(database: Database, sync: Sync, folder: Path) -> None:
    sync()
    before = _state(database)
    (folder / "a.md").write_text("# Ferries\n\nChanged.\n")
    (folder / "new.md").write_text("# New\n\nText.\n")
    (folder / "b.txt").unlink()
    assert _marks(sync(dry_run=True)) == {"a.md": "+", "new.md": "+", "sub/c.md": "=", "b.txt": "-"}
    assert _state(database) == before


def test_what_is_not_a_document_is_listed_with_its_reason(database: Database, sync: Sync, folder: Path) -> None:
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 50)
    (folder / "page.pdf").write_text("<!doctype html><title>404</title><p>gone")
    (folder / "nothing.md").write_text("")
    (folder / "link.md").symlink_to(folder / "a.md")
    (folder / ".hidden.md").write_text("# Hidden\n\nText.\n")
    first = sync()
    assert {o.source: str(o.status) for o in first.not_indexed} == {
        "photo.png": "rejected",
        "page.pdf": "rejected",
        "nothing.md": "empty",
        "link.md": "rejected",
    }
    assert all(o.reason for o in first.not_indexed)
    listed = _rows(database, "SELECT source FROM files WHERE status NOT IN ('indexed') ORDER BY 1")
    assert [row[0] for row in listed] == sorted(o.source for o in first.not_indexed)
    again = sync()
    assert {o.source: o.reason for o in again.not_indexed} == {o.source: o.reason for o in first.not_indexed}
    assert ".hidden.md" not in _marks(first)


def test_when_the_embedder_goes_away_the_rest_waits_and_the_next_run_finishes(
    database: Database, sync: Sync, folder: Path, hash_embedder: HashEmbedder
) -> None:
    hash_embedder.lost_after = 1
    report = sync()
    marks = _marks(report)
    assert sorted(marks.values()) == ["!", "!", "+"]  # two workers: whichever came first
    assert {o.reason for o in report.not_indexed} == {"not embedded: the hash embedder is switched off"}
    hash_embedder.lost_after = None
    assert _marks(sync()) == {source: "=" if mark == "+" else "+" for source, mark in marks.items()}


def test_a_changed_file_that_cannot_be_embedded_keeps_its_earlier_passages_and_says_so(
    database: Database, sync: Sync, folder: Path, hash_embedder: HashEmbedder
) -> None:
    sync()
    (folder / "b.txt").write_text("The lighthouse was sold.\n")
    hash_embedder.lost_after = 0
    failed = sync().not_indexed[0]
    assert "its 1 passages of before are still there" in failed.reason
    assert search(database, "DOCS", "lighthouse painted", None).passages
    hash_embedder.lost_after = None
    assert _marks(sync())["b.txt"] == "+"


def test_a_passage_that_the_embedder_refuses_is_found_by_its_words(
    database: Database, sync: Sync, folder: Path, hash_embedder: HashEmbedder
) -> None:
    hash_embedder.poison = "February"
    report = sync()
    outcome = next(o for o in report.outcomes if o.source == "a.md")
    assert (outcome.mark, str(outcome.status)) == ("!", "partial")
    assert "have no vector" in outcome.reason
    assert search(database, "DOCS", "February", HashEmbedder()).passages[0].source == "a.md"


def test_lexeme_counts_are_those_of_a_recount_after_many_changes(database: Database, sync: Sync, folder: Path) -> None:
    sync()
    (folder / "copy.md").write_text((folder / "a.md").read_text())
    sync()
    (folder / "a.md").unlink()
    (folder / "b.txt").write_text("The lighthouse and the ferry belong to the harbor office.\n")
    sync()
    counted = _rows(
        database,
        "SELECT lexeme, count(*) FROM chunks, unnest(tsv) WHERE canonical GROUP BY 1"
        " UNION ALL SELECT '', count(*) FROM chunks WHERE canonical ORDER BY 1",
    )
    assert _rows(database, "SELECT lexeme, ndoc FROM lexemes ORDER BY 1") == counted
    assert _rows(database, "SELECT * FROM lexeme_deltas") == []


def test_of_equal_passages_the_one_of_highest_authority_stands_for_them(
    database: Database, sync: Sync, folder: Path
) -> None:
    (folder / "source_authority.json").write_text(
        '{"tiers": {"top": 1.0, "low": 0.1},'
        ' "rules": [{"source": "z/**", "tier": "top"}, {"source": "**", "tier": "low"}]}'
    )
    (folder / "z").mkdir()
    (folder / "z" / "rule.txt").write_text((folder / "b.txt").read_text())
    sync()
    hit = search(database, "DOCS", "lighthouse painted", HashEmbedder()).passages[0]
    assert (hit.source, hit.also_in, hit.authority) == ("z/rule.txt", ("b.txt::0",), 1.0)
    (folder / "z" / "rule.txt").unlink()
    sync()
    hit = search(database, "DOCS", "lighthouse painted", HashEmbedder()).passages[0]
    assert (hit.source, hit.also_in) == ("b.txt", ())


def test_changed_authority_rules_reach_unchanged_files(database: Database, sync: Sync, folder: Path) -> None:
    sync()
    (folder / "source_authority.json").write_text(
        '{"tiers": {"top": 1.0}, "rules": [{"source": "b.txt", "tier": "top"}]}'
    )
    marks = _marks(sync())
    assert marks["b.txt"] == "="
    assert "source_authority.json" not in marks
    assert search(database, "DOCS", "lighthouse", None).passages[0].authority == 1.0


def test_a_run_that_finds_no_rules_leaves_authority_as_it_was(database: Database, sync: Sync, folder: Path) -> None:
    rules = folder / "source_authority.json"
    rules.write_text('{"tiers": {"top": 1.0}, "rules": [{"source": "b.txt", "tier": "top"}]}')
    sync()
    rules.unlink()
    assert _marks(sync())["b.txt"] == "="
    assert search(database, "DOCS", "lighthouse", None).passages[0].authority == 1.0


def test_a_retired_document_is_kept_and_never_found(database: Database, sync: Sync, folder: Path) -> None:
    (folder / "old.md").write_text("---\nretired: true\n---\n# Old\n\nThe semaphore stands on the hill.\n")
    assert _marks(sync())["old.md"] == "+"
    assert not search(database, "DOCS", "semaphore", None).passages
    assert _rows(database, "SELECT retired, canonical FROM chunks WHERE source = 'old.md'") == [(True, False)]


def test_a_crash_between_two_files_is_made_good_by_the_next_run(
    database: Database, sync: Sync, folder: Path, hash_embedder: HashEmbedder
) -> None:
    sync()
    expected = _state(database)
    with database.owner("kb_docs") as connection:
        connection.execute("DELETE FROM files WHERE source = 'b.txt'")
        connection.execute("DROP INDEX chunks_embedding")
        connection.execute("UPDATE kb.collections SET avg_length = NULL")
    hash_embedder.calls.clear()
    sync()
    assert _state(database) == expected
    assert hash_embedder.calls == []  # the vectors were in the cache
    assert _rows(database, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'chunks_embedding'::regclass") == [
        (True,)
    ]


def test_two_runs_at_once_leave_what_one_run_leaves(database: Database, sync: Sync, folder: Path) -> None:
    for n in range(30):
        (folder / f"n{n}.md").write_text(f"# File {n}\n\nShared words of all files.\n\n## Part\n\nBerth {n} is free.\n")
    sync()
    expected = _state(database)
    remove(database, "DOCS", [row[0] for row in _rows(database, "SELECT source FROM files")])  # type: ignore[misc]
    assert _state(database) == []
    _at_once(sync, 3)
    assert _state(database) == expected


def test_a_name_that_belongs_to_another_folder_is_not_taken_over(
    database: Database, sync: Sync, folder: Path, tmp_path: Path
) -> None:
    sync()
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("# Impostor\n\nText.\n")
    report = sync(other)
    assert "belongs to a file of root 'docs'" in report.not_indexed[0].reason
    assert search(database, "DOCS", "ferry", None).passages[0].source == "a.md"


def test_a_folder_that_moved_is_the_same_root(database: Database, sync: Sync, folder: Path, tmp_path: Path) -> None:
    sync()
    moved = tmp_path / "elsewhere" / "docs"
    moved.parent.mkdir()
    folder.rename(moved)
    assert set(_marks(sync(moved)).values()) == {"="}


def test_a_path_that_is_not_there_and_another_model_are_refused_before_anything_happens(
    database: Database, sync: Sync, folder: Path
) -> None:
    with pytest.raises(InvalidArgument, match="does not exist"):
        sync(folder / "nowhere")
    with pytest.raises(ContractMismatch):
        ingest(database, "DOCS", [folder], HashEmbedder(digest="other"))


def test_another_writer_of_the_same_file_is_waited_for(database: Database, sync: Sync, folder: Path) -> None:
    sync()
    (folder / "b.txt").write_text("The lighthouse was sold.\n")
    with psycopg.connect(database.dsn) as holder:
        holder.execute("SELECT pg_advisory_xact_lock(hashtextextended('file DOCS b.txt', 0))")
        done = threading.Event()
        thread = threading.Thread(target=lambda: (sync(), done.set()))
        thread.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while holder.execute(waiting).fetchone() == (0,):
            assert not done.is_set()
    thread.join()
    assert search(database, "DOCS", "sold", None).passages


def test_file_names_that_are_no_utf8_are_stored_readably_and_found_again(
    database: Database, sync: Sync, folder: Path
) -> None:
    odd = Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt"))
    odd.write_text("The cafe sells cider.\n")
    (folder / "caf\\xe9.txt").write_text("A name with a backslash in it.\n")
    marks = _marks(sync())
    assert {r"caf\xe9.txt", r"caf\\xe9.txt"} <= set(marks)
    assert search(database, "DOCS", "cider", None).passages[0].source == r"caf\xe9.txt"
    assert _marks(sync())[r"caf\xe9.txt"] == "="
    odd.unlink()
    assert _marks(sync())[r"caf\xe9.txt"] == "-"


def test_a_fifo_and_a_socket_in_the_folder_are_listed_and_never_waited_for(sync: Sync, folder: Path) -> None:
    os.mkfifo(folder / "pipe.md")
    outcome = sync().not_indexed[0]
    assert (outcome.source, outcome.reason) == ("pipe.md", "not a regular file")


def test_two_folders_with_the_same_name_in_them_keep_the_first_and_say_so_of_the_second(
    database: Database, sync: Sync, folder: Path, tmp_path: Path, hash_embedder: HashEmbedder
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("# Impostor\n\nThe impostor speaks.\n")
    report = ingest(database, "DOCS", [folder, other], hash_embedder, IngestOptions(bank=folder, isolate=False))
    assert "belongs to a file of root 'docs'" in report.not_indexed[0].reason
    assert not search(database, "DOCS", "impostor", None).passages
    assert search(database, "DOCS", "ferry", None).passages[0].source == "a.md"


def test_a_second_checkout_of_a_folder_is_the_same_root(
    database: Database, sync: Sync, folder: Path, tmp_path: Path
) -> None:
    sync()
    second = tmp_path / "second" / "docs"
    shutil.copytree(folder, second)
    (second / "b.txt").write_text("The lighthouse was sold.\n")
    assert _marks(sync(second)) == {"a.md": "=", "b.txt": "+", "sub/c.md": "="}
    assert _rows(database, "SELECT count(*) FROM roots") == [(1,)]


def test_another_folder_of_the_same_name_is_another_root(
    database: Database, sync: Sync, folder: Path, tmp_path: Path
) -> None:
    sync()
    away = tmp_path / "away"
    folder.rename(away)
    stranger = tmp_path / "x" / "docs"
    stranger.mkdir(parents=True)
    (stranger / "two.md").write_text("# Two\n\nText.\n")
    assert _marks(sync(stranger)) == {"two.md": "+"}
    assert search(database, "DOCS", "ferry", None).passages


def test_runs_at_once_after_renames_lose_nothing(database: Database, sync: Sync, folder: Path) -> None:
    for n in range(24):
        (folder / f"n{n:02}.md").write_text(f"# File {n}\n\nBerth {n} is free and belongs to pier {n * 3}.\n")
    sync()
    for n in range(0, 24, 2):
        (folder / f"n{n:02}.md").rename(folder / f"moved{n:02}.md")
    _at_once(sync, 4)
    live = {row[0] for row in _rows(database, "SELECT DISTINCT source FROM chunks")}
    assert live == {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert set(_marks(sync()).values()) == {"="}
