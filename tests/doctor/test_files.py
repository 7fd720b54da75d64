"""The ledger against the passages and against the folders: what differs is found, and what is printed cures it."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agent_server.doctor import files
from tests.doctor.ground import Ground

DAMAGES = {
    "a wrong chunk_count": ("FINANCE files", ["UPDATE files SET chunk_count = 7 WHERE source = 'guide.md'"]),
    "an indexed file without passages": ("FINANCE files", ["DELETE FROM chunks WHERE source = 'guide.md'"]),
    "an indexed file of no passages": (
        "FINANCE files",
        ["DELETE FROM chunks WHERE source = 'guide.md'", "UPDATE files SET chunk_count = 0 WHERE source = 'guide.md'"],
    ),
    "a failed file": ("FINANCE files", ["UPDATE files SET status = 'failed' WHERE source = 'guide.md'"]),
}


@pytest.mark.parametrize(("name", "damage"), DAMAGES.values(), ids=DAMAGES)
def test_a_ledger_that_is_wrong_is_found_and_cured_as_printed(ground: Ground, name: str, damage: list[str]) -> None:
    ground.break_by_sql(damage)
    ground.cured_of(name)


def _rewrite(folder: Path) -> None:
    (folder / "guide.md").write_text("# Guide\n\nMembers may ask nobody.\n")


BY_FILE: dict[str, Callable[[Path], object]] = {
    "a file changed": _rewrite,
    "a file changed, of the same size": lambda folder: (folder / "one.txt").write_text("x" * 54 + "\n"),
    "a file gone": lambda folder: (folder / "guide.md").unlink(),
    "a file new": lambda folder: (folder / "new.md").write_text("# New\n\nA new rule of the house.\n"),
}


@pytest.mark.parametrize("damage", BY_FILE.values(), ids=BY_FILE)
def test_a_folder_that_is_not_what_was_indexed_is_found_and_cured_as_printed(
    ground: Ground, damage: Callable[[Path], object]
) -> None:
    damage(ground.documents)
    ground.cured_of("FINANCE folder documents")


def test_a_folder_that_has_moved_is_found_and_cured_by_its_new_place(ground: Ground, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "documents"
    moved.parent.mkdir()
    shutil.move(ground.documents, moved)
    replace(ground, documents=moved).cured_of("FINANCE folder documents")


@pytest.mark.parametrize("damage", [_rewrite, BY_FILE["a file gone"]], ids=["changed", "gone"])
def test_of_a_folder_that_single_files_came_from_only_those_are_asked_for(
    ground: Ground, damage: Callable[[Path], object]
) -> None:
    ground.sql("UPDATE roots SET whole = false")
    (ground.documents / "not_asked_for.md").write_text("# Other\n\nNobody wanted this.\n")
    assert ground.findings() == {}
    damage(ground.documents)
    ground.cured_of("FINANCE folder documents")
    assert "not_asked_for.md" not in ground.kb("files", "FINANCE").out


def test_many_files_that_differ_from_the_ledger_are_read_again_by_their_folder() -> None:
    rows = [{"source": f"{n}.md", "root": "r", "held": 0, "stated": 1} for n in range(9)]
    found = files.check_ledger("X", {"indexed": 9}, rows, {"r": "/a folder"})
    assert found.cure == "kb ingest X '/a folder' --again"
