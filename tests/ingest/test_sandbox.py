"""Reading in a child process: what breaks a parser costs one file."""

import os
import signal
from pathlib import Path

import pytest

from agent_server.ingest.sandbox import ReadFile, Sandbox, Task, read
from agent_server.models import FileStatus, Rejected


def _task(folder: Path, name: str = "a.md") -> Task:
    return Task(folder / name, folder, name, 10**6, 800, 100)


def _die(task: Task) -> Rejected:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError(task)


def _hang(task: Task) -> Rejected:
    signal.pause()
    raise AssertionError(task)


def _die_of_b(task: Task) -> ReadFile | Rejected:
    return _die(task) if task.source == "b.md" else read(task)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.md").write_text("# Ferry\n\nIt leaves at noon.\n")
    (tmp_path / "b.md").write_text("# Bomb\n\nText.\n")
    return tmp_path


def test_chunks_come_back_from_the_child_without_the_bytes(folder: Path) -> None:
    with Sandbox(30) as sandbox:
        got = sandbox.read(_task(folder))
        assert got == read(_task(folder))
    assert isinstance(got, ReadFile)
    assert got.file.data == b""
    assert [c.text for c in got.chunks] == ["# Ferry\n\nIt leaves at noon."]


def test_a_file_that_kills_its_reader_is_damaged_and_the_next_one_is_read(folder: Path) -> None:
    with Sandbox(30, _die_of_b) as sandbox:
        broken = sandbox.read(_task(folder, "b.md"))
        assert isinstance(broken, Rejected)
        assert broken.status == FileStatus.DAMAGED
        assert "died of it" in broken.reason
        assert isinstance(sandbox.read(_task(folder)), ReadFile)


def test_a_file_that_takes_too_long_is_given_up(folder: Path) -> None:
    with Sandbox(0.2, _hang) as sandbox:
        slow = sandbox.read(_task(folder))
    assert isinstance(slow, Rejected)
    assert (slow.status, slow.reason) == (FileStatus.TOO_LARGE, "took longer than 0.2 s to read")


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

    monkeypatch.setattr("agent_server.ingest.sandbox.extract", throw)
    got = read(_task(folder))
    assert isinstance(got, Rejected)
    assert str(got.status) == status
    assert got.sha256


def test_no_child_is_left_behind(folder: Path) -> None:
    sandbox = Sandbox(30)
    sandbox.read(_task(folder))
    process = sandbox._process
    assert process is not None
    pid = process.pid
    assert pid is not None
    sandbox.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
