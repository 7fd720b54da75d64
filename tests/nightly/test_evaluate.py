"""The gold questions of the nights: a made regression turns a night red and is explained; anything else stays green."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent_server.catalog import get_collection
from agent_server.db import Database
from agent_server.errors import BadQuestions, RunRefused
from agent_server.settings import Settings
from nightly import evaluate
from nightly.evaluate_changes import since
from nightly.jobs import NightContext, StepReport
from tests.conftest import Builder
from tests.corpus import File, fill, put
from tests.evaluation.conftest import question
from tests.hash_embedder import HashEmbedder

#: Passages of two sorts: those that say what they are about, and those of which only the heading says it.
TOPICS = ("garden", "laundry", "elevator", "parking", "bicycle", "balcony", "heating", "rubbish")
TOLD = {
    t: f"The {t} office is open on the {n}th day of each month for whoever asks about {t}."
    for n, t in enumerate(TOPICS)
}
UNTOLD = {
    t: f"Residents hand in form {n}{n} before it is used, and the caretaker signs it." for n, t in enumerate(TOPICS)
}
RIVALS = tuple(f"Circular {n}: residents hand in another form." for n in range(4))
NIGHT = datetime(2026, 3, 2, 2, tzinfo=UTC)

Night = Callable[..., StepReport]


def _files(topic: str, heading: str) -> File:
    return File(f"{topic}.md", (UNTOLD[topic],), heading=heading)


def _build(database: Database) -> None:
    files = [_files(t, f"House rules > {t}") for t in TOPICS]
    files.append(File("offices.md", tuple(TOLD.values())))
    files.append(File("circulars.md", RIVALS, authority=1.0))
    fill(database, "HOUSE", files)


@pytest.fixture(scope="module")
def stock() -> Builder:
    return _build


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    path = tmp_path / "bank" / "gold" / "HOUSE.jsonl"
    path.parent.mkdir(parents=True)
    rows = [
        question(
            f"p{n}", f"house rules on the {t}: residents hand in which form", (f"{t}.md", UNTOLD[t]), kind="procedural"
        )
        for n, t in enumerate(TOPICS)
    ]
    rows += [
        question(f"f{n}", f"When is the {t} office open?", ("offices.md", TOLD[t]), kind="factual")
        for n, t in enumerate(TOPICS)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def night(database: Database, gold: Path) -> Night:
    """Evaluates HOUSE, each time a day later."""
    nights = iter(range(100))

    def evaluated(embedder: HashEmbedder | None = None, **options: Any) -> StepReport:
        at = NIGHT + timedelta(days=next(nights))
        settings = Settings(bank=gold.parents[1])
        with database.owner() as connection:
            collection = get_collection(connection, "HOUSE")
        context = NightContext(settings, lambda: at, None, lambda: embedder or HashEmbedder(), options)
        return evaluate.job(database, collection, context)

    return evaluated


def _without_context(database: Database, *topics: str) -> None:
    """Store some files again without their context line, as another version of the pipeline."""
    with database.owner() as connection:
        collection = get_collection(connection, "HOUSE")
    for version in ("old", "without context"):
        with database.owner(collection.schema_name) as connection:
            sources = [f"{t}.md" for t in topics]
            connection.execute("UPDATE files SET pipeline_version = %s WHERE source = ANY(%s)", (version, sources))
        if version == "old":  # what stands there as this very version is not stored again
            for topic in topics:
                put(database, collection, _files(topic, ""))


def _kept(database: Database) -> list[dict[str, Any]]:
    statement = "SELECT to_jsonb(e) FROM kb.evaluations e ORDER BY at"
    with database.owner() as connection:
        return [row[0] for row in connection.execute(statement).fetchall()]


def _kinds(database: Database) -> list[str]:
    return [f["name"] for f in _kept(database)[-1]["findings"] if f["about"] == "kind"]


def test_nights_without_a_change_stay_green_and_keep_their_figures(database: Database, night: Night) -> None:
    first, second = night(), night()
    assert (first.ok, second.ok) == (True, True)
    assert "nothing to compare with" in first.summary
    assert "no significant drop" in second.summary
    one, two = _kept(database)
    assert one["metrics"]["all"] == two["metrics"]["all"]
    assert set(one["metrics"]["kinds"]) == {"procedural", "factual"}
    assert first.counts["ndcg@10"] == one["metrics"]["all"]["ndcg@10"]["mean"]
    assert set(one["questions"]) == {f"{kind}{n}" for kind in "pf" for n in range(8)}
    assert one["questions"]["p0"]["kind"] == "procedural"
    assert (one["findings"], one["good"]) == ([], True)
    assert (one["context"]["files"]["count"], one["context"]["model"]["digest"]) == (10, "hash-1")
    assert [("each" in e["context"]["files"]) for e in (one, two)] == [False, True]  # only the last good one needs it


def test_a_dropped_context_line_turns_the_night_red_and_names_kind_questions_and_files(
    database: Database, night: Night
) -> None:
    night()
    _without_context(database, *TOPICS)
    report = night()
    assert not report.ok
    assert _kinds(database) == ["procedural"]
    told = "\n".join(report.findings)
    assert "kind procedural fell: " in told
    assert "kind factual" not in told
    assert "question p" in told
    assert "question f" not in told
    assert "changed since: files changed: 8 (balcony.md, bicycle.md" in told
    assert not _kept(database)[-1]["good"]
    # The bad night is not what the next one is compared with.
    assert not night().ok
    assert night(accept=True).ok
    assert night().ok


def test_authority_that_overrides_relevance_turns_the_night_red_and_the_setting_is_named(
    database: Database, night: Night
) -> None:
    night()
    with database.owner() as connection:
        connection.execute("ALTER TABLE kb.collections DROP CONSTRAINT collections_authority_weight_check")
        connection.execute("UPDATE kb.collections SET authority_weight = 1.0")
    report = night()
    assert not report.ok
    assert "procedural" in _kinds(database)
    assert "changed since: settings authority_weight: 0.08 -> 1" in report.findings
    assert not any("files" in line for line in report.findings)


def test_a_gain_and_a_small_loss_stay_green(database: Database, night: Night) -> None:
    night()
    with database.owner("kb_house") as connection:
        connection.execute("DELETE FROM chunks WHERE source = 'circulars.md'")
    assert night().ok
    _without_context(database, "garden")
    assert night().ok


def test_quotes_that_are_gone_are_named_and_do_not_count_as_a_drop(database: Database, night: Night) -> None:
    night()
    with database.owner("kb_house") as connection:
        connection.execute("DELETE FROM files WHERE source = 'garden.md'")
    report = night()
    assert not report.ok
    assert report.counts["lost"] == 1
    assert "question p0: its quote stands in no passage of garden.md any more" in report.findings
    assert "changed since: files gone: 1 (garden.md)" in report.findings
    assert _kept(database)[-1]["good"]
    with database.owner("kb_house") as connection:
        connection.execute("DELETE FROM files")
    with pytest.raises(BadQuestions, match="stand in no live passage"):
        night()


def test_a_question_that_was_written_anew_is_not_compared(database: Database, night: Night, gold: Path) -> None:
    night()
    rows = [json.loads(line) for line in gold.read_text().splitlines()]
    for row in rows[:8]:
        row["question"] = "zzz"
    gold.write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = night()
    assert report.ok
    assert _kept(database)[-1]["metrics"]["kinds"]["procedural"]["ndcg@10"]["mean"] < 0.5


def test_a_collection_without_gold_questions_is_passed_over_and_that_is_said(
    database: Database, night: Night, gold: Path
) -> None:
    gold.unlink()
    report = night()
    assert (report.ok, report.summary) == (True, "no gold questions: there is no gold/HOUSE.jsonl in the bank")
    assert _kept(database) == []


class Silent(HashEmbedder):
    """Embeds passages, and no question."""

    def embed_query(self, text: str) -> Any:
        self.lost_after = 0
        return super().embed_query(text)


def test_a_night_whose_embedder_does_not_answer_measures_nothing(database: Database, night: Night) -> None:
    with pytest.raises(RunRefused, match="the dense arm did not run"):
        night(Silent())
    assert _kept(database) == []


def test_what_changed_is_named_and_no_change_is_said() -> None:
    now = {
        "files": {"count": 2, "sha256": "b", "each": {"a.md": "1", "b.md": "2"}},
        "gold": "g",
        "model": {"model": "m", "digest": "new"},
        "settings": {"fusion": "rrf", "ef_search": 300},
        "edges": {"cites": 3},
        "passages": {"passages": 7},
        "code": {"agent_server": "x", "nightly": "y"},
        "software": {"postgres": "18.6"},
    }
    before = {
        **now,
        "files": {"count": 2, "sha256": "a", "each": {"a.md": "0", "c.md": "2"}},
        "model": {"model": "m", "digest": "old"},
        "settings": {"fusion": "rrf", "ef_search": None},
        "code": {"agent_server": "w", "nightly": "y"},
    }
    assert [(f.name, f.text) for f in since(NIGHT, before, now)] == [
        ("files added", "1 (b.md)"),
        ("files changed", "1 (a.md)"),
        ("files gone", "1 (c.md)"),
        ("model digest", "old -> new"),
        ("settings ef_search", "nothing -> 300"),
        ("code", "of agent_server"),
    ]
    assert [f.text for f in since(NIGHT, now, now)] == ["all that is recorded is as it was on 2026-03-02 02:00"]
