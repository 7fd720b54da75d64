"""A code brings the passage that says what it is, first, in every spelling that people use."""

import re
import tempfile
from pathlib import Path

import pytest

from agent_server.catalog import get_collection
from agent_server.db import Database
from agent_server.ingest.chunk_label import number_of
from agent_server.ingest.pipeline import ingest
from agent_server.ingest.steps import IngestOptions
from agent_server.lexemes import entry_lexemes
from agent_server.retrieval.candidates import SearchOptions
from agent_server.retrieval.search import search
from tests.conftest import Builder
from tests.corpus import File, fill
from tests.hash_embedder import HashEmbedder

BANK = Path(__file__).parents[2] / "knowledge-bank"
#: Where the sample bank says what its codes are.
TABLES = {
    "FINANCE": ("reference/decision-codes.md",),
    "K12": ("reference/device-codes.md", "policies/5112-attendance.md"),
}
#: Fewer digits are no code by themselves.
LEAST_DIGITS = 3
BY_WORDS = SearchOptions(top_k=3, fusion="lexical", expand=())

#: Passages of one collection, each found by its own spellings first.
NAMES = {
    "pension.txt": "§ 1.401(k)-1 Hardship distributions of a 401(k) plan are made once a year.",
    "plans.txt": "§ 1.403(b)-1 Annuities of a 403(b) plan, and § 1.457-2 of another plan.",
    "cpp.txt": "The parser is written in C++ and is compiled every night.",
    "csharp.txt": "The console is written in C# and runs on .NET in every office.",
    "c.txt": "The driver is written in C, and the net of sensors is older than it.",
    "field.txt": "The column user_id holds the number of the member.",
    "fields.txt": "The user has an id, and the column account_id holds the number of the account.",
    "mail.txt": "Complaints go to jane.doe@harbor-vale.example and are answered within ten days.",
    "mails.txt": "Questions go to the front desk; jane answers those of the harbor office.",
    "web.txt": "The forms lie at https://harbor-vale.example/docs/setup.html for every branch.",
    "path.txt": "The log is written to /var/log/kb/ingest.log on each host.",
    "setup.txt": "The setup of a branch takes three days, and the docs of it lie in the vault.",
}
SPELLINGS = [
    *[("pension.txt", s) for s in ("§ 1.401(k)-1", "1.401(k)-1", "401(k)", "401k", "401 (k)", "what is a 401k plan?")],
    *[("plans.txt", s) for s in ("§ 1.403(b)-1", "403(b)", "403b", "1.457-2")],
    *[("cpp.txt", s) for s in ("C++", "c++", "is it written in C++?")],
    *[("csharp.txt", s) for s in ("C#", "c#", ".NET", ".net", "does it run on .NET?")],
    *[("field.txt", s) for s in ("user_id", "USER_ID", "what does user_id hold")],
    *[("mail.txt", s) for s in ("jane.doe@harbor-vale.example", "Jane.Doe@harbor-vale.example", "jane.doe", "doe")],
    *[("web.txt", s) for s in ("https://harbor-vale.example/docs/setup.html", "setup.html", "docs/setup.html")],
    *[("path.txt", s) for s in ("/var/log/kb/ingest.log", "ingest.log", "var log ingest", "log/kb")],
]


def _names(database: Database) -> None:
    fill(database, "NAMES", [File(source, (text,)) for source, text in NAMES.items()])


def _bank(database: Database) -> None:
    embedder = HashEmbedder()
    for name, sources in TABLES.items():
        fill(database, name, [], embedder)
        with tempfile.TemporaryDirectory() as home:
            for folder in BANK.glob(f"documents/{name}/*"):
                for path in folder.iterdir():
                    if path.suffix != ".pdf" or f"{folder.name}/{path.name}" in sources:
                        target = Path(home) / folder.name / path.name
                        target.parent.mkdir(exist_ok=True)
                        target.write_bytes(path.read_bytes())
            ingest(database, name, [Path(home)], embedder, IngestOptions(bank=BANK, isolate=False, follow_up=False))


def _everything(database: Database) -> None:
    _names(database)
    _bank(database)


@pytest.fixture(scope="session")
def stock() -> Builder:
    return _everything


def test_names_and_numbers_are_found_first_in_every_spelling(database: Database) -> None:
    found = {s: [p.source for p in search(database, "NAMES", s, None, BY_WORDS).passages] for _, s in SPELLINGS}
    assert {s: found[s] for source, s in SPELLINGS if found[s][:1] != [source]} == {}


def spellings(code: str) -> list[str]:
    """How people write NW-4021."""
    letters, digits = code.split("-")
    written = [code, f"{letters} {digits}", f"{letters}{digits}", code.lower(), f"{letters}{digits}".lower()]
    written.append(f"What does code {letters} {digits} mean?")
    return written + ([digits, f"code {digits} meaning"] if len(digits) >= LEAST_DIGITS else [])


@pytest.mark.parametrize("name", TABLES)
def test_every_code_of_the_sample_bank_brings_its_entry_first_in_every_spelling(database: Database, name: str) -> None:
    with database.owner() as connection:
        collection = get_collection(connection, name)
    with database.owner(collection.schema_name) as connection:
        rows = connection.execute(
            "SELECT chunk_id, text FROM chunks WHERE NOT retired AND source = ANY(%s)", (list(TABLES[name]),)
        ).fetchall()
    entries: dict[str, set[str]] = {}
    for chunk_id, text in rows:
        for lexeme in entry_lexemes(text):
            entries.setdefault(lexeme, set()).add(chunk_id)
    codes = sorted({code for _, text in rows for code in re.findall(r"\b[A-Z]{1,5}-\d{1,5}\b", text)})
    known = {code: entries.get(f"#={code.replace('-', '').lower()}") for code in codes}
    asked: list[tuple[str, set[str]]] = []
    for n, (code, want) in enumerate(item for item in known.items() if item[1]):
        written = spellings(code)  # all of them for every eighth code, for the others one, in turn
        asked += [(spelling, want or set()) for spelling in (written if n % 8 == 0 else [written[n % len(written)]])]
    assert len(asked) > 80
    missed = {
        spelling: first.chunk_id
        for spelling, want in asked
        for first in search(database, name, spelling, None, BY_WORDS).passages[:1]
        if not want & {first.chunk_id, *first.also_in}
    }
    assert missed == {}


def test_a_circular_is_found_by_its_number_and_its_own_section_first(database: Database) -> None:
    for question in ("Circular 24-03", "circular 24-03", "What did Circular 24-03 change?"):
        first = search(database, "FINANCE", question, None, BY_WORDS).passages[0]
        assert first.chunk_id == "circulars/2024-03-18-reconsideration-period.md::0"
        assert number_of(first.heading[-1]) == "Circular 24-03"
