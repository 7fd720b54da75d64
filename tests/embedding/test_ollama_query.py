"""A question's vector: never later than its time-out, whatever the server does."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from agent_server.embedding.ollama import OllamaEmbedder
from agent_server.errors import EmbedderUnavailable, EmbeddingRefused, InvalidArgument, PoisonText
from tests.ollama_double import OllamaDouble

MODEL = "nomic-embed-text"
#: Wall time allowed over the time-out: threads have to be woken on a busy machine.
SLACK_S = 0.5
Make = Callable[..., OllamaEmbedder]


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with OllamaDouble() as server:
        yield server


@pytest.fixture
def make(double: OllamaDouble) -> Iterator[Make]:
    made: list[OllamaEmbedder] = []

    def embedder(query_timeout_s: float = 5.0, **options: object) -> OllamaEmbedder:
        made.append(OllamaEmbedder(double.url, MODEL, query_timeout_s=query_timeout_s, **options))  # type: ignore[arg-type]
        return made[-1]

    yield embedder
    double.finish_loads()
    for client in made:
        client.close()


def late(embedder: OllamaEmbedder, seconds: float) -> EmbedderUnavailable:
    """The error of a question that is given up, having checked when."""
    begun = time.monotonic()
    with pytest.raises(EmbedderUnavailable) as caught:
        embedder.embed_query("when are mooring fees due?")
    assert time.monotonic() - begun < seconds + SLACK_S
    return caught.value


def test_a_question_gets_its_prefix_and_a_unit_vector(double: OllamaDouble, make: Make) -> None:
    vector = make().embed_query("mooring fees")
    assert (vector.shape, vector.dtype) == ((768,), np.float32)
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    assert double.embeds() == [["search_query: mooring fees"]]


@pytest.mark.parametrize("blank", ["", "  \n", "\u200b"])
def test_a_blank_question_is_refused_before_anything_is_asked(double: OllamaDouble, make: Make, blank: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        make().embed_query(blank)
    assert caught.value.field == "query"
    assert double.requests == []


def test_a_load_that_holds_back_the_headers_is_given_up_in_time(double: OllamaDouble, make: Make) -> None:
    double.fault(cold=30)
    embedder = make(0.2)
    embedder.identity()
    assert "/api/embed" in str(late(embedder, 0.2))


def test_the_next_question_finds_the_model_loaded_although_giving_up_aborts_the_load(
    double: OllamaDouble, make: Make
) -> None:
    double.fault(cold=30)
    embedder = make(0.2)
    embedder.identity()
    late(embedder, 0.2)
    double.wait_until(lambda: double.state.aborted and [] in double.embeds() and double.state.loading)
    double.finish_loads()
    double.wait_until(double.state.loaded)
    assert embedder.embed_query("mooring fees").shape == (768,)


def test_several_questions_given_up_begin_one_load(double: OllamaDouble, make: Make) -> None:
    double.fault(cold=30)
    embedder = make(0.1)
    for _ in range(3):
        late(embedder, 0.1)
    double.wait_until(lambda: [] in double.embeds())
    assert double.embeds().count([]) == 1


@pytest.mark.parametrize("path", ["/api/tags", "/api/show", "/api/embed"])
def test_a_server_that_stalls_anywhere_is_named_with_what_was_waited_for(
    double: OllamaDouble, make: Make, path: str
) -> None:
    double.fault(stall=30, path=path)
    assert f"{double.url}{path}" in late(make(0.4), 0.4).details["waited_for"]


def test_headers_that_dribble_in_are_given_up_in_time(double: OllamaDouble, make: Make) -> None:
    double.fault(dribble=0.02, path="/api/tags")
    assert "waited for GET" in str(late(make(0.2), 0.2))


def test_nobody_listening_is_told_at_once() -> None:
    with OllamaDouble() as server:
        url = server.url
    client = OllamaEmbedder(url, MODEL, query_timeout_s=2, sleep=lambda s: None)
    late(client, 0)
    client.close()


def test_a_reset_connection_is_tried_once_more(double: OllamaDouble, make: Make) -> None:
    double.fault(times=1, reset=True)
    assert make().embed_query("mooring fees").shape == (768,)


def test_no_try_begins_that_cannot_end_in_time(double: OllamaDouble, make: Make) -> None:
    pauses: list[float] = []
    embedder = make(0.05, sleep=pauses.append, random=lambda: 1.0)  # a pause of 0.1 s would outlast it
    double.fault(status=503, path="/api/tags")
    late(embedder, 0.05)
    assert pauses == []


def test_a_busy_server_is_unavailable(double: OllamaDouble, make: Make) -> None:
    double.fault(queue=0)
    assert "503" in str(late(make(sleep=lambda s: None), 1))


def test_a_question_that_the_model_cannot_embed_says_so(double: OllamaDouble, make: Make) -> None:
    double.fault(nan_text="POISON")
    with pytest.raises(PoisonText, match="NaN"):
        make().embed_query("what is POISON?")


def test_a_question_longer_than_the_model_reads_is_embedded_in_parts(make: Make) -> None:
    assert np.linalg.norm(make().embed_query("when are fees due? " * 1000)) == pytest.approx(1, abs=1e-6)


def test_a_zero_vector_is_never_searched_with(double: OllamaDouble, make: Make) -> None:
    double.fault(zero_vector=True)
    with pytest.raises(EmbedderUnavailable):
        make().embed_query("mooring fees")


def test_weights_that_change_under_the_name_are_noticed_within_a_minute(double: OllamaDouble, make: Make) -> None:
    now = [0.0]
    embedder = make(clock=lambda: now[0])
    before = embedder.identity()
    double.fault(digest_change=True)
    embedder.embed_query("mooring fees")
    now[0] = 61.0
    with pytest.raises(EmbeddingRefused, match=f"changed from {before.digest[:12]}"):
        embedder.embed_query("mooring fees")
    assert embedder.identity().digest not in ("", before.digest)
    assert embedder.embed_query("mooring fees").shape == (768,)


def test_closing_ends_what_runs(double: OllamaDouble) -> None:
    embedder = OllamaEmbedder(double.url, MODEL, query_timeout_s=0.1)
    double.fault(stall=30)
    late(embedder, 0.1)
    begun = time.monotonic()
    embedder.close()
    assert time.monotonic() - begun < SLACK_S
