"""BEIR folders are read strictly, loaded once, and measured through the search."""

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_server.catalog import create_collection, drop_collection, list_collections
from agent_server.db import Database
from agent_server.errors import BadQuestions, RunRefused
from agent_server.evaluation import arms, beir, beir_load
from agent_server.evaluation.runs import Given
from agent_server.retrieval.candidates import SearchOptions
from tests.hash_embedder import HashEmbedder

DOCS = [
    {"_id": "d1", "title": "Harbours", "text": "A harbour is where boats lie in a storm."},
    {"_id": "d2", "title": "", "text": "Apples grow on trees in the garden."},
    {"_id": "d3", "title": "Nothing but a title about lighthouses", "text": ""},
    {"_id": "d4", "title": "", "text": " "},
    {"_id": "d5", "title": "Copy", "text": "A harbour is where boats lie in a storm."},
]
QUERIES = [{"_id": "1", "text": "where do boats lie?"}, {"_id": "2", "text": "lighthouses"}, {"_id": "3", "text": "x"}]
QRELS = "query-id\tcorpus-id\tscore\n1\td1\t2\n1\td5\t1\n2\td3\t1\n2\tgone\t1\n3\td2\t0\n"
BASE = SearchOptions(top_k=10)


def _folder(path: Path, **files: str) -> Path:
    folder = path / "boats"
    (folder / "qrels").mkdir(parents=True)
    texts: Mapping[str, str] = {
        "corpus": "".join(json.dumps(d) + "\n" for d in DOCS),
        "queries": "".join(json.dumps(q) + "\n" for q in QUERIES),
        "qrels": QRELS,
        **files,
    }
    (folder / "corpus.jsonl").write_text(texts["corpus"])
    (folder / "queries.jsonl").write_text(texts["queries"])
    (folder / "qrels" / "test.tsv").write_text(texts["qrels"])
    return folder


def test_a_folder_is_read_with_its_grades(tmp_path: Path) -> None:
    found = beir.read_folder(_folder(tmp_path))
    assert found.name == "boats"
    assert found.qrels == {"1": {"d1": 2.0, "d5": 1.0}, "2": {"d3": 1.0, "gone": 1.0}}
    assert found.left_out == 1  # nothing is relevant for question 3
    docs = {d.id: (d.title, d.text) for d in found.documents()}
    assert docs["d3"] == ("", "Nothing but a title about lighthouses")
    assert list(docs) == ["d1", "d2", "d3", "d5"]


def test_packed_files_are_read_too(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    packed = gzip.compress((folder / "corpus.jsonl").read_bytes())
    (folder / "corpus.jsonl").unlink()
    (folder / "corpus.jsonl.gz").write_bytes(packed)
    assert len(list(beir.read_folder(folder).documents())) == 4


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"qrels": "1\td1\n"}, r"test\.tsv:1: expected question id"),
        ({"qrels": "1\td1\tmuch\n"}, r"test\.tsv:1"),
        ({"qrels": "9\td1\t1\n"}, "judges 1 questions that queries.jsonl has not: '9'"),
        ({"qrels": "1\td1\t0\n"}, "names no relevant document"),
        ({"queries": '{"_id": "1"}\n'}, r"queries\.jsonl:1: a question needs a text"),
        ({"queries": '{"text": "x"}\n'}, r"queries\.jsonl:1: field '_id' is None"),
        ({"queries": '{"_id": "1", "text": "x"}\n' * 2}, r"queries\.jsonl:2: question '1' stands twice"),
        ({"queries": "[]\n"}, "expected an object"),
    ],
)
def test_a_faulty_folder_is_refused_with_the_line(tmp_path: Path, files: dict[str, str], said: str) -> None:
    with pytest.raises(BadQuestions, match=said):
        beir.read_folder(_folder(tmp_path, **files))


def test_faulty_documents_are_refused_with_the_line(tmp_path: Path) -> None:
    twice = beir.read_folder(_folder(tmp_path / "a", corpus=json.dumps(DOCS[0]) + "\n" + json.dumps(DOCS[0])))
    with pytest.raises(BadQuestions, match=r"corpus\.jsonl:2: document 'd1' stands twice"):
        list(twice.documents())
    broken = beir.read_folder(_folder(tmp_path / "b", corpus="{\n"))
    with pytest.raises(BadQuestions, match=r"corpus\.jsonl:1: not JSON"):
        list(broken.documents())


def test_a_folder_without_a_part_is_refused(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    with pytest.raises(BadQuestions, match=r"no judgements qrels/dev\.tsv; splits there: test"):
        beir.read_folder(folder, "dev")
    (folder / "corpus.jsonl").unlink()
    with pytest.raises(BadQuestions, match=r"no corpus\.jsonl"):
        beir.read_folder(folder)
    with pytest.raises(BadQuestions, match="is no folder"):
        beir.read_folder(tmp_path / "none")


def test_a_ranking_of_documents_is_judged_by_grades() -> None:
    found = beir.judge(["d9", "d5", "d1"], {"d1": 2.0, "d5": 1.0, "gone": 1.0})
    assert found.found == (0, 1, 1)
    assert found.gains == (0.0, 1.0, 2.0)
    assert (found.ideal, found.total) == ((2.0, 1.0, 1.0), 3)


def test_documents_are_embedded_once_and_the_collection_is_used_again(
    database: Database, hash_embedder: HashEmbedder, tmp_path: Path
) -> None:
    folder = beir.read_folder(_folder(tmp_path))
    made = beir_load.load(database, folder, hash_embedder)
    assert (made.reused, made.ids) == (False, ("d1", "d2", "d3", "d5"))
    assert made.about == {"documents": 4, "without_vector": 0, "cut": 0}
    assert made.collection.name == "beir-boats"
    assert made.collection.has_hnsw
    embedded = len(hash_embedder.texts)
    again = beir_load.load(database, folder, hash_embedder)
    assert (again.reused, again.ids, again.about) == (True, made.ids, made.about)
    assert len(hash_embedder.texts) == embedded
    drop_collection(database, "beir-boats")
    assert not beir_load.load(database, folder, hash_embedder).reused
    assert len(hash_embedder.texts) == embedded  # the vectors stayed in the cache


def test_other_documents_or_another_model_make_the_collection_anew(
    database: Database, hash_embedder: HashEmbedder, tmp_path: Path
) -> None:
    folder = beir.read_folder(_folder(tmp_path))
    beir_load.load(database, folder, hash_embedder)
    other = HashEmbedder(32, digest="hash-2")
    assert beir_load.load(database, folder, other).collection.dimensions == 32
    (folder.path / "corpus.jsonl").write_text(json.dumps(DOCS[0]) + "\n")
    changed = beir_load.load(database, beir.read_folder(folder.path), other)
    assert (changed.reused, changed.ids) == (False, ("d1",))
    with database.owner() as connection:
        assert [c.name for c in list_collections(connection)] == ["beir-boats"]


def test_a_collection_of_somebody_elses_is_not_replaced(
    database: Database, hash_embedder: HashEmbedder, tmp_path: Path
) -> None:
    create_collection(database, "beir-boats", hash_embedder.identity(), description="my boats")
    with pytest.raises(RunRefused, match="was not made by an evaluation"):
        beir_load.load(database, beir.read_folder(_folder(tmp_path)), hash_embedder)


def test_a_folder_is_measured_through_the_search(
    database: Database, hash_embedder: HashEmbedder, tmp_path: Path
) -> None:
    chosen = arms.chosen(["bm25", "rrf", "ts-or"])
    runs = beir_load.measure(database, _folder(tmp_path), hash_embedder, chosen, Given("2026-01-01"), BASE)
    by_arm = {run["arm"]: run for run in runs}
    rows = {row["id"]: row for row in by_arm["bm25"]["questions"]}
    assert set(rows) == {"1", "2"}
    # The copy stands behind the document that stands for it: both are found, in the ideal order.
    assert rows["1"]["ranked"][:2] == ["d1", "d5"]
    assert (rows["1"]["ndcg@10"], rows["1"]["recall@10"]) == (1.0, 1.0)
    assert rows["2"]["recall@10"] == 0.5  # one of the two relevant documents is not in the folder
    assert by_arm["rrf"]["dataset"]["missing_documents"] == 1
    assert by_arm["ts-or"]["questions"][1]["hit@1"] == 1.0
    with pytest.raises(RunRefused, match="size-400 needs a collection made differently"):
        beir_load.measure(
            database, tmp_path / "boats", hash_embedder, arms.chosen(["size-400"]), Given("2026-01-01"), BASE
        )


def test_names_of_throw_away_collections_are_names() -> None:
    assert beir.collection_name("scifact", "english") == "beir-scifact"
    assert beir.collection_name("trec covid!", "simple") == "beir-trec-covid-simple"
    assert len(beir.collection_name("x" * 90, "english")) <= 40
