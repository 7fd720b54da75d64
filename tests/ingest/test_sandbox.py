"""Reading in a child process: what breaks a parser costs one file."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_server.errors import SandboxNotStarted
from agent_server.ingest.prepare import Part
from agent_server.ingest.reading import Finished, Opened, Read, Task, read
from agent_server.ingest.sandbox import Sandbox
from agent_server.models import FileStatus, Rejected


def _task(folder: Path, name: str = "a.md") -> Task:
    return Task(folder / name, folder, name, 10**7, 800, 100)


def _die(task: Task) -> Iterator[Read]:
    yield next(read(task))
    os.kill(os.getpid(), signal.SIGKILL)


def _hang(task: Task) -> Iterator[Read]:
    yield next(read(task))
    signal.pause()


def _die_at_once(*_: object) -> None:
    os._exit(7)


def _die_of_b(task: Task) -> Iterator[Read]:
    return _die(task) if task.source == "b.md" else read(task)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text("# Ferry\n\nIt leaves at noon.\n")
    (tmp_path / "b.md").write_text("# Bomb\n\nText.\n")
    return tmp_path


def test_passages_come_back_from_the_child_as_they_would_be_read_here(folder: Path) -> None:
    with Sandbox(30) as sandbox:
        got = list(sandbox.read(_task(folder)))
    assert got == list(read(_task(folder)))
    opened, part, finished = got
    assert isinstance(opened, Opened)
    assert opened.sha256
    assert isinstance(part, Part)
    assert part.texts == ("Ferry\n\n# Ferry\n\nIt leaves at noon.",)
    assert isinstance(finished, Finished)
    assert (finished.document.title, finished.document.text) == ("Ferry", "")


def test_a_file_that_kills_its_reader_is_damaged_and_the_next_one_is_read(folder: Path) -> None:
    with Sandbox(30, _die_of_b) as sandbox:
        *_, broken = sandbox.read(_task(folder, "b.md"))
        assert isinstance(broken, Rejected)
        assert broken.status == FileStatus.DAMAGED
        assert "died of it" in broken.reason
        assert broken.sha256
        assert not broken.settled  # it was killed, perhaps by a machine without memory
        assert isinstance(list(sandbox.read(_task(folder)))[-1], Finished)


def test_a_file_that_takes_too_long_is_given_up(folder: Path) -> None:
    with Sandbox(0.5, _hang) as sandbox:
        *_, slow = sandbox.read(_task(folder))
    assert isinstance(slow, Rejected)
    assert (slow.status, slow.settled) == (FileStatus.TOO_LARGE, False)
    assert slow.reason == "took longer than 0.5 s to read; the next run tries again"


def test_a_reading_that_is_given_up_leaves_nothing_for_the_next_one(folder: Path) -> None:
    (folder / "long.md").write_text("# Long\n\n" + "A sentence of some words. " * 60_000)
    with Sandbox(30) as sandbox:
        stream = sandbox.read(_task(folder, "long.md"))
        assert isinstance(next(stream), Opened)
        assert isinstance(next(stream), Part)
        stream.close()  # type: ignore[attr-defined]
        assert list(sandbox.read(_task(folder))) == list(read(_task(folder)))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (MemoryError(), "too_large"),
        (RecursionError(), "too_large"),
        (ValueError("odd"), "failed"),
        (OSError(5, "io"), "failed"),
    ],
)
def test_what_a_parser_throws_becomes_a_status(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, status: str
) -> None:
    def throw(*_: object) -> None:
        raise error

    monkeypatch.setattr("agent_server.ingest.reading.extract", throw)
    *_, got = read(_task(folder))
    assert isinstance(got, Rejected)
    assert str(got.status) == status
    assert got.sha256


def test_a_child_that_dies_while_it_starts_is_an_error_of_the_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent_server.ingest.sandbox._serve", _die_at_once)
    with Sandbox(30) as sandbox, pytest.raises(SandboxNotStarted, match="exit code 7"):
        list(sandbox.read(_task(folder)))


def test_no_child_is_left_behind(folder: Path) -> None:
    sandbox = Sandbox(30)
    list(sandbox.read(_task(folder)))
    process = sandbox._process
    assert process is not None
    pid = process.pid
    assert pid is not None
    sandbox.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
