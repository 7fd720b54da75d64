"""The jobs that read citations, definitions and claims out of passages: what they did, in counts."""

import pytest

from agent_server.catalog import Collection
from agent_server.db import Database
from agent_server.settings import Settings
from nightly import derived
from nightly.jobs import Job, NightContext, StepReport
from nightly.run import JOBS
from tests.conftest import Builder
from tests.corpus import File, collection_of, fill, put
from tests.hash_embedder import HashEmbedder
from tests.nightly.nights import Clock
from tests.ollama_double import OllamaDouble

RULES = File(
    "rules.md",
    ["“Berth fee” means the price of a place at the pier for one night. See the guide.", "The berth fee must be paid."],
    media_type="text/markdown",
)


def _harbour(database: Database) -> None:
    fill(database, "HARBOUR", [RULES])


@pytest.fixture
def stock(request: pytest.FixtureRequest) -> Builder | None:
    return _harbour if "harbour" in request.fixturenames else None


@pytest.fixture
def harbour(database: Database) -> Collection:
    return collection_of(database, "HARBOUR")


def _job(name: str) -> Job:
    return next(job for job in JOBS if job.name == name)


def _run(name: str, database: Database, collection: Collection, settings: Settings) -> StepReport:
    return _job(name).run(database, collection, NightContext(settings, Clock(), None, HashEmbedder))


@pytest.mark.parametrize("name", ["citations", "defines", "claims"])
def test_a_source_is_read_once_and_again_when_it_has_changed(
    database: Database, harbour: Collection, settings: Settings, name: str
) -> None:
    assert _run(name, database, harbour, settings).counts["sources"] == 1
    again = _run(name, database, harbour, settings)
    assert (again.ok, again.counts["sources"]) == (True, 0)
    assert again.summary.startswith("0 sources read")
    put(database, harbour, File("rules.md", [*RULES.passages, "And more."], media_type="text/markdown"))
    assert _run(name, database, harbour, settings).counts["sources"] == 1


def test_terms_and_claims_are_counted(database: Database, harbour: Collection, settings: Settings) -> None:
    assert _run("defines", database, harbour, settings).counts == {"sources": 1, "terms": 1, "edges": 1}
    counts = _run("claims", database, harbour, settings).counts
    assert counts["found"] > 0
    assert counts["verified"] > 0
    assert not any(name.startswith("model") for name in counts)


def test_a_language_model_that_does_not_answer_fails_the_step_and_takes_nothing_back(
    database: Database, harbour: Collection, settings: Settings
) -> None:
    with OllamaDouble() as double:
        double.fault(path="*", status=404)
        asked = settings.model_copy(update={"llm": "ollama", "llm_model": "m", "ollama_url": double.url})
        report = derived.claims_job(database, harbour, NightContext(asked, Clock(), None, HashEmbedder))
    assert not report.ok
    assert report.findings
    assert report.counts["model_claims"] == 0
    assert report.counts["verified"] > 0
