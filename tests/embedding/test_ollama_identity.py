"""Which model answers, what is put before its texts, and which models are refused before anything is loaded."""

from collections.abc import Iterator

import pytest

from agent_server.embedding import EmbedderIdentity, check_contract
from agent_server.embedding.ollama import OllamaEmbedder
from agent_server.embedding.ollama_batch import PROBE
from agent_server.embedding.ollama_texts import halves, is_blank, prefixes
from agent_server.errors import ContractMismatch, EmbedderUnavailable, EmbeddingRefused
from tests.ollama_double import Model, OllamaDouble

MODEL = "nomic-embed-text"
SENTENCE = "Represent this sentence for searching relevant passages: "


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with OllamaDouble() as server:
        yield server


def identity(url: str, model: str = MODEL) -> EmbedderIdentity:
    client = OllamaEmbedder(url, model, sleep=lambda s: None)
    try:
        return client.identity()
    finally:
        client.close()


def refusal(url: str, model: str = MODEL) -> EmbeddingRefused:
    with pytest.raises(EmbeddingRefused) as caught:
        identity(url, model)
    return caught.value


def test_the_contract_holds_the_digest_and_what_show_tells(double: OllamaDouble) -> None:
    got = identity(double.url, "mxbai-embed-large")
    assert got.kind == "ollama"
    assert got.digest == double.models["mxbai-embed-large:latest"].digest
    assert (got.dimensions, got.context_tokens) == (1024, 512)
    assert (got.query_prefix, got.passage_prefix) == (SENTENCE, "")
    assert double.state.loads == []


def test_it_is_asked_once(double: OllamaDouble) -> None:
    client = OllamaEmbedder(double.url, MODEL)
    assert client.identity() is client.identity()
    client.embed_query("tides")
    client.close()
    assert double.paths() == ["/api/tags", "/api/show", "/api/embed"]


@pytest.mark.parametrize("name", ["nomic-embed-text", "nomic-embed-text:latest", "Nomic-Embed-Text:Latest"])
def test_a_name_is_found_with_and_without_its_tag_in_any_case(double: OllamaDouble, name: str) -> None:
    assert identity(double.url, name) == identity(double.url, MODEL)


def test_an_unknown_model_says_how_to_get_it_and_is_not_asked_for_twice(double: OllamaDouble) -> None:
    error = refusal(double.url, "bge-large")
    assert "ollama pull bge-large" in error.hint
    assert len(double.requests) == 1


def test_a_model_removed_meanwhile_says_how_to_get_it(double: OllamaDouble) -> None:
    client = OllamaEmbedder(double.url, MODEL)
    client.identity()
    del double.models["nomic-embed-text:latest"]
    with pytest.raises(EmbeddingRefused) as caught:
        client.embed_passages(["tides"])
    client.close()
    assert f"ollama pull {MODEL}" in caught.value.hint


@pytest.mark.parametrize("chat", ["llama3.2", "gemma2"])
def test_a_chat_model_is_refused_before_it_is_loaded(double: OllamaDouble, chat: str) -> None:
    error = refusal(double.url, chat)
    assert "no embedding model" in str(error)
    assert "nomic-embed-text" in error.hint
    assert double.state.loads == []


def test_a_chat_model_that_does_not_tell_its_abilities_is_refused_by_its_501(double: OllamaDouble) -> None:
    double.models["llama3.2:latest"].capabilities = ()
    client = OllamaEmbedder(double.url, "llama3.2")
    with pytest.raises(EmbeddingRefused, match="cannot embed"):
        client.embed_passages(["tides"])
    client.close()


@pytest.mark.parametrize("name", ["qwen3-embed:cloud", "gpt-oss:120b-cloud"])
def test_a_model_that_runs_elsewhere_is_refused_without_a_word_to_the_server(double: OllamaDouble, name: str) -> None:
    with pytest.raises(EmbeddingRefused, match="off this machine"):
        OllamaEmbedder(double.url, name)
    assert double.requests == []


def test_a_server_without_the_endpoint_is_too_old(double: OllamaDouble) -> None:
    double.fault(old="0.2")
    assert "too old" in str(refusal(double.url))


def test_a_wrong_base_path_is_told_from_an_unknown_model() -> None:
    with OllamaDouble(prefix="/ollama") as double:
        assert identity(double.url).dimensions == 768
        assert "wrong base path" in str(refusal(double.url.removesuffix("/ollama")))


def test_a_foreign_host_name_refused_by_the_server_is_explained(double: OllamaDouble) -> None:
    double.fault(status=403, path="/api/tags")
    assert "foreign host names" in refusal(double.url).hint


def test_a_server_without_capabilities_is_used(double: OllamaDouble) -> None:
    double.fault(old="0.5")
    assert identity(double.url).dimensions == 768


def test_a_server_that_tells_no_width_is_measured_and_warmed_up_with_a_word(double: OllamaDouble) -> None:
    double.fault(old="0.3")
    client = OllamaEmbedder(double.url, MODEL)
    assert client.identity().dimensions == 768
    client.warm_up()
    client.close()
    assert double.embeds() == [[PROBE], [], [PROBE]]


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        '{"model_info": null}',
        '{"model_info": [1], "capabilities": {"a": 1}}',
        '{"model_info": {"general.architecture": "b", "b.embedding_length": true, "b.context_length": "many"}}',
    ],
)
def test_what_show_tells_in_no_known_form_is_measured_instead(double: OllamaDouble, body: str) -> None:
    double.fault(raw=body, path="/api/show")
    got = identity(double.url)
    assert (got.dimensions, got.context_tokens) == (768, 2048)


@pytest.mark.parametrize("body", ['{"models": null}', '{"models": {"a": 1}}', '{"models": [null, 3, "x"]}'])
def test_a_list_of_models_in_no_known_form_holds_no_model(double: OllamaDouble, body: str) -> None:
    double.fault(raw=body, path="/api/tags")
    assert "has no model" in str(refusal(double.url))


def test_a_proxy_page_is_unavailable(double: OllamaDouble) -> None:
    double.fault(html_502=True, path="*")
    with pytest.raises(EmbedderUnavailable, match="502"):
        identity(double.url)


def test_a_tag_that_points_at_other_weights_is_another_contract(double: OllamaDouble) -> None:
    before = identity(double.url)
    double.fault(digest_change=True)
    after = identity(double.url)
    assert before.digest != after.digest
    with pytest.raises(ContractMismatch, match="digest"):
        check_contract(before, after)


def test_a_huge_context_is_bounded(double: OllamaDouble) -> None:
    double.models["big:latest"] = Model("big:latest", "qwen3", 32, 131_072, ("embedding",))
    assert identity(double.url, "big").context_tokens == 8192


@pytest.mark.parametrize(
    ("model", "query", "passage"),
    [
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("library/nomic-embed-text:v1.5", "search_query: ", "search_document: "),
        ("mxbai-embed-large:335m", SENTENCE, ""),
        ("jeffh/intfloat-multilingual-e5-large:f16", "query: ", "passage: "),
        ("e5-base", "query: ", "passage: "),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("snowflake-arctic-embed:110m", SENTENCE, ""),
        ("bge-large", SENTENCE, ""),
        ("bge-m3", "", ""),
        ("all-minilm", "", ""),
        ("somee5thing", "", ""),
    ],
)
def test_each_family_gets_the_words_it_was_trained_with(model: str, query: str, passage: str) -> None:
    assert prefixes(model) == (query, passage)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One two.\n\nThree four.", ("One two.", "Three four.")),
        ("One two three. Four five six.", ("One two three.", "Four five six.")),
        ("one two three four", ("one two", "three four")),
        ("abcdef", ("abc", "def")),
        ("潮が満ちる。船が出る。", ("潮が満ちる。", "船が出る。")),
        ("a", None),
        ("a   ", None),
        ("      ab", ("a", "b")),
    ],
)
def test_a_text_is_cut_at_the_best_seam_near_its_middle(text: str, parts: tuple[str, str] | None) -> None:
    assert halves(text) == parts


def test_blank_means_nothing_to_read() -> None:
    assert all(map(is_blank, ["", " \n", "\u200b", "\x00", "\u00a0\ufeff"]))
    assert not any(map(is_blank, ["a", ".", "\u200ba", "é"]))
