"""Settings fail at start, by name."""

from pathlib import Path

import pytest

from agent_server.errors import SettingsError
from agent_server.settings import Settings, load_settings


@pytest.fixture
def none(tmp_path: Path) -> Path:
    return tmp_path / "none"


def test_an_unknown_key_is_refused_by_name_with_those_there_are(none: Path) -> None:
    with pytest.raises(SettingsError, match="KB_EMBEDER: no such setting") as caught:
        load_settings({"KB_EMBEDER": "local"}, none)
    assert "KB_EMBEDDER" in caught.value.hint


@pytest.mark.parametrize(
    ("key", "value", "word"),
    [
        ("KB_EMBEDDER", "openai", "ollama"),
        ("KB_EMBED_BATCH_SIZE", "0", "greater than or equal to 1"),
        ("KB_DATABASE_URL", "mysql://x", "postgresql://"),
        ("KB_EMBED_MODEL", "huge:cloud", "off this machine"),
        ("KB_QUERY_TIMEOUT_S", "soon", "number"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_the_rule(none: Path, key: str, value: str, word: str) -> None:
    with pytest.raises(SettingsError, match=key) as caught:
        load_settings({key: value}, none)
    assert word in caught.value.message


def test_the_embedder_follows_the_environment(none: Path) -> None:
    assert load_settings({}, none).embedder_kind == "local"
    assert load_settings({"OLLAMA_HOST": "h:1"}, none).embedder_kind == "ollama"
    assert load_settings({"OLLAMA_HOST": " "}, none).embedder_kind == "local"
    assert load_settings({"KB_OLLAMA_URL": "http://h:1", "OLLAMA_HOST": "other"}, none).ollama_url == "http://h:1"
    assert load_settings({"OLLAMA_HOST": "h:1", "KB_EMBEDDER": "local"}, none).embedder_kind == "local"


def test_a_dotenv_file_is_read_and_the_environment_wins(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("KB_EMBED_BATCH_SIZE=7\nKB_MAX_QUERY_CHARS=500\nUNRELATED=1\n")
    settings = load_settings({"KB_MAX_QUERY_CHARS": "600"}, file)
    assert (settings.embed_batch_size, settings.max_query_chars) == (7, 600)


def test_empty_values_mean_unset(none: Path) -> None:
    assert load_settings({"KB_DATABASE_URL": "", "KB_EMBEDDER": ""}, none).database_url is None


def test_secrets_are_hidden_when_settings_are_shown(none: Path) -> None:
    settings = load_settings({"KB_DATABASE_URL": "postgresql://u:pw@h/d", "KB_READER_SECRET": "tops"}, none)
    shown = settings.shown()
    assert set(shown) == {f"KB_{name.upper()}" for name in Settings.model_fields}
    assert not any(secret in str(shown) for secret in ("u:pw", "tops"))
