"""The doctor finds what is broken, names the cure, and mends what is safe to mend."""

from dataclasses import replace
from typing import Any

import pytest

from agent_server import doctor
from agent_server.catalog import create_collection
from agent_server.db import Database
from agent_server.doctor import Check
from agent_server.errors import EmbedderUnavailable
from agent_server.settings import Settings
from tests.doors.conftest import Kb
from tests.hash_embedder import HashEmbedder


def _findings(kb: Kb) -> dict[str, dict[str, Any]]:
    return {c["name"]: c for c in kb("doctor", "--json").json["checks"] if c["status"] != "ok"}


def _do(database: Database, statement: str) -> None:
    with database.owner("kb_finance") as connection:
        connection.execute(statement)  # type: ignore[arg-type]


def test_a_sound_installation_has_no_findings(bank: Kb) -> None:
    said = bank("doctor", "--json")
    assert said.code == 0
    assert said.json["status"] == "ok"
    assert _findings(bank) == {}


def test_settings_are_shown_with_secrets_hidden(bank: Kb, settings: Settings) -> None:
    assert settings.database_url is not None
    for said in (bank("doctor"), bank("doctor", "--json")):
        assert settings.database_url.get_secret_value() not in said.out
        assert "KB_READER_SECRET" in said.out
        assert "tests\n" not in said.out.partition("KB_READER_SECRET")[2].splitlines()[0]


_OTHER_INDEX = "DROP INDEX chunks_embedding; CREATE INDEX chunks_embedding ON chunks USING hnsw"
MENDED = [
    ("DROP INDEX chunks_embedding", "dense index"),
    ("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'chunks_embedding'::regclass", "dense index"),
    (f"{_OTHER_INDEX} (embedding halfvec_l2_ops) WHERE canonical", "dense index"),
    (f"{_OTHER_INDEX} (embedding halfvec_cosine_ops)", "dense index"),
    ("UPDATE lexemes SET ndoc = ndoc + 1 WHERE lexeme = 'incom'", "term counts"),
    ("UPDATE lexemes SET ndoc = 0 WHERE lexeme = ''", "term counts"),
    ("INSERT INTO lexemes VALUES ('ghost', 3)", "term counts"),
    ("INSERT INTO lexeme_deltas VALUES ('loan', 1), ('loan', -1)", "term counts"),
    ("UPDATE chunks SET canonical = false WHERE source = 'guide.md'", "copies"),
]


def test_what_is_safe_to_mend_is_found_and_mended(bank: Kb, database: Database) -> None:
    for damage, finding in MENDED:
        _do(database, damage)
        assert _findings(bank)[f"FINANCE {finding}"]["cure"] == "kb doctor --fix", damage
        said = bank("doctor", "--fix", "--json")
        assert said.code == 0, damage
        assert any("FINANCE" in what for what in said.json["fixed"])
        assert _findings(bank) == {}, damage


@pytest.mark.parametrize(
    ("damage", "finding", "cure"),
    [
        ("DROP INDEX chunks_tsv", "FINANCE chunks_tsv", "kb reindex FINANCE"),
        (
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'chunks_tsv'::regclass",
            "FINANCE chunks_tsv",
            "kb reindex FINANCE",
        ),
        ("UPDATE chunks SET embedding = NULL WHERE source = 'guide.md'", "FINANCE vectors", "kb files FINANCE"),
        ("UPDATE files SET chunk_count = 7 WHERE source = 'guide.md'", "FINANCE files", "kb files FINANCE"),
        ("UPDATE files SET status = 'failed' WHERE source = 'guide.md'", "FINANCE files", "kb ingest FINANCE"),
        ("UPDATE kb.collections SET avg_length = NULL", "FINANCE mean length", "kb ingest FINANCE"),
        ("UPDATE kb.collections SET avg_length = avg_length * 2", "FINANCE mean length", "kb ingest FINANCE"),
    ],
)
def test_what_needs_a_decision_is_found_with_its_cure(
    bank: Kb, database: Database, damage: str, finding: str, cure: str
) -> None:
    _do(database, damage)
    assert cure in _findings(bank)[finding]["cure"]


def test_zero_vectors_are_an_error(bank: Kb, database: Database) -> None:
    _do(database, "UPDATE chunks SET embedding = array_fill(0, ARRAY[64])::halfvec WHERE source = 'guide.md'")
    assert bank("doctor").code == 1
    assert _findings(bank)["FINANCE vectors"]["status"] == "error"


def test_a_reader_that_cannot_log_in_is_found_and_mended(bank: Kb, database: Database) -> None:
    role = bank("db", "roles", "--json").json["roles"][0]
    for damage in ("ALTER ROLE {} NOLOGIN", "REVOKE ALL ON ALL TABLES IN SCHEMA kb_finance FROM {}"):
        _do(database, damage.format(role))
        found = _findings(bank)["FINANCE reader role"]
        assert (found["status"], found["cure"]) == ("error", "kb db roles")
        bank("db", "roles")
        assert _findings(bank) == {}


def test_a_reader_that_may_enter_another_collection_is_an_error(
    bank: Kb, database: Database, hash_embedder: HashEmbedder
) -> None:
    other = create_collection(database, "OTHER", hash_embedder.identity())
    role = bank("db", "roles", "--json").json["roles"][0]
    _do(database, f"GRANT USAGE ON SCHEMA {other.schema_name} TO {role}")
    found = _findings(bank)["FINANCE reader role"]
    assert "kb_other" in found["found"]
    assert f"REVOKE ALL ON SCHEMA {other.schema_name}" in found["cure"]


def test_a_reader_that_is_member_of_a_role_is_an_error(bank: Kb, database: Database) -> None:
    role = bank("db", "roles", "--json").json["roles"][0]
    _do(database, f"GRANT pg_read_all_data TO {role}")
    assert "more than a reader" in _findings(bank)["FINANCE reader role"]["found"]
    _do(database, f"REVOKE pg_read_all_data FROM {role}")


def test_an_embedder_of_another_model_is_an_error_for_the_collection(bank: Kb, hash_embedder: HashEmbedder) -> None:
    hash_embedder.digest = "another"
    assert _findings(bank)["FINANCE model"]["status"] == "error"


def test_an_embedder_that_is_not_there_is_an_error_with_a_cure(bank: Kb, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(_: Settings) -> HashEmbedder:
        raise EmbedderUnavailable("nobody answers", hint="ollama serve")

    monkeypatch.setattr("agent_server.doctor.make_embedder", lost)
    assert _findings(bank)["embedder"]["cure"] == "ollama serve"


def test_a_database_that_was_never_migrated_is_a_finding_and_not_a_crash(kb: Kb, database: Database) -> None:
    with database.owner() as connection:
        connection.execute("DELETE FROM public.schema_version")
    said = kb("doctor", "--json")
    assert said.code == 1
    assert said.json["checks"][-1]["cure"] == "kb init"


def test_a_server_that_does_not_answer_is_a_finding_and_not_a_crash(
    plain_kb: Kb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    said = plain_kb("doctor", "--json")
    assert said.code == 1
    assert [c["name"] for c in said.json["checks"]] == ["postgres"]


# -- pure -------------------------------------------------------------------------------------------------------

_HNSW = {
    "table": "chunks",
    "name": "chunks_embedding",
    "method": "hnsw",
    "valid": True,
    "predicate": "canonical",
    "opclasses": "halfvec_cosine_ops",
}


def test_no_dense_index_is_needed_where_nothing_is_searched() -> None:
    first = next(doctor.check_indexes("X", [], 0))
    assert first.status == "ok"


def test_a_finding_always_names_a_cure() -> None:
    checks = [
        *doctor.check_indexes("X", [{**_HNSW, "valid": False}], 5),
        doctor.check_vectors("X", {"searched": 5, "without_vector": 5, "zero": 0}),
        doctor.check_copies("X", [{"live": 1, "standing": 0}, {"live": 2, "standing": 2}]),
        doctor.check_counts("X", {"wrong": 1, "example": "a", "stated": 1, "counted": 2, "pending": 0}),
        doctor.check_ledger("X", {"failed": 2}, 0),
        doctor.check_ledger("X", {"partial": 2}, 0),
    ]
    assert all(c.status != "ok" and c.cure.startswith("kb ") for c in checks)


def test_a_check_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Check("a", "ok", "b").status = "error"  # type: ignore[misc]
    assert replace(Check("a", "ok", "b"), cure="kb init").to_json()["cure"] == "kb init"
