"""The sample bank is what the gold questions say it is, and the PDFs are what their sources say."""

import importlib.util
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent_server.ingest.authority import load_rules
from agent_server.ingest.chunk import chunk_document
from agent_server.ingest.extract import extract
from agent_server.ingest.validate import read_source
from agent_server.models import Document, SourceFile

ROOT = Path(__file__).parents[1]
BANK = ROOT / "knowledge-bank"
COLLECTIONS = ("FINANCE", "K12")
KINDS = {"identifier", "paraphrase", "procedural", "factual", "definitional", "cross-reference", "unanswerable"}
LEAST = {"unanswerable": 12, "cross-reference": 15}


def _document(path: Path, root: Path) -> Document:
    file = read_source(path, root, max_bytes=10**7)
    assert isinstance(file, SourceFile), file
    document = extract(file)
    assert isinstance(document, Document), document
    return document


def _flat(text: str) -> str:
    return re.sub(r"[\s*_`|>-]+", " ", text).strip()


@pytest.fixture(scope="module")
def documents() -> dict[str, dict[str, Document]]:
    out: dict[str, dict[str, Document]] = {}
    for name in COLLECTIONS:
        folder = BANK / "documents" / name
        files = sorted(p for p in folder.rglob("*") if p.is_file())
        out[name] = {p.relative_to(folder).as_posix(): _document(p, folder) for p in files}
    return out


def _gold(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (BANK / "gold" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def test_the_bank_is_large_enough_and_in_every_format(documents: dict[str, dict[str, Document]]) -> None:
    everything = [(source, d) for of in documents.values() for source, d in of.items()]
    assert len(everything) >= 25
    assert sum(len(chunk_document(d)) for _, d in everything) >= 300
    assert {Path(source).suffix for source, _ in everything} == {".md", ".txt", ".html", ".pdf", ".rst"}
    assert sum(d.retired for _, d in everything) == 2


def _stands_in(label: dict[str, str], documents: dict[str, Document]) -> bool:
    """Whether a label's quote stands in one passage of its source, so that the label points at a passage."""
    document = documents.get(label["source"])
    return document is not None and any(
        _flat(label["quote"]) in _flat(chunk.text) for chunk in chunk_document(document)
    )


@pytest.mark.parametrize("name", COLLECTIONS)
def test_every_gold_quote_stands_verbatim_in_one_passage_of_its_source(
    name: str, documents: dict[str, dict[str, Document]]
) -> None:
    labels = [
        (question["id"], label)
        for question in _gold(name)
        for label in [*question["relevant"], *([question["citing"]] if "citing" in question else [])]
    ]
    missing = [(i, x["source"], x["quote"]) for i, x in labels if not _stands_in(x, documents[name])]
    assert missing == []


@pytest.mark.parametrize("name", COLLECTIONS)
def test_a_gold_label_names_a_document_that_is_searched(name: str, documents: dict[str, dict[str, Document]]) -> None:
    labels = [(q["id"], label["source"]) for q in _gold(name) for label in q["relevant"]]
    assert [(i, source) for i, source in labels if documents[name][source].retired] == []


@pytest.mark.parametrize("name", COLLECTIONS)
def test_only_an_unanswerable_gold_question_has_no_answering_passage(name: str) -> None:
    questions = _gold(name)
    assert {q["kind"] for q in questions} == KINDS
    assert [q["id"] for q in questions if bool(q["relevant"]) == (q["kind"] == "unanswerable")] == []


@pytest.mark.parametrize("name", COLLECTIONS)
def test_a_cross_reference_question_names_the_citing_passage_and_no_other_question_does(name: str) -> None:
    questions = _gold(name)
    assert [q["id"] for q in questions if ("citing" in q) != (q["kind"] == "cross-reference")] == []
    assert [q["id"] for q in questions if "citing" in q and q["citing"] in q["relevant"]] == []


def test_gold_questions_have_ids_of_their_own_and_no_two_ask_the_same() -> None:
    for field in ("id", "question"):
        values = [q[field] for name in COLLECTIONS for q in _gold(name)]
        assert len(values) == len(set(values)), field


@pytest.mark.parametrize("name", COLLECTIONS)
def test_the_gold_questions_are_enough_to_tell_two_searches_apart(name: str) -> None:
    kinds = Counter(q["kind"] for q in _gold(name))
    assert sum(kinds.values()) >= 60
    assert {kind: kinds[kind] for kind, least in LEAST.items() if kinds[kind] < least} == {}


def test_a_pdf_says_what_its_source_says() -> None:
    spec = importlib.util.spec_from_file_location("make_sample_pdfs", ROOT / "ops" / "make_sample_pdfs.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    sources = sorted((BANK / "pdf_sources").rglob("*.md"))
    assert len(sources) >= 4
    for source in sources:
        target = BANK / "documents" / source.relative_to(BANK / "pdf_sources").with_suffix(".pdf")
        text = _flat(_document(target, BANK).text)
        sentences = [s for s in re.split(r"(?<=[.:])\s|\n", source.read_text(encoding="utf-8")) if "|" not in s]
        lost = [s for s in sentences if _flat(s.lstrip("#0123456789. ")) not in text]
        assert lost == [], target


def test_every_document_has_an_authority_and_the_rules_come_from_primary_sources() -> None:
    rules = load_rules(BANK / "documents" / "FINANCE", BANK)
    assert rules is not None
    for name in COLLECTIONS:
        folder = BANK / "documents" / name
        for path in folder.rglob("*"):
            if path.is_file():
                assert rules.authority(name, path.relative_to(folder).as_posix()) > 0, path
    assert rules.authority("FINANCE", "rules/lending-rulebook.md") == 1.0
    assert rules.authority("K12", "policies/5112-attendance.md") == 1.0
    assert rules.authority("FINANCE", "guides/member-faq.md") < rules.authority(
        "FINANCE", "operations/operations-manual.md"
    )
