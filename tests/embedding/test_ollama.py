"""Passages through Ollama: one text never costs the others, and a broken server never costs a text."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from agent_server.embedding import Vectors
from agent_server.embedding.ollama import OllamaEmbedder
from agent_server.embedding.ollama_batch import PROBE
from agent_server.errors import EmbedderUnavailable, EmbeddingRefused, SettingsError
from tests.ollama_double import OllamaDouble
from tests.ollama_double.models import Model
from tests.ollama_double.vectors import count_tokens

MODEL = "nomic-embed-text"
PREFIX = "search_document: "
EIGHT = [f"the harbour log, entry {n}" for n in range(8)]


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with OllamaDouble() as server:
        yield server


@pytest.fixture
def pauses() -> list[float]:
    """The seconds that the embedder would have slept."""
    return []


@pytest.fixture
def embedder(double: OllamaDouble, pauses: list[float]) -> Iterator[OllamaEmbedder]:
    client = OllamaEmbedder(double.url, MODEL, passage_timeout_s=5, sleep=pauses.append, random=lambda: 1.0)
    yield client
    client.close()


def with_poison(place: int) -> list[str]:
    return [f"{text} POISON" if n == place else text for n, text in enumerate(EIGHT)]


def stored(vectors: Vectors) -> list[int]:
    return [int(n) for n in np.flatnonzero(np.isfinite(vectors).all(axis=1))]


# B85, B95, quirks 1, 5, 17: counts, widths and lengths


def test_rows_are_unit_in_the_order_asked_and_the_body_says_what_it_must(
    double: OllamaDouble, embedder: OllamaEmbedder
) -> None:
    done = embedder.embed_passages(EIGHT)
    assert done.vectors.dtype == np.float32
    assert np.linalg.norm(done.vectors, axis=1) == pytest.approx(np.ones(8), abs=1e-6)
    assert embedder.embed_passages(EIGHT[3:4]).vectors[0] == pytest.approx(done.vectors[3], abs=1e-6)
    body = next(r.body for r in double.requests if r.path == "/api/embed")
    assert body == {
        "model": MODEL,
        "input": [PREFIX + text for text in EIGHT],
        "truncate": False,
        "options": {"num_ctx": 2048},
        "keep_alive": 1800,
    }


def test_no_texts_make_no_rows_and_no_request(double: OllamaDouble, embedder: OllamaEmbedder) -> None:
    assert embedder.embed_passages([]).vectors.shape == (0, 768)
    assert double.embeds() == []


def test_raw_vectors_are_brought_to_length_one() -> None:
    def raw(texts: Sequence[str]) -> Vectors:
        return np.tile(np.arange(1, 9, dtype=np.float32), (len(texts), 1))

    with OllamaDouble(embed_with=raw, dimensions=8) as double:
        client = OllamaEmbedder(double.url, MODEL)
        assert np.linalg.norm(client.embed_passages(["x"]).vectors) == pytest.approx(1)
        client.close()


@pytest.mark.parametrize("switch", ["short_batch", "empty_vectors", "zero_vector", "null_vector"])
def test_one_answer_without_the_vectors_asked_for_is_asked_again(
    double: OllamaDouble, embedder: OllamaEmbedder, switch: str
) -> None:
    double.fault(times=1, **{switch: True})
    done = embedder.embed_passages(EIGHT)
    assert (dict(done.failures), stored(done.vectors)) == ({}, list(range(8)))


@pytest.mark.parametrize("switch", ["short_batch", "empty_vectors", "zero_vector", "null_vector"])
def test_a_server_that_never_gives_the_vectors_is_blamed_itself(
    double: OllamaDouble, embedder: OllamaEmbedder, switch: str
) -> None:
    double.fault(**{switch: True})
    with pytest.raises(EmbedderUnavailable, match="cannot embed"):
        embedder.embed_passages(EIGHT)
    assert len(double.embeds()) < 12


@pytest.mark.parametrize("switch", ["zero_vector", "null_vector"])
def test_one_bad_row_is_settled_alone(double: OllamaDouble, embedder: OllamaEmbedder, switch: str) -> None:
    double.fault(times=1, **{switch: 2})  # the row of the third text, in this answer
    done = embedder.embed_passages(EIGHT)
    assert dict(done.failures) == {}
    assert double.embeds() == [[PREFIX + t for t in EIGHT], [PREFIX + EIGHT[2]]]


def test_a_row_that_stays_bad_is_a_failure_of_that_text() -> None:
    with_nan = OllamaDouble(
        embed_with=lambda ts: np.array([[0.0 if "POISON" in t else 1.0] * 4 for t in ts]), dimensions=4
    )
    with with_nan as server:
        client = OllamaEmbedder(server.url, MODEL)
        done = client.embed_passages(with_poison(5))
        client.close()
    assert list(done.failures) == [5]
    assert "no finite vector" in done.failures[5]
    assert stored(done.vectors) == [0, 1, 2, 3, 4, 6, 7]


def test_vectors_of_another_width_are_refused(double: OllamaDouble, embedder: OllamaEmbedder) -> None:
    double.fault(wrong_dim=512)
    with pytest.raises(EmbeddingRefused, match=r"\[512\] wide; expected 768"):
        embedder.embed_passages(EIGHT)


def test_only_the_one_endpoint_is_ever_asked_for_vectors(double: OllamaDouble, embedder: OllamaEmbedder) -> None:
    double.fault(nan_text="POISON", crash_once=True)
    embedder.embed_passages(with_poison(1))
    assert set(double.paths()) == {"/api/tags", "/api/show", "/api/embed"}


@pytest.mark.parametrize(
    "values",
    ["1" + "0" * 400, "1e999", "NaN", "-Infinity", "null", '"1"', "[]"],
    ids=["integer without bound", "1e999", "NaN", "-Infinity", "null", "text", "list"],
)
def test_numbers_that_are_none_make_no_vector_and_raise_nothing_untyped(
    double: OllamaDouble, embedder: OllamaEmbedder, values: str
) -> None:
    embedder.identity()
    double.fault(raw=f'{{"embeddings":[[{",".join([values] * 768)}]]}}')
    with pytest.raises(EmbedderUnavailable, match="no finite vector"):
        embedder.embed_passages(["tides"])


def test_values_whose_squares_overflow_still_have_a_direction(double: OllamaDouble, embedder: OllamaEmbedder) -> None:
    embedder.identity()
    double.fault(raw=f'{{"embeddings":[[{",".join(["3e38"] * 768)}]]}}')
    assert np.linalg.norm(embedder.embed_passages(["tides"]).vectors[0]) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("body", ["[" * 100_000, "[1]", '"text"', ""], ids=["deep", "list", "text", "nothing"])
def test_a_body_that_is_no_object_is_asked_for_again(
    double: OllamaDouble, embedder: OllamaEmbedder, pauses: list[float], body: str
) -> None:
    double.fault(times=1, raw=body)
    assert dict(embedder.embed_passages(EIGHT).failures) == {}
    assert pauses == [1.0]


def test_many_texts_go_in_batches_and_keep_their_order(double: OllamaDouble) -> None:
    client = OllamaEmbedder(double.url, MODEL, batch_size=3)
    done = client.embed_passages([" ", *EIGHT])
    client.close()
    assert [len(batch) for batch in double.embeds()] == [3, 3, 2]
    assert [text for batch in double.embeds() for text in batch] == [PREFIX + text for text in EIGHT]
    assert (dict(done.failures), stored(done.vectors)) == ({0: "blank"}, list(range(1, 9)))


# B86, B87, quirk 3: a text that spoils its batch


@pytest.mark.parametrize("old", [None, "0.3", "0.5", "0.11"])
def test_a_text_that_gives_nan_is_recorded_and_the_others_are_stored(
    double: OllamaDouble, embedder: OllamaEmbedder, old: str | None
) -> None:
    double.fault(nan_text="POISON")
    if old is not None:
        double.fault(old=old)
    done = embedder.embed_passages(with_poison(5))
    assert stored(done.vectors) == [0, 1, 2, 3, 4, 6, 7]
    assert list(done.failures) == [5]
    assert done.failures[5].startswith(
        "Ollama answered 400: embedding contains NaN" if old is None else "Ollama answered 500"
    )
    assert len(double.embeds()) <= 14
    before = len(double.embeds())
    again = embedder.embed_passages(with_poison(5))
    assert list(again.failures) == [5]
    assert len(double.embeds()) - before <= 14


def test_two_poison_texts_among_sixteen_are_both_found(double: OllamaDouble, embedder: OllamaEmbedder) -> None:
    double.fault(nan_text="POISON")
    done = embedder.embed_passages([f"{n} POISON" if n in (0, 15) else f"{n}" for n in range(16)])
    assert list(done.failures) == [0, 15]
    assert stored(done.vectors) == list(range(1, 15))


def test_a_text_that_kills_the_runner_is_embedded_in_parts(double: OllamaDouble, embedder: OllamaEmbedder) -> None:
    double.fault(eof_over=512)
    texts = [*EIGHT, "The mooring was renewed in spring. " * 150]
    assert count_tokens(texts[-1]) > 1000
    done = embedder.embed_passages(texts)
    assert (dict(done.failures), done.split) == ({}, {8})
    assert stored(done.vectors) == list(range(9))


def test_four_callers_whose_batches_kill_the_runner_all_get_all_their_vectors(double: OllamaDouble) -> None:
    double.fault(eof_over=512)
    client = OllamaEmbedder(double.url, MODEL, passage_timeout_s=30, sleep=lambda s: None)
    batches = [[f"caller {n}, entry {m}" for m in range(15)] + ["tide " * 1500] for n in range(4)]
    assert count_tokens(batches[0][-1]) == 1500
    with ThreadPoolExecutor(4) as pool:
        for done in pool.map(client.embed_passages, batches):
            assert (dict(done.failures), done.split) == ({}, {15})
            assert stored(done.vectors) == list(range(16))
    client.close()


def test_a_crash_that_does_not_repeat_costs_one_more_request(double: OllamaDouble, embedder: OllamaEmbedder) -> None:
    double.fault(crash_once=True)
    assert dict(embedder.embed_passages(EIGHT).failures) == {}
    assert len(double.embeds()) == 2


@pytest.mark.parametrize("switch", [{"error_object": True}, {"status": 500}])
def test_a_server_that_fails_on_everything_costs_no_text_its_vector(
    double: OllamaDouble, embedder: OllamaEmbedder, switch: dict[str, object]
) -> None:
    double.fault(**switch)
    with pytest.raises(EmbedderUnavailable) as caught:
        embedder.embed_passages(EIGHT)
    assert caught.value.hint
    assert PROBE.encode() in double.requests[-1].raw  # it stops at the harmless word
    assert double.paths().count("/api/embed") < 12


# B88, quirk 4


def test_blank_texts_are_never_sent(double: OllamaDouble, embedder: OllamaEmbedder) -> None:
    blanks = ["", "   ", "\n\t", "\u200b\ufeff", "\x00"]
    done = embedder.embed_passages([EIGHT[0], *blanks])
    assert dict(done.failures) == dict.fromkeys(range(1, 6), "blank")
    assert double.embeds() == [[PREFIX + EIGHT[0]]]


def test_text_that_is_no_valid_unicode_is_sent_all_the_same(embedder: OllamaEmbedder) -> None:
    assert dict(embedder.embed_passages(["tide \ud800 table", "nul \x00 byte"]).failures) == {}


# Quirk 2: nothing is cut off silently


def test_a_text_longer_than_the_model_reads_is_split_and_its_end_counts(
    double: OllamaDouble, embedder: OllamaEmbedder
) -> None:
    long = "Wheat prices fell again. " * 800 + "\n\n" + "Lighthouse keepers met in autumn. " * 800
    done = embedder.embed_passages([EIGHT[0], long])
    assert (dict(done.failures), done.split) == ({}, {1})
    assert all(r.body is None or r.body.get("truncate", False) is False for r in double.requests)
    end = embedder.embed_passages(["Lighthouse keepers met in autumn."]).vectors[0]
    assert done.vectors[1] @ end > 0.3
    assert np.linalg.norm(done.vectors[1]) == pytest.approx(1, abs=1e-6)
    parts = [text for batch in double.embeds() for text in batch if count_tokens(text) <= 2046]
    assert all(part.startswith(PREFIX) for part in parts)


def test_a_long_text_without_a_seam_is_split_as_well(embedder: OllamaEmbedder) -> None:
    done = embedder.embed_passages(["x" * 20_000])
    assert (dict(done.failures), done.split) == ({}, {0})


def test_a_long_text_with_a_poisonous_part_fails_as_a_whole(double: OllamaDouble, embedder: OllamaEmbedder) -> None:
    double.fault(nan_text="POISON")
    done = embedder.embed_passages([EIGHT[0], "wheat prices. " * 2000 + "POISON"])
    assert list(done.failures) == [1]
    assert done.split == frozenset()
    assert stored(done.vectors) == [0]


def test_a_limit_that_nothing_fits_ends_in_a_failure_and_not_in_a_loop(double: OllamaDouble) -> None:
    tiny = Model("tiny:latest", "bert", 16, 3, ("embedding",))
    double.models[tiny.name] = tiny
    client = OllamaEmbedder(double.url, "tiny")
    done = client.embed_passages(["abcdefghijkl", "abc"])
    client.close()
    assert (dict(done.failures), done.split) == ({}, {0})


# B89, quirks 7, 8, 9: loading and waiting


def test_a_full_queue_is_waited_out_with_growing_pauses(
    double: OllamaDouble, embedder: OllamaEmbedder, pauses: list[float]
) -> None:
    double.fault(times=3, status=503)
    assert dict(embedder.embed_passages(EIGHT).failures) == {}
    assert pauses == [1.0, 2.0, 4.0]


def test_a_queue_that_stays_full_is_unavailable_after_the_tries(
    double: OllamaDouble, embedder: OllamaEmbedder, pauses: list[float]
) -> None:
    double.fault(queue=0)
    with pytest.raises(EmbedderUnavailable, match=r"after 4 tries: 503 server busy"):
        embedder.embed_passages(EIGHT)
    assert len(pauses) == 3


def test_pauses_are_jittered(double: OllamaDouble) -> None:
    pauses: list[float] = []
    client = OllamaEmbedder(double.url, MODEL, sleep=pauses.append, random=lambda: 0.0)
    double.fault(times=2, status=503)
    client.embed_passages(["x"])
    client.close()
    assert pauses == [0.5, 1.0]


def test_a_time_out_shorter_than_the_load_aborts_it_and_a_warm_up_does_not(double: OllamaDouble) -> None:
    double.fault(cold=30)
    hasty = OllamaEmbedder(double.url, MODEL, passage_timeout_s=0.05, tries=2, sleep=lambda s: None)
    with pytest.raises(EmbedderUnavailable, match="no answer in time"):
        hasty.embed_passages(EIGHT)
    hasty.close()
    double.wait_until(lambda: len(double.state.aborted) == 2)
    double.fault(cold=0.2)
    patient = OllamaEmbedder(double.url, MODEL, passage_timeout_s=5)
    patient.warm_up()
    assert double.embeds()[-1] == []
    assert list(double.state.loaded()) == ["nomic-embed-text:latest"]
    patient.embed_passages(EIGHT)
    patient.close()
    assert len(double.state.loads) == 3  # the same num_ctx as the warm-up: not loaded again


# Connections and answers that break


@pytest.mark.parametrize(
    "switch", [{"reset": True}, {"truncate_body": True}, {"truncate_body": "json"}, {"html_502": True}]
)
def test_a_broken_answer_is_asked_for_again(
    double: OllamaDouble, embedder: OllamaEmbedder, pauses: list[float], switch: dict[str, object]
) -> None:
    double.fault(times=2, **switch)
    assert dict(embedder.embed_passages(EIGHT).failures) == {}
    assert pauses == [1.0, 2.0]


@pytest.mark.parametrize(
    "switch", [{"reset": True}, {"truncate_body": True}, {"truncate_body": "json"}, {"html_502": True}]
)
def test_answers_that_stay_broken_are_unavailable(
    double: OllamaDouble, embedder: OllamaEmbedder, switch: dict[str, object]
) -> None:
    double.fault(**switch)
    with pytest.raises(EmbedderUnavailable, match="after 4 tries") as caught:
        embedder.embed_passages(EIGHT)
    assert "<html" not in str(caught.value)
    assert double.paths().count("/api/embed") == 4


def test_nobody_listening_is_unavailable_with_what_to_do(pauses: list[float]) -> None:
    with OllamaDouble() as double:
        url = double.url
    client = OllamaEmbedder(url, MODEL, sleep=pauses.append)
    with pytest.raises(EmbedderUnavailable) as caught:
        client.embed_passages(EIGHT)
    client.close()
    assert url in str(caught.value)
    assert "ollama serve" in caught.value.hint
    assert len(pauses) == 3


def test_a_stalled_server_is_unavailable(double: OllamaDouble) -> None:
    double.fault(stall=30)
    client = OllamaEmbedder(double.url, MODEL, passage_timeout_s=0.05, tries=2, sleep=lambda s: None)
    with pytest.raises(EmbedderUnavailable, match="after 2 tries: no answer in time"):
        client.embed_passages(EIGHT)
    client.close()


# B91, quirk 11


def test_a_proxy_in_the_environment_does_not_catch_loopback(
    double: OllamaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    client = OllamaEmbedder(double.url, MODEL, tries=1)
    assert client.identity().dimensions == 768
    client.close()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "socks5://10.9.9.9:9"),  # httpx speaks SOCKS only with another package
        ("HTTP_PROXY", "http://user:hunter2/x@proxy:3128"),  # httpx takes the password for a port, and shows it
        ("SSL_CERT_FILE", "/nowhere/ca.pem"),
    ],
)
def test_an_environment_that_allows_no_connection_is_a_settings_error_except_for_loopback(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        OllamaEmbedder("http://10.1.2.3:11434", MODEL)
    assert name in caught.value.hint
    assert "hunter2" not in str(caught.value)
    OllamaEmbedder("http://127.0.0.1:11434", MODEL).close()


def test_nothing_but_the_texts_leaves_this_program(double: OllamaDouble, embedder: OllamaEmbedder) -> None:
    embedder.embed_passages(EIGHT)
    allowed = {
        "host",
        "accept",
        "accept-encoding",
        "connection",
        "user-agent",
        "content-type",
        "content-length",
    }
    assert {name for r in double.requests for name in r.headers} <= allowed


def test_no_more_than_two_requests_of_passages_are_in_flight(double: OllamaDouble, embedder: OllamaEmbedder) -> None:
    embedder.identity()
    double.fault(cold=30)
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(embedder.embed_passages, [text]) for text in EIGHT[:4]]
        double.wait_until(lambda: len(double.embeds()) == 2)
        assert sum(r.status is None for r in double.requests) == 2
        double.finish_loads()
        assert all(stored(job.result().vectors) == [0] for job in jobs)
    assert double.state.loads == ["nomic-embed-text:latest"]
