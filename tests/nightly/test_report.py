"""`kb report`: one page that needs nothing else, whose figures are those of the database."""

import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

from agent_server.catalog import get_collection
from agent_server.db import Database
from agent_server.retrieval.search import search
from nightly import report_plot
from nightly.report import render
from nightly.report_data import gather
from tests.conftest import Builder
from tests.corpus import File, fill
from tests.doors.conftest import Kb, kb, plain_kb  # noqa: F401  fixtures
from tests.hash_embedder import HashEmbedder

NOW = datetime(2026, 3, 5, 8, tzinfo=UTC)
HOSTILE = '<script src="https://evil.example/x.js"></script>"\'&\u202egnp.md'
_VOID = {"meta", "br"}


def _build(database: Database) -> None:
    """A collection with a file of a hostile name, searches, and nights: missed, late, and failed."""
    fill(database, "FLATS", [File("rules.md", ["Dogs are welcome.", "Rent is due."]), File(HOSTILE, ["A third one."])])
    search(database, "FLATS", f"dogs {HOSTILE}", HashEmbedder())
    with database.owner("kb_flats") as connection:
        connection.execute("UPDATE files SET indexed_at = '2026-03-01 12:00+00' WHERE source = 'rules.md'")
        connection.execute("UPDATE files SET indexed_at = '2026-03-03 12:00+00' WHERE source <> 'rules.md'")
        connection.execute(
            "INSERT INTO files (source, root, sha256, size_bytes, media_type, status, reason, pipeline_version)"
            " SELECT 'bad' || n || '.png', 'r', '', 1, '', 'rejected', %s, '' FROM generate_series(1, 103) n",
            (f"no text: {HOSTILE}",),
        )
    with database.owner() as connection:
        for n, recall in enumerate((0.9, 0.97)):
            at = NOW - timedelta(days=2 - n)
            for tried in (recall - 0.1, recall):
                connection.execute(
                    "INSERT INTO kb.recall_samples (collection, at, filtered, searches, k, ef_search, recall, index_ms,"
                    " exact_ms) VALUES ('FLATS', %s, false, 30, 10, 200, %s, 1, 2)",
                    (at, tried),
                )
            metrics = {"all": {"ndcg@10": {"mean": 0.7 - n / 10}}, "kinds": {"factual": {"ndcg@10": {"mean": 0.6}}}}
            findings = [{"about": "question", "name": HOSTILE, "before": 1.0, "after": 0.0}] if n else []
            connection.execute(
                "INSERT INTO kb.evaluations (collection, at, good, metrics, questions, context, findings)"
                " VALUES ('FLATS', %s, %s, %s, '{}', '{}', %s)",
                (at, not n, json.dumps(metrics), json.dumps(findings)),
            )
        connection.execute(
            "INSERT INTO kb.runs (started_at, ended_at, outcome, summary) VALUES (%s, %s, 'failed', 'one step failed')",
            (NOW - timedelta(hours=6), NOW - timedelta(hours=5)),
        )
        connection.execute(
            "INSERT INTO kb.run_steps (run_id, step, job, collection, started_at, ended_at, outcome, counts, error, findings)"
            " SELECT run_id, 1, 'ingest', 'FLATS', started_at, ended_at, 'failed',"
            ' \'{"indexed": 17, "not_indexed": 2, "removed": 0}\', %s, jsonb_build_array(%s::text, \'bad.png: rejected\')'
            " FROM kb.runs",
            (HOSTILE, HOSTILE),
        )
        connection.execute(
            "INSERT INTO kb.runs (due_at, started_at, ended_at, outcome, summary) VALUES"
            " (%s, %s, %s, 'skipped', 'missed: nobody looked'), (%s, %s, %s, 'ok', 'all well')",
            (
                *(NOW - timedelta(days=3), NOW - timedelta(days=2, hours=1), NOW - timedelta(days=2, hours=1)),
                *(
                    NOW - timedelta(days=2),
                    NOW - timedelta(days=2, hours=-1),
                    NOW - timedelta(days=2, hours=-1, minutes=-2),
                ),
            ),
        )


@pytest.fixture(scope="module")
def stock() -> Builder:
    return _build


class Page(HTMLParser):
    """Reads a page as strictly as it can: every tag is closed in order, every id is there once."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []
        ids = [v for k, v in self.attributes if k == "id"]
        assert len(ids) == len(set(ids))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(k, v or "") for k, v in attrs]
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def test_hostile_names_are_text_and_nothing_is_fetched(database: Database) -> None:
    text = render(gather(database, NOW))
    page = Page(text)
    assert "script" not in page.tags
    assert {"link", "img", "iframe", "object", "form"}.isdisjoint(page.tags)
    assert {k for k, _ in page.attributes if k.startswith("on")} == set()
    assert all(v.startswith("#") for k, v in page.attributes if k in ("href", "src", "xlink:href"))
    assert not re.search(r"https?:|//|url\(|@import", re.sub(r"https://evil\.example/x\.js", "", text))
    assert "default-src 'none'" in text
    assert "\u202e" not in text
    shown = HOSTILE.replace("\u202e", "\N{REPLACEMENT CHARACTER}")
    assert f"no text: {shown}" in page.text  # a reason
    assert f"question {shown}: 1.000 -> 0.000" in page.text  # a finding
    assert page.text.count(shown) >= 102  # reasons, the question asked, an error


def test_figures_are_those_of_the_database(database: Database) -> None:
    figures = gather(database, NOW)
    page = Page(render(figures))
    with database.owner("kb_flats") as connection:
        (passages, files) = connection.execute(  # type: ignore[misc]
            "SELECT (SELECT count(*) FROM chunks), (SELECT count(*) FROM files WHERE status <> 'removed')"
        ).fetchone()
        slow = connection.execute("SELECT query FROM searches").fetchall()
    (flats,) = figures.collections
    assert (flats.stats["passages"], flats.stats["files"]) == (passages, files) == (3, 105)
    assert f"FLATS {files} {passages} 3" in page.text
    assert [s["query"] for s in flats.slowest] == [row[0] for row in slow]
    assert [(str(g["day"]), g["files"], g["passages"]) for g in flats.growth] == [
        ("2026-03-01", 1, 2),
        ("2026-03-03", 1, 1),
    ]
    assert [r["recall"] for r in flats.recall] == [0.9, 0.97]  # of several at one time the last
    assert "2 indexed, 103 rejected." in page.text
    assert "And 3 more: kb files FLATS." in page.text
    assert "recall@10 of the dense index" in page.text
    assert "without a filter, 2026-03-04 08:00: 0.97" in page.text
    assert "passages, 2026-03-03 00:00: 3" in page.text
    assert "ndcg@10 0.600 on 2026-03-04 08:00: fell against the last good night" in page.text
    assert "all questions, 2026-03-03 08:00: 0.7" in page.text
    assert "failed 1 h 0 min · one step failed" in page.text
    assert "indexed 17, not indexed 2 " in page.text  # what is nothing is left out
    assert page.text.count("bad.png: rejected") == 1
    assert figures.runs[0]["steps"][0]["error"] == HOSTILE


def test_nights_stand_under_their_hour_and_a_late_one_says_when_it_started(database: Database) -> None:
    text = Page(render(gather(database, NOW))).text
    assert "2026-03-03 08:00 ok started 2026-03-03 09:00 · 2 min 0 s · all well" in text
    assert "2026-03-02 08:00 skipped missed: nobody looked" in text


def test_an_empty_bank_is_said_in_words(database: Database) -> None:
    with database.owner() as connection:
        connection.execute("DELETE FROM kb.runs")
        connection.execute("DELETE FROM kb.recall_samples")
        connection.execute("DELETE FROM kb.evaluations")
    with database.owner("kb_flats") as connection:
        connection.execute("DELETE FROM searches")
        connection.execute("DELETE FROM files")
    text = Page(render(gather(database, NOW))).text
    for words in (
        "No night has run yet.",
        "No file is indexed yet.",
        "Gold questions were never asked at night",
        "Recall was never measured.",
        "No search is recorded.",
        "No file was ever ingested.",
    ):
        assert words in text
    with database.owner() as connection:
        connection.execute("DELETE FROM kb.collections")
    assert "There is no collection yet." in Page(render(gather(database, NOW))).text


def test_the_page_is_written_into_a_file_or_shown(kb: Kb, database: Database, tmp_path: Path) -> None:  # noqa: F811
    out = tmp_path / "report.html"
    said = kb("report", "--out", str(out))
    assert (said.code, said.out) == (0, "")
    assert "FLATS" in Page(out.read_text(encoding="utf-8")).text
    assert kb("report").out.startswith("<!doctype html>")
    with database.owner() as connection:
        name = get_collection(connection, "FLATS").name
    found = kb("report", "--json").json
    assert [c["name"] for c in found["collections"]] == [name]
    assert found["runs"][0]["steps"][0]["counts"] == {"indexed": 17, "not_indexed": 2, "removed": 0}


def test_a_plot_has_its_points_where_their_values_are() -> None:
    day = timedelta(days=1)
    drawn = report_plot.lines("<b>", {"a & b": [(NOW, 0.0), (NOW + day, 1.0)], "c": [(NOW, 0.5)]}, low=0, high=1)
    page = Page(drawn)
    points = [v for k, v in page.attributes if k == "points"]
    assert points == ["64.0,212.0 628.0,12.0", "64.0,112.0"]
    assert "&lt;b&gt;" in drawn
    assert "a &amp; b" in drawn
    assert report_plot.lines("none", {}) == ""


def test_one_point_stands_in_the_middle_over_its_day() -> None:
    page = Page(report_plot.lines("one", {"a": [(NOW, 3.0)]}))
    assert [v for k, v in page.attributes if k == "points"] == ["346.0,212.0"]
    assert page.texts.count("2026-03-05") == 1


@pytest.mark.parametrize(
    ("values", "low", "high", "levels"),
    [
        ([357], 0, None, ["0", "100", "200", "300", "400"]),
        ([1.0, 1.0], 0.9, 1, ["0.9", "0.925", "0.95", "0.975", "1"]),
        ([0.86, 1.0], 0.9, 1, ["0.85", "0.9", "0.95", "1"]),
        ([1.0], None, 1, ["0.9", "0.925", "0.95", "0.975", "1"]),
        ([0], 0, None, ["0", "0.25", "0.5", "0.75", "1"]),
        ([1_300_000], 0, None, ["0", "500k", "1,000k", "1,500k"]),
        ([80_000_000], 0, None, ["0", "20M", "40M", "60M", "80M"]),
    ],
)
def test_the_value_axis_has_round_numbers_and_holds_every_value(
    values: list[float], low: float | None, high: float | None, levels: list[str]
) -> None:
    days = [NOW + n * timedelta(days=1) for n in range(len(values))]
    page = Page(report_plot.lines("", {"a": list(zip(days, values, strict=True))}, low=low, high=high))
    shown = [text for text in page.texts if re.fullmatch(r"[\d.,]+[kM]?", text)]
    assert shown == levels
