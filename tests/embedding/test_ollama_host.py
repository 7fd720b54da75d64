"""Ollama's address in every form that OLLAMA_HOST takes (fault row B91)."""

import pytest

from agent_server.embedding.ollama_host import is_loopback, parse_host
from agent_server.errors import SettingsError

FORMS = [
    ("", "http://127.0.0.1:11434"),
    ("   ", "http://127.0.0.1:11434"),
    (" 'example.com' ", "http://example.com:11434"),
    ("example.com", "http://example.com:11434"),
    ("example.com:1234", "http://example.com:1234"),
    ("localhost:11434", "http://localhost:11434"),
    (":1234", "http://127.0.0.1:1234"),
    ("0.0.0.0", "http://127.0.0.1:11434"),
    ("0.0.0.0:5000", "http://127.0.0.1:5000"),
    ("http://0.0.0.0:11434", "http://127.0.0.1:11434"),
    ("[::]", "http://[::1]:11434"),
    ("::", "http://[::1]:11434"),
    ("http://h", "http://h:80"),
    ("https://h", "https://h:443"),
    ("HTTPS://h", "https://h:443"),
    ("https://h/ollama", "https://h:443/ollama"),
    ("h:1/ollama/", "http://h:1/ollama"),
    ("h:1//a//b/", "http://h:1/a/b"),
    ("http://h:1/api", "http://h:1"),
    ("h:1/ollama/api/", "http://h:1/ollama"),
    ("::1", "http://[::1]:11434"),
    ("[::1]", "http://[::1]:11434"),
    ("[::1]:1234", "http://[::1]:1234"),
    ("h:99999", "http://h:11434"),
    ("h:abc", "http://h:11434"),
    ("https://h:0", "https://h:443"),
    ("ollama.com", "https://ollama.com:443"),
]


@pytest.mark.parametrize(("value", "url"), FORMS)
def test_each_form_becomes_an_address_to_connect_to(value: str, url: str) -> None:
    assert parse_host(value) == url


@pytest.mark.parametrize("url", sorted({url for _, url in FORMS}))
def test_an_address_stands_for_itself(url: str) -> None:
    assert parse_host(url) == url


@pytest.mark.parametrize("value", ["ftp://h", "unix:///run/ollama.sock", "two words", "http://a<b"])
def test_what_is_no_address_is_refused_with_the_accepted_forms(value: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_host(value)
    assert "host:port" in caught.value.hint


def test_a_login_in_the_address_is_refused_without_showing_it() -> None:
    with pytest.raises(SettingsError) as caught:
        parse_host("http://me:hunter2@h:1")
    assert "hunter2" not in str(caught.value)


def test_loopback_is_told_from_other_hosts() -> None:
    assert all(map(is_loopback, ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "http://a.localhost"]))
    assert not any(map(is_loopback, ["http://h:1", "http://10.0.0.1:1", "http://localhost.example.com"]))
