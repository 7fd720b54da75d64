"""Texts too large to be held: windows lose nothing, tear nothing, and know what stands above them."""

import hashlib
import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_server.catalog import create_collection
from agent_server.db import Database
from agent_server.ingest.large import Cut, cut_markdown, cut_plain, survey, windows
from agent_server.ingest.pipeline import ingest
from agent_server.ingest.prepare import Part
from agent_server.ingest.reading import Finished, Opened, Task, read
from agent_server.ingest.spool import Spool
from agent_server.ingest.steps import IngestOptions
from agent_server.models import FileStatus, Rejected
from tests.hash_embedder import HashEmbedder


def _read(path: Path, *, hold_bytes: int) -> tuple[list[dict[str, Any]], Finished]:
    got = list(read(Task(path, path.parent, path.name, 10**9, 800, 100, hold_bytes=hold_bytes)))
    assert isinstance(got[0], Opened)
    assert isinstance(got[-1], Finished)
    rows = [row for part in got[1:-1] if isinstance(part, Part) for row in json.loads(part.rows)]
    return rows, got[-1]


@pytest.fixture
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "__kwdefaults__", {**windows.__kwdefaults__, "size_chars": 5_000})


def _lines(rows: list[dict[str, Any]]) -> set[tuple[tuple[str, ...], str]]:
    """Every line with the headings above it."""
    return {(tuple(r["heading_path"]), line) for r in rows for line in r["text"].split("\n") if line.strip()}


def _sections(count: int, heading: str) -> str:
    rng = random.Random(3)
    return "\n\n".join(
        f"{heading.format(n)}\n\n" + "\n\n".join(f"Rope {n}.{k} holds {rng.random()} tons." for k in range(12))
        for n in range(count)
    )


@given(
    st.lists(
        st.sampled_from(["word ", "\n", "\n\n", "é", "x" * 90, "```\n", "# H\n\n", "~~~~ py\n", "> ", "e\u0301"]),
        max_size=400,
    ),
    st.sampled_from([cut_plain, cut_markdown]),
)
def test_windows_hold_every_character_in_order(pieces: list[str], cut: object) -> None:
    text = "".join(pieces)
    seen: list[Cut] = []

    def watched(held: str, size: int) -> Cut:
        found = cut(held, size)  # type: ignore[operator]
        assert 0 < found.at <= size
        seen.append(found)
        return found

    got = list(windows(io.BytesIO(text.encode()), "utf-8-sig", watched, size_chars=50))
    opened = ["", *(c.opening for c in seen)]
    closed = [*(c.closing for c in seen), ""]
    bare = [w[len(o) : len(w) - len(c)] for w, o, c in zip(got, opened, closed, strict=False)]
    assert "".join(bare) == text


def test_a_window_never_begins_with_what_could_be_front_matter() -> None:
    text = "---\ntitle: Rope\n---\n\n" + "---\n\nText of a rule.\n\n" * 500
    got = list(windows(io.BytesIO(text.encode()), "utf-8", cut_markdown, size_chars=500))
    assert len(got) > 10
    assert all(w.startswith("\n") for w in got[1:])


def test_a_fence_longer_than_a_window_is_closed_and_opened_again() -> None:
    text = "Before.\n\n```python\n" + "x = 1\n\n" * 300 + "```\n\nAfter.\n"
    got = list(windows(io.BytesIO(text.encode()), "utf-8", cut_markdown, size_chars=400))
    inside = [w for w in got if "x = 1" in w]
    assert len(inside) > 3
    assert all(w.count("```") % 2 == 0 for w in got)
    assert all(w.startswith("```python\n") for w in inside[2:])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_the_encoding_of_a_large_text_is_known_before_it_is_read(encoding: str) -> None:
    text = "Die Fähre kostet zwölf Gulden für Gäste über Nacht. " * 5_000
    data = text.encode(encoding)
    digest, found = survey(io.BytesIO(data))
    assert digest == hashlib.sha256(data).hexdigest()
    assert "".join(windows(io.BytesIO(data), found, cut_plain, size_chars=10_000)) == text


@pytest.mark.parametrize(
    ("name", "heading", "kind"),
    [("big.md", "## Pier {}", "markdown"), ("big.txt", "SECTION {}", "plain")],
)
@pytest.mark.usefixtures("small_windows")
def test_a_text_read_in_windows_has_every_line_below_the_headings_it_has_in_one_that_is_held(
    tmp_path: Path, name: str, heading: str, kind: str
) -> None:
    path = tmp_path / name
    top = "# Harbor\n\nAll of it.\n\n" if kind == "markdown" else ""
    path.write_text(top + _sections(60, heading))
    held, _ = _read(path, hold_bytes=10**9)
    windowed, finished = _read(path, hold_bytes=100)
    assert finished.document.title == ("Harbor" if kind == "markdown" else "big")
    assert [r["chunk_index"] for r in windowed] == list(range(len(windowed)))
    starts = [r["char_start"] for r in windowed]
    assert starts == sorted(set(starts))
    assert _lines(windowed) == _lines(held)


@pytest.mark.usefixtures("small_windows")
def test_headings_above_a_window_stay_above_its_passages(tmp_path: Path) -> None:
    path = tmp_path / "deep.txt"
    path.write_text(
        "CHAPTER I. ROPES\n\n1.1 Hemp\n\n" + "Hemp is laid in three strands.\n\n" * 600 + "1.2 Wire\n\nWire is new.\n"
    )
    rows, _ = _read(path, hold_bytes=100)
    paths = list(dict.fromkeys(tuple(r["heading_path"]) for r in rows))
    assert paths == [("CHAPTER I. ROPES", "1.1 Hemp"), ("CHAPTER I. ROPES", "1.2 Wire")]


@pytest.mark.usefixtures("small_windows")
def test_a_large_text_that_changes_while_it_is_read_is_failed_and_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("A line of the log.\n\n" * 80_000)
    stream = read(Task(path, tmp_path, "log.txt", 10**9, 800, 100, hold_bytes=100))
    assert isinstance(next(stream), Opened)
    assert isinstance(next(stream), Part)
    path.write_text("Another line of it.\n\n" * 80_000)
    *_, last = stream
    assert isinstance(last, Rejected)
    assert (last.status, last.reason) == (FileStatus.FAILED, "changed while it was read")


def test_a_large_text_of_blanks_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "blank.txt"
    path.write_text(" \n" * 100_000)
    *_, last = read(Task(path, tmp_path, "blank.txt", 10**9, 800, 100, hold_bytes=100))
    assert isinstance(last, Rejected)
    assert last.status == FileStatus.EMPTY


class _Killed(Exception):
    pass


class _Dying(HashEmbedder):
    """Ends the run in the middle of a file, as a kill would: nothing is caught on the way."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def embed_passages(self, texts: object) -> object:  # type: ignore[override]
        if len(self.calls) == self.after:
            raise _Killed
        return super().embed_passages(texts)


def test_a_run_that_dies_in_the_middle_of_a_large_file_repeats_one_batch(database: Database, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "big.txt").write_text(_sections(200, "SECTION {}"))
    first = _Dying(after=5)
    create_collection(database, "DOCS", first.identity())
    options = IngestOptions(bank=folder, isolate=False, batch_size=16)
    with pytest.raises(_Killed):
        ingest(database, "DOCS", [folder], first, options)
    second = HashEmbedder()
    report = ingest(database, "DOCS", [folder], second, options)
    assert report.cached == 5 * 16
    assert set(first.texts).isdisjoint(second.texts)
    assert len(second.texts) == report.embedded


def test_one_file_with_more_passages_than_memory_holds_is_stored_whole(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spool.__init__, "__defaults__", (10_000,))
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "big.txt").write_text(_sections(150, "SECTION {}"))
    embedder = HashEmbedder()
    create_collection(database, "DOCS", embedder.identity())
    report = ingest(database, "DOCS", [folder], embedder, IngestOptions(bank=folder, isolate=False))
    with database.owner("kb_docs") as connection:
        stored = connection.execute("SELECT chunk_index, text FROM chunks ORDER BY 1").fetchall()
    assert [n for n, _ in stored] == list(range(report.outcomes[0].chunks))
    assert "Rope 149.11 holds" in stored[-1][1]
