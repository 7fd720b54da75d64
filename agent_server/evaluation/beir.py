"""BEIR-format folders: `corpus.jsonl`, `queries.jsonl` (both may be .gz), `qrels/<split>.tsv`.

The documents go once into a throw-away collection `beir-<name>`, one passage a document, through the functions that
ingestion uses; the next run uses it again while documents and model are the same. It is no part of the bank:
`kb collection drop beir-<name>` removes it, its vectors stay in the cache.
"""

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from agent_server.errors import BadQuestions
from agent_server.evaluation.dataset import Asked, Dataset
from agent_server.evaluation.fingerprint import files_sha256
from agent_server.evaluation.gold import Shown
from agent_server.evaluation.metrics import Judged
from agent_server.ingest.hygiene import clean, clean_line

KIND = "question"  #: BEIR questions have no kinds
SOURCE = "corpus.jsonl"  #: the one source of a throw-away collection


@dataclass(frozen=True, slots=True)
class Doc:
    """A document; `text` is never blank (a title alone becomes the text)."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A BEIR folder with its questions and judgements read; documents are read when they are wanted.

    `qrels`: question id -> document id -> grade; `left_out`: judged questions without any relevant document.
    """

    path: Path
    name: str
    split: str
    queries: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, float]]
    left_out: int
    corpus_sha256: str

    def documents(self) -> Iterator[Doc]:
        """The documents in their order, those without any text left out. Raises BadQuestions for a faulty line and for
        an id that stands twice."""
        seen: set[str] = set()
        for where, row in _rows(_file(self.path, "corpus")):
            id_ = _id(where, row)
            if id_ in seen:
                raise BadQuestions(f"{where}: document {id_!r} stands twice")
            seen.add(id_)
            title = clean_line(str(row.get("title") or ""))
            text = clean(str(row.get("text") or ""))[0].strip()
            if title or text:
                yield Doc(id_, title if text else "", text or title)


def read_folder(path: Path, split: str = "test") -> Folder:
    """Questions and judgements of a BEIR folder. Raises BadQuestions that names the file and what is wrong in it."""
    if not path.is_dir():
        raise BadQuestions(f"{path} is no folder", hint="Name a folder with corpus.jsonl, queries.jsonl and qrels/.")
    queries: dict[str, str] = {}
    for where, row in _rows(_file(path, "queries")):
        text = row.get("text")
        if not isinstance(text, str) or not text.strip():
            raise BadQuestions(f"{where}: a question needs a text, found {text!r}")
        id_ = _id(where, row)
        if id_ in queries:
            raise BadQuestions(f"{where}: question {id_!r} stands twice")
        queries[id_] = text
    judgements = path / "qrels" / f"{split}.tsv"
    if not judgements.is_file():
        there = ", ".join(sorted(p.stem for p in (path / "qrels").glob("*.tsv"))) or "none"
        raise BadQuestions(f"{path} has no judgements qrels/{split}.tsv; splits there: {there}", hint="See --split.")
    qrels = read_qrels(judgements)
    if unknown := sorted(set(qrels) - set(queries)):
        raise BadQuestions(f"{judgements} judges {len(unknown)} questions that queries.jsonl has not: {unknown[0]!r} …")
    relevant = {id_: {d: g for d, g in grades.items() if g > 0} for id_, grades in qrels.items()}
    judged = {id_: grades for id_, grades in relevant.items() if grades}
    if not judged:
        raise BadQuestions(f"{judgements} names no relevant document")
    digest = files_sha256([_file(path, "corpus")])
    return Folder(path, path.resolve().name, split, queries, judged, len(qrels) - len(judged), digest)


def read_qrels(path: Path) -> dict[str, dict[str, float]]:
    """Question id -> document id -> grade, from tab-separated lines; the header may be missing."""
    out: dict[str, dict[str, float]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        cells = line.split("\t")
        if not line.strip() or (number == 1 and cells[0] == "query-id"):
            continue
        try:
            question, document, grade = cells
            out.setdefault(question, {})[document] = float(grade)
        except ValueError:
            raise BadQuestions(
                f"{path.name}:{number}: expected question id, document id and grade, found {line!r}"
            ) from None
    return out


def dataset(
    folder: Folder, collection: str, ids: Sequence[str], about: Mapping[str, Any], *, limit: int = 0
) -> Dataset:
    """The judged questions, asked of `collection`, whose passage n is document `ids[n]`. `limit` > 0 takes the first
    questions only. Relevant documents that the folder does not hold count as not found."""
    judged = [Asked(id_, KIND, text) for id_, text in folder.queries.items() if id_ in folder.qrels]
    missing = {d for grades in folder.qrels.values() for d in grades} - set(ids)

    def ranked(shown: Sequence[Shown]) -> list[str]:
        """Each passage, then its copies: documents that are equal stand side by side in any ranking."""
        chunk_ids = dict.fromkeys(c for s in shown for c in (s.chunk_id, *s.also_in))
        return [ids[int(c.rpartition("::")[2])] for c in chunk_ids]

    sha = files_sha256([_file(folder.path, "queries"), folder.path / "qrels" / f"{folder.split}.tsv"])
    return Dataset(
        name=folder.name,
        kind="beir",
        collection=collection,
        sha256=sha,
        questions=tuple(judged[:limit] if limit else judged),
        judge=lambda id_, shown: judge(ranked(shown), folder.qrels[id_]),
        ranked=ranked,
        about={
            "split": folder.split,
            "corpus_sha256": folder.corpus_sha256,
            "without_relevant": folder.left_out,
            "missing_documents": len(missing),
            **about,
            **({"limit": limit} if limit else {}),
        },
    )


def judge(ranked: Sequence[str], grades: Mapping[str, float]) -> Judged:
    """A ranking of document ids against grades above 0; pure."""
    gains = tuple(grades.get(id_, 0.0) for id_ in ranked)
    ideal = tuple(sorted(grades.values(), reverse=True))
    return Judged(tuple(int(g > 0) for g in gains), gains, ideal, len(grades))


# -- files ------------------------------------------------------------------------------------------------------


def _file(path: Path, stem: str) -> Path:
    for name in (f"{stem}.jsonl", f"{stem}.jsonl.gz"):
        if (path / name).is_file():
            return path / name
    raise BadQuestions(f"{path} has no {stem}.jsonl", hint="A BEIR folder holds corpus.jsonl, queries.jsonl, qrels/.")


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Objects of a JSON-lines file with where each stands."""
    with _open(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            where = f"{path.name}:{number}"
            try:
                row = json.loads(line)
            except ValueError as error:
                raise BadQuestions(f"{where}: not JSON: {error}") from None
            if not isinstance(row, dict):
                raise BadQuestions(f"{where}: expected an object, found {line.strip()[:40]}")
            yield where, row


def _id(where: str, row: Mapping[str, Any]) -> str:
    id_ = row.get("_id")
    if not isinstance(id_, str | int) or str(id_) == "":
        raise BadQuestions(f"{where}: field '_id' is {id_!r}; expected a text")
    return str(id_)


def collection_name(name: str, text_search_config: str) -> str:
    """The throw-away collection of a folder: `beir-scifact`, `beir-xquad-zh-simple`."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "folder"
    suffix = "" if text_search_config == "english" else f"-{text_search_config}"
    return f"beir-{plain[: 35 - len(suffix)]}{suffix}"
