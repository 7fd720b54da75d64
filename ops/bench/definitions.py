"""How well definitions are found: recall on outside collections, and all other finds printed to be judged by reading.

    python ops/bench/definitions.py FOLDER [--read]

FOLDER holds `graph/cfpb` (the silver definitions of three parts of US law), `documents/credit` (the same parts, as they
are ingested), `documents/gdpr` and `documents/peps`. A private server is started for it and removed afterwards; the
vectors mean nothing, as definitions are found by their form. `--read` prints every find that the silver does not have.

A find counts for a silver definition when its term has the same key and it stands in the defining paragraph or in one
below it: "(c) Adverse action" is defined by the paragraph (c)(1).
"""

import argparse
import json
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from agent_server.catalog import create_collection
from agent_server.db import Database
from agent_server.ingest.pipeline import ingest
from agent_server.terms import fold_term
from nightly import defines
from nightly.statements import fetch_all
from ops.bench.private import private_bank
from tests.hash_embedder import HashEmbedder

PARTS = ("1002", "1003", "1030")


@dataclass(frozen=True)
class Find:
    """A row of `terms`, where it begins in the document, and its words."""

    source: str
    term: str
    form: str
    scope: str
    at: int
    words: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--read", action="store_true", help="print every find that the silver does not have")
    options = parser.parse_args()
    with private_bank() as (database, _):
        credit(database, options.folder, read=options.read)
        gdpr(database, options.folder, read=options.read)
        peps(database, options.folder, read=options.read)


def credit(database: Database, folder: Path, *, read: bool) -> None:
    """Recall on the silver, and the extra finds."""
    finds, texts, report = found_in(database, "CREDIT", folder / "documents" / "credit")
    paragraphs = {p: Places(texts[f"12-cfr-{p}.md"], corpus(folder, p)) for p in PARTS}
    located = [(fold_term(f.term), paragraphs[f.source[7:11]].paragraph(f.at), f) for f in finds]
    with (folder / "graph/cfpb/definitions.tsv").open(encoding="utf-8") as lines:
        silver = [tuple(line.rstrip("\n").split("\t")) for line in list(lines)[1:]]
    hits, exact, used = 0, 0, set()
    missed = []
    for term, paragraph in silver:
        right = [
            (key, where, f)
            for key, where, f in located
            if key == fold_term(term) and (where == paragraph or where.startswith(paragraph + "-"))
        ]
        hits += bool(right)
        exact += any(where == paragraph for _, where, _ in right)
        used |= {id(f) for _, _, f in right}
        if not right:
            missed.append(f"{term} ({paragraph})")
    extra = [(where, f) for _, where, f in located if id(f) not in used]
    print(f"credit: {report.terms} definitions in {report.seconds:.2f} s")
    print(f"  recall {hits}/{len(silver)} = {hits / len(silver):.3f}, in the very paragraph {exact}; missed: {missed}")
    print(f"  others, to be judged by reading: {len(extra)}")
    if read:
        for where, find in extra:
            show(find, where)


def gdpr(database: Database, folder: Path, *, read: bool) -> None:
    """Which of the terms that Article 4 numbers are found there."""
    finds, texts, report = found_in(database, "GDPR", folder / "documents" / "gdpr")
    text = texts["gdpr.txt"]
    start = text.index("Article 4 - Definitions")
    end = text.index("Article 5 - ", start)
    numbered = re.findall(r"(?<!\S)\(\d+\)\. '([^']+)'", text[start:end])
    keys = {fold_term(f.term) for f in finds if start <= f.at < end and f.form == "means"}
    missed = [term for term in numbered if fold_term(term) not in keys]
    print(f"GDPR: {report.terms} definitions in {report.seconds:.2f} s")
    print(f"  Article 4 numbers {len(numbered)}; missed: {missed}")
    if read:
        for find in finds:
            if not start <= find.at < end:
                show(find)


def peps(database: Database, folder: Path, *, read: bool) -> None:
    """Definitions in running technical text: precision is all that can be looked at."""
    finds, _, report = found_in(database, "PEPS", folder / "documents" / "peps")
    print(f"PEPs: {report.terms} definitions in {report.seconds:.2f} s")
    if read:
        for find in finds:
            show(find)


def found_in(database: Database, name: str, folder: Path) -> tuple[list[Find], dict[str, str], defines.DefinesReport]:
    """Ingest a folder and read its definitions: what was found, the documents' texts, and what it took."""
    embedder = HashEmbedder()
    collection = create_collection(database, name, embedder.identity())
    ingest(database, name, [folder], embedder)
    report = defines.refresh(database, collection, everything=True)
    texts: dict[str, list[str]] = {}
    finds = []
    with database.owner(collection.schema_name) as connection:
        sources = [r[0] for r in connection.execute("SELECT source FROM files ORDER BY 1").fetchall()]
        for source in sources:
            rows = fetch_all(connection, "defines_passages", {"source": source, "after": -1, "limit": 10**6})
            where = {r["id"]: r["char_start"] - r["lead"] for r in rows}
            out = texts.setdefault(source, [" "] * max(r["char_end"] for r in rows))
            for r in rows:
                size = r["char_end"] - r["char_start"]
                out[r["char_start"] : r["char_end"]] = r["text"][r["lead"] : r["lead"] + size]
            by_id = {r["id"]: r["text"] for r in rows}
            stored = connection.execute(
                "SELECT term, form, scope, chunk, from_start, from_end FROM terms WHERE chunk = ANY (%s) ORDER BY id",
                (list(where),),
            ).fetchall()
            for term, form, scope, chunk, start, end in stored:
                finds.append(Find(source, term, form, scope, where[chunk] + start, by_id[chunk][start:end]))
    return finds, {source: "".join(out) for source, out in texts.items()}, report


def corpus(folder: Path, part: str) -> Iterator[tuple[str, str]]:
    """Paragraphs of a part in order: their names and texts."""
    with (folder / "graph/cfpb/corpus.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if row["_id"].split("-")[0] == part and row["text"]:
                yield row["_id"], row["text"]


class Places:
    """Where the paragraphs of a part begin in its document."""

    def __init__(self, text: str, paragraphs: Iterator[tuple[str, str]]) -> None:
        squeezed, where = squeeze(text)
        self._starts: list[int] = []
        self._names: list[str] = []
        at = 0
        for name, words in paragraphs:
            found = squeezed.find(squeeze(words)[0][:200], at)
            if found >= 0:
                self._starts.append(where[found])
                self._names.append(name)
                at = found + 1

    def paragraph(self, at: int) -> str:
        """The name of the paragraph that holds the character `at`, '' before the first."""
        n = bisect_right(self._starts, at) - 1
        return self._names[n] if n >= 0 else ""


def squeeze(text: str) -> tuple[str, list[int]]:
    """`text` without blanks, and where each character of it stood."""
    kept = [(c, n) for n, c in enumerate(text) if not c.isspace()]
    return "".join(c for c, _ in kept), [n for _, n in kept]


def show(find: Find, where: str = "") -> None:
    words = " ".join(find.words.split())
    print(f"    {find.source} {where} [{find.form}, {find.scope}] {find.term!r}: {words[:220]}")


if __name__ == "__main__":
    main()
