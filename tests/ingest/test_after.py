"""What follows an ingestion is called with what changed, and a fault in it loses nothing."""

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from agent_server.catalog import Collection, create_collection
from agent_server.db import Database
from agent_server.ingest import after, pipeline
from agent_server.ingest.steps import IngestOptions
from tests.hash_embedder import HashEmbedder

CALLS: list[tuple[str, list[str]]] = []


def note(database: Database, collection: Collection, changed: list[str]) -> None:
    CALLS.append((collection.name, sorted(changed)))


def fail(database: Database, collection: Collection, changed: list[str]) -> None:
    raise RuntimeError("the moon\nis full")


def _hooks(*names: str) -> list[EntryPoint]:
    return [EntryPoint(name, f"{__name__}:{name}", after.GROUP) for name in names]


@pytest.fixture
def run(database: Database, hash_embedder: HashEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    CALLS.clear()
    create_collection(database, "DOCS", hash_embedder.identity())
    monkeypatch.setattr(after, "registered", lambda: _hooks("note"))

    def ingest(**options: Any) -> pipeline.IngestReport:
        chosen = IngestOptions(bank=tmp_path, isolate=False, **options)
        return pipeline.ingest(database, "DOCS", [tmp_path], hash_embedder, chosen)

    return ingest


def test_functions_are_told_which_sources_came_changed_and_went(run: Any, database: Database, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nOne.")
    (tmp_path / "b.md").write_text("# B\n\nTwo.")
    run()
    run()
    (tmp_path / "a.md").write_text("# A\n\nOther.")
    (tmp_path / "b.md").unlink()
    run()
    pipeline.remove(database, "DOCS", ["a.md"])
    assert CALLS == [("DOCS", ["a.md", "b.md"]), ("DOCS", []), ("DOCS", ["a.md", "b.md"]), ("DOCS", ["a.md"])]


def test_a_dry_run_calls_nothing(run: Any, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# A\n\nOne.")
    run(dry_run=True)
    assert CALLS == []


def test_a_fault_is_reported_and_the_ingestion_and_the_other_functions_stand(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        after, "registered", lambda: [*_hooks("fail", "note"), EntryPoint("gone", "no.such:thing", "x")]
    )
    (tmp_path / "a.md").write_text("# A\n\nOne.")
    report = run()
    assert [o.mark for o in report.outcomes] == ["+"]
    assert CALLS == [("DOCS", ["a.md"])]
    assert report.faults[0] == "fail was not refreshed: RuntimeError: the moon is full"
    assert report.faults[1].startswith("gone was not refreshed: ModuleNotFoundError")
    assert report.to_json()["faults"] == report.faults
    assert {"fail", "note", "gone"} <= set(report.seconds)


def test_the_project_refreshes_its_edges_after_an_ingestion() -> None:
    import tomllib  # noqa: PLC0415

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    hooks = project["entry-points"][after.GROUP]
    assert hooks["citations"] == "nightly.citations:after_ingest"
    assert all(callable(EntryPoint(name, value, after.GROUP).load()) for name, value in hooks.items())
