"""An embedder that is gone, or is another than the collection's, is found, and what is printed cures it."""

from typing import Any

import pytest

from agent_server.doctor import vectors
from agent_server.errors import EmbedderUnavailable
from agent_server.settings import Settings
from tests.doctor.ground import Ground
from tests.doors.conftest import Kb
from tests.hash_embedder import HashEmbedder


def test_a_model_of_another_digest_is_found_and_cured_as_printed(ground: Ground) -> None:
    ground.embedder.digest = "another"
    ground.cured_of("FINANCE model")


def test_a_model_that_says_its_name_and_gives_other_vectors_is_found_and_cured_as_printed(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned = ground.embedder._vector
    monkeypatch.setattr(ground.embedder, "_vector", lambda text: turned(text)[::-1].copy())
    ground.cured_of("FINANCE canaries")


def test_an_embedder_that_is_not_there_is_an_error_with_its_own_advice(
    bank: Kb, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_: Settings) -> HashEmbedder:
        raise EmbedderUnavailable("nobody answers", hint="ollama serve")

    monkeypatch.setattr("agent_server.doctor.make_embedder", lost)
    found = {c["name"]: c for c in bank("doctor", "--json").json["checks"]}
    assert (found["embedder"]["status"], found["embedder"]["cure"]) == ("error", "ollama serve")


def test_canaries_bear_the_last_digits_and_no_more(hash_embedder: HashEmbedder) -> None:
    text = "a rule of the house"
    stored = hash_embedder.embed_passages([f"Guide\n\n{text}"]).vectors[0]

    def status(vector: Any) -> str:
        row = {"context": "Guide", "text": text, "vector": str(vector.tolist())}
        return vectors.check_canaries("X", [row], hash_embedder).status

    assert status(stored.round(3)) == "ok"
    assert status(-stored) == "error"
    assert status(stored[:32]) == "error"
    hash_embedder.poison = "rule"
    assert status(stored) == "error"
