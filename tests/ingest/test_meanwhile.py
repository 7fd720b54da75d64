"""Files that are renamed, deleted or changed while a run is at work: nothing is half there, and one more run is enough.

The run itself calls what happens meanwhile: once its plan stands, and in the middle of a file.
"""

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from agent_server.catalog import create_collection
from agent_server.db import Database
from agent_server.ingest.pipeline import ingest
from agent_server.ingest.plan import Step
from agent_server.ingest.report import IngestReport, Outcome, Silent
from agent_server.ingest.steps import IngestOptions
from tests.hash_embedder import HashEmbedder

#: The mean length is that of some load before, so that bm25 is compared under one for both.
ROWS = """
SELECT chunk_id, text, context, char_start, char_end, canonical, retired, tsv::text, bm25_doc(tsv, 20)::text,
       embedding::text
FROM chunks ORDER BY chunk_id
"""
LEDGER = "SELECT source, sha256, status, reason, chunk_count FROM files WHERE status <> 'removed' ORDER BY source"
OTHER_LENGTH = """
SELECT count(*) FROM chunks WHERE bm25::text <> bm25_doc(tsv, (
    SELECT avg_length FROM kb.collections WHERE schema_name = current_schema()
))::text
"""
COUNTS = "SELECT lexeme, ndoc FROM lexemes ORDER BY lexeme"
RECOUNT = """
SELECT lexeme, count(*) FROM chunks, unnest(tsv) WHERE canonical GROUP BY 1
UNION ALL SELECT '', count(*) FROM chunks WHERE canonical ORDER BY 1
"""


@dataclass
class Meanwhile(Silent):
    """Does something when the plan stands, when the passages of a source are embedded, or when a source is done."""

    planned_: Callable[[], object] = lambda: None
    embedding_: dict[str, Callable[[], object]] = field(default_factory=dict)
    finished_: dict[str, Callable[[], object]] = field(default_factory=dict)

    def planned(self, steps: Sequence[Step]) -> None:
        self.planned_()

    def embedding(self, source: str, done: int, total: int) -> None:
        self.embedding_.pop(source, lambda: None)()

    def finished(self, outcome: Outcome) -> None:
        self.finished_.pop(outcome.source, lambda: None)()


@dataclass
class Bank:
    database: Database
    folder: Path
    embedder: HashEmbedder = field(default_factory=HashEmbedder)
    texts: dict[str, str] = field(default_factory=dict)  #: every text that a file ever held, by its hash

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        self.texts[sha256(text.encode()).hexdigest()] = text

    def run(self, watcher: Silent | None = None, name: str = "DOCS", *, workers: int = 1) -> dict[str, str]:
        options = IngestOptions(bank=self.folder, isolate=False, workers=workers, batch_size=2)
        report: IngestReport = ingest(self.database, name, [self.folder], self.embedder, options, watcher)
        return {o.source: o.mark for o in report.outcomes}

    def rows(self, query: str, name: str = "docs") -> list[tuple[object, ...]]:
        with self.database.owner(f"kb_{name}") as connection:
            return connection.execute(query).fetchall()  # type: ignore[call-overload, no-any-return]

    def check_whole(self) -> None:
        """What the ledger says of each file is so: all passages of the text with that hash, and no other's."""
        held: dict[object, list[str]] = {}
        for source, text in self.rows("SELECT source, text FROM chunks ORDER BY source, chunk_index"):
            held.setdefault(source, []).append(str(text))
        for source, digest, status, reason, count in self.rows(LEDGER):
            passages = held.pop(source, [])
            assert len(passages) == count, source
            assert (status == "indexed") == bool(passages), source
            assert status == "indexed" or reason, source
            if passages:
                text = self.texts[str(digest)]
                assert "\n\n".join(passages) == text.rstrip("\n"), source
        assert held == {}
        assert self.rows(COUNTS) == self.rows(RECOUNT)
        assert self.rows(OTHER_LENGTH) == [(0,)]
        assert self.rows("SELECT * FROM lexeme_deltas") == []

    def check_equals_the_folder(self) -> None:
        """After one more run the bank is that of an undisturbed first run, and another one has nothing to do."""
        self.run()
        self.check_whole()
        create_collection(self.database, "FRESH", self.embedder.identity())
        self.run(name="FRESH")
        assert self.rows(ROWS) == self.rows(ROWS, "fresh")
        assert self.rows(LEDGER) == self.rows(LEDGER, "fresh")
        assert self.rows(COUNTS) == self.rows(COUNTS, "fresh")
        assert set(self.run().values()) <= {"=", "!"}


def text_of(word: str, parts: int = 4) -> str:
    return "\n\n".join(f"# Part {n} of {word}\n\nBerth {n} of {word} has a bollard." for n in range(parts)) + "\n"


@pytest.fixture
def bank(database: Database, tmp_path: Path) -> Iterator[Bank]:
    folder = tmp_path / "docs"
    folder.mkdir()
    made = Bank(database, folder)
    create_collection(database, "DOCS", made.embedder.identity())
    for word in ("alpha", "bravo", "charlie", "delta"):
        made.write(f"{word}.md", text_of(word))
    yield made


def test_a_file_changed_between_hash_and_read_is_stored_with_the_hash_of_what_was_read(bank: Bank) -> None:
    marks = bank.run(Meanwhile(lambda: bank.write("bravo.md", text_of("tango"))))
    assert set(marks.values()) == {"+"}
    stored = dict(bank.rows("SELECT source, sha256 FROM files"))  # type: ignore[arg-type]
    assert stored["bravo.md"] == sha256(text_of("tango").encode()).hexdigest()  # type: ignore[index]
    bank.check_whole()
    assert set(bank.run().values()) == {"="}
    bank.check_equals_the_folder()


def test_a_file_changed_after_it_was_read_is_stored_as_it_was_and_read_again_by_the_next_run(bank: Bank) -> None:
    bank.run(Meanwhile(embedding_={"bravo.md": lambda: bank.write("bravo.md", text_of("tango"))}))
    bank.check_whole()
    assert bank.rows("SELECT count(*) FROM chunks WHERE text LIKE '%tango%'") == [(0,)]
    assert bank.run()["bravo.md"] == "+"
    bank.check_equals_the_folder()


def test_an_unchanged_file_that_changes_after_the_plan_is_left_to_the_next_run(bank: Bank) -> None:
    bank.run()
    assert bank.run(Meanwhile(lambda: bank.write("bravo.md", text_of("tango"))))["bravo.md"] == "="
    bank.check_whole()
    bank.check_equals_the_folder()


def test_a_file_deleted_between_hash_and_read_is_said_to_be_gone(bank: Bank) -> None:
    assert bank.run(Meanwhile((bank.folder / "bravo.md").unlink))["bravo.md"] == "!"
    assert bank.rows("SELECT status FROM files WHERE source = 'bravo.md'") == [("failed",)]
    bank.check_whole()
    bank.check_equals_the_folder()


def test_a_changed_file_deleted_between_hash_and_read_leaves_nothing_of_before(bank: Bank) -> None:
    bank.run()
    bank.write("bravo.md", text_of("tango"))
    assert bank.run(Meanwhile((bank.folder / "bravo.md").unlink))["bravo.md"] == "!"
    bank.check_whole()
    bank.check_equals_the_folder()


def test_a_file_deleted_while_its_passages_are_embedded_is_stored_and_taken_out_by_the_next_run(bank: Bank) -> None:
    marks = bank.run(Meanwhile(embedding_={"bravo.md": (bank.folder / "bravo.md").unlink}))
    assert marks["bravo.md"] == "+"
    bank.check_whole()
    bank.check_equals_the_folder()


def test_files_renamed_between_hash_and_read_are_found_under_their_new_names_by_the_next_run(bank: Bank) -> None:
    def rename() -> None:
        (bank.folder / "bravo.md").rename(bank.folder / "b2.md")
        (bank.folder / "delta.md").rename(bank.folder / "alpha.md")  # over another

    assert bank.run(Meanwhile(rename)) == {"alpha.md": "+", "bravo.md": "!", "charlie.md": "+", "delta.md": "!"}
    bank.check_whole()
    bank.check_equals_the_folder()


def test_two_files_that_change_names_during_a_run_are_not_mixed_up(bank: Bank) -> None:
    bank.run()

    def swap() -> None:
        (bank.folder / "bravo.md").rename(bank.folder / "x")
        (bank.folder / "alpha.md").rename(bank.folder / "bravo.md")
        (bank.folder / "x").rename(bank.folder / "alpha.md")

    bank.write("charlie.md", text_of("tango"))
    bank.run(Meanwhile(swap))
    bank.check_whole()
    bank.check_equals_the_folder()


def test_a_planned_rename_whose_file_changes_or_goes_away_keeps_what_it_planned_until_the_next_run(bank: Bank) -> None:
    bank.run()
    for word in ("alpha", "bravo"):
        (bank.folder / f"{word}.md").rename(bank.folder / f"{word}-2.md")

    def meanwhile() -> None:
        bank.write("alpha-2.md", text_of("tango"))
        (bank.folder / "bravo-2.md").unlink()

    marks = bank.run(Meanwhile(meanwhile))
    assert (marks["alpha-2.md"], marks["bravo-2.md"]) == ("~", "~")
    bank.check_whole()
    bank.check_equals_the_folder()


def test_a_file_that_is_back_before_it_is_taken_out_is_there_after_the_next_run(bank: Bank) -> None:
    bank.run()
    (bank.folder / "bravo.md").unlink()
    assert bank.run(Meanwhile(lambda: bank.write("bravo.md", text_of("bravo"))))["bravo.md"] == "-"
    bank.check_whole()
    sent = len(bank.embedder.texts)
    assert bank.run()["bravo.md"] == "+"
    assert len(bank.embedder.texts) == sent
    bank.check_equals_the_folder()


@pytest.mark.parametrize("kind", ["link", "folder", "pipe", "larger"])
def test_a_file_that_was_something_else_for_a_moment_is_indexed_once_it_is_back(bank: Bank, kind: str) -> None:
    path = bank.folder / "bravo.md"

    def become() -> None:
        path.unlink()
        if kind == "link":
            path.symlink_to(bank.folder / "alpha.md")
        elif kind == "folder":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.touch()
            os.truncate(path, 257 * 1024 * 1024)

    assert bank.run(Meanwhile(become))["bravo.md"] == "!"
    bank.check_whole()
    shutil.rmtree(path) if kind == "folder" else path.unlink()
    bank.write("bravo.md", text_of("bravo"))
    assert bank.run()["bravo.md"] == "+"
    bank.check_equals_the_folder()


def test_a_whole_folder_that_is_deleted_during_a_run_is_gone_after_the_next(bank: Bank) -> None:
    for n in range(6):
        bank.write(f"sub/n{n}.md", text_of(f"november {n}"))
    bank.run(Meanwhile(finished_={"sub/n1.md": lambda: shutil.rmtree(bank.folder / "sub")}))
    bank.check_whole()
    bank.check_equals_the_folder()


def test_with_several_workers_at_work_the_end_is_the_same(bank: Bank) -> None:
    for n in range(20):
        bank.write(f"n{n:02}.md", text_of(f"november {n}"))
    bank.run(workers=2)

    def upheaval() -> None:
        for n in range(0, 20, 4):
            bank.write(f"n{n:02}.md", text_of(f"oscar {n}"))
            (bank.folder / f"n{n + 1:02}.md").unlink()
            (bank.folder / f"n{n + 2:02}.md").rename(bank.folder / f"m{n:02}.md")

    for n in range(20):
        bank.write(f"n{n:02}.md", text_of(f"papa {n}"))
    bank.run(Meanwhile(upheaval), workers=2)
    bank.check_whole()
    bank.check_equals_the_folder()
