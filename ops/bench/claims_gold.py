"""How well recall answers what terms mean: gold questions, every defined term, and terms that nothing defines.

    python ops/bench/claims.py --gold

The sample bank is ingested into a private server. Recall uses no vectors, so that those stored mean nothing.

Defined: the gold questions of the kind "definitional" (a hit holds a relevant quote in its passage), and every term
that the definition edges know, asked by a template (a hit rests on a passage that defines it). Not defined: terms of
the other collection, and stretches of the collection's own text that look like a term, both as far as no definition
edge of the collection knows them; those that recall answers all the same are printed, to be judged by reading.
"""

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from agent_server.catalog import Collection, create_collection
from agent_server.db import Database
from agent_server.ingest.pipeline import ingest
from agent_server.ingest.steps import IngestOptions
from agent_server.retrieval.recall import recall_claims
from agent_server.retrieval.recalled import Recalled
from agent_server.terms import fold_term
from nightly import claims, defines
from tests.hash_embedder import HashEmbedder

BANK = Path(__file__).parents[2] / "knowledge-bank"
COLLECTIONS = ("FINANCE", "K12")
ASKED = ("What is {a} {term}?", "What does {term} mean?", "define {term}", "{term}")
STRETCHES = 150  #: of each collection's own text
LEAST_TIMES = 2
_STRETCH = re.compile(
    r"\b(?:an?|the|each|every|any)\s+((?:[a-z][a-z-]{2,}\s+){0,2}[a-z][a-z-]{3,})"
    r"(?=\s+(?:is|are|must|may|has|that|who|which|for|in|on|at|by|if|when|to|of|and|or)\b|[.,;:)])"
)
_NO_NAME = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|that|which|who|for|in|on|at|by|to|of|and|or|from|with|same|other|next|last|"
    r"first|second|own|such|not|more|most|least|following|new|old|whole|day|way|one|if|when|than|under|after|before|"
    r"because|may|must|can|shall|while|where|until|unless)\b"
)


def measure(database: Database) -> None:
    """Ingest the sample bank and print the four figures of each collection."""
    bank = {name: loaded(database, name) for name in COLLECTIONS}
    terms = {name: defined_terms(database, collection) for name, collection in bank.items()}
    for name, collection in bank.items():
        known = terms[name].keys() | also_named(database, collection)
        ask = asking(database, collection)
        gold(name, ask)
        defined(name, terms[name], ask)
        others = {
            k: t for other in COLLECTIONS if other != name for k, (t, _) in terms[other].items() if k not in known
        }
        undefined(f"{name}: terms of another collection", others.values(), ask)
        undefined(f"{name}: stretches of its text", stretches(database, collection, known), ask)


def loaded(database: Database, name: str) -> Collection:
    embedder = HashEmbedder()
    collection = create_collection(database, name, embedder.identity())
    ingest(database, name, [BANK / "documents" / name], embedder, IngestOptions(bank=BANK))
    defines.refresh(database, collection)
    report = claims.refresh(database, collection)
    print(f"{name}: {', '.join(f'{count} {status}' for status, count in report.by_status.items())}")
    return collection


def asking(database: Database, collection: Collection) -> Callable[[str], Sequence[Recalled]]:
    return lambda question: recall_claims(database, [collection], question).claims


def defined_terms(database: Database, collection: Collection) -> dict[str, tuple[str, set[str]]]:
    """By key: a term as it is written, and the passages that define it outright."""
    found: dict[str, tuple[str, set[str]]] = {}
    with database.owner(collection.schema_name) as connection:
        rows = connection.execute(
            """SELECT t.folded, t.term, c.chunk_id FROM terms t JOIN chunks c ON c.id = t.chunk
               WHERE NOT c.retired AND t.form IN ('means', 'entry', 'table', 'abbreviation', 'refers')
               ORDER BY t.folded, c.chunk_id"""
        ).fetchall()
    for key, written, chunk_id in rows:
        found.setdefault(key, (written, set()))[1].add(chunk_id)
    return found


def also_named(database: Database, collection: Collection) -> set[str]:
    """Keys of all that any definition edge starts from, in whatever form."""
    with database.owner(collection.schema_name) as connection:
        return {row[0] for row in connection.execute("SELECT DISTINCT folded FROM terms").fetchall()}


def stretches(database: Database, collection: Collection, known: Iterable[str]) -> list[str]:
    """Stretches of the text that look like a term, stand there several times, and are not known; a sample of them."""
    with database.owner(collection.schema_name) as connection:
        texts = [
            row[0] for row in connection.execute("SELECT text FROM chunks WHERE NOT retired ORDER BY id").fetchall()
        ]
    known = set(known)
    times = Counter(m.group(1) for text in texts for m in _STRETCH.finditer(" ".join(text.split())))
    there = sorted(
        s for s, n in times.items() if n >= LEAST_TIMES and not _NO_NAME.search(s) and fold_term(s) not in known
    )
    return sorted(random.Random(3).sample(there, min(STRETCHES, len(there))))


def gold(name: str, ask: Callable[[str], Sequence[Recalled]]) -> None:
    questions = [
        json.loads(line) for line in (BANK / "gold" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    questions = [q for q in questions if q["kind"] == "definitional"]
    first = among = 0
    for question in questions:
        fits = [
            any(c.source == x["source"] and _flat(x["quote"]) in _flat(c.text) for x in question["relevant"])
            for c in ask(question["question"])
        ]
        first += fits[:1] == [True]
        among += any(fits)
        if fits[:1] != [True]:
            print(f"  not first: {question['question']}")
    print(f"{name}: gold, hit@1 {first / len(questions):.3f}, hit@5 {among / len(questions):.3f} of {len(questions)}")


def defined(name: str, terms: dict[str, tuple[str, set[str]]], ask: Callable[[str], Sequence[Recalled]]) -> None:
    first = asked = 0
    missed = []
    for written, places in terms.values():
        for template in ASKED:
            found = ask(_question(template, written))
            hit = bool(found) and bool(places & {found[0].chunk_id, *found[0].also_in})
            asked += 1
            first += hit
            if not hit and template == ASKED[1]:
                missed.append(f"{written} -> {found[0].statement[:80] if found else 'nothing'}")
    print(f"{name}: all defined terms, hit@1 {first / asked:.3f} of {asked} questions about {len(terms)} terms")
    for line in missed:
        print(f"  {line}")


def undefined(what: str, terms: Iterable[str], ask: Callable[[str], Sequence[Recalled]]) -> None:
    answered = []
    asked = 0
    for term in terms:
        for question in (_question(template, term) for template in ASKED):
            asked += 1
            if found := ask(question):
                answered.append(f"  {question} -> {found[0].statement[:120]}")
    print(f"{what}, empty {1 - len(answered) / max(asked, 1):.3f} of {asked} questions that nothing there defines")
    for line in answered:
        print(line)


def _question(template: str, term: str) -> str:
    return template.format(term=term, a="an" if term[:1].lower() in "aeiou" else "a")


def _flat(text: str) -> str:
    return " ".join(text.split())
