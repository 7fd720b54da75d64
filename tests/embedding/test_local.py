"""The local model: unit vectors with meaning, nothing cut off, files pinned."""

from pathlib import Path

import numpy as np
import pytest

from agent_server.embedding import EmbedderIdentity, check_contract, storable, unit_rows
from agent_server.embedding.local import LocalEmbedder, _windows
from agent_server.errors import ContractMismatch, InvalidArgument, SettingsError


@pytest.fixture(scope="module")
def local() -> LocalEmbedder:
    return LocalEmbedder()


def test_vectors_are_unit_rows_of_the_width_it_says(local: LocalEmbedder) -> None:
    got = local.embed_passages(["The ferry leaves at noon.", "Income is verified by the branch."])
    assert got.vectors.shape == (2, local.identity().dimensions)
    assert got.vectors.dtype == np.float32
    assert np.linalg.norm(got.vectors, axis=1) == pytest.approx([1.0, 1.0], abs=1e-5)
    assert not got.failures
    assert not got.split


def test_near_meanings_are_nearer_than_far_ones(local: LocalEmbedder) -> None:
    question = local.embed_query("Who may ride the school bus for free?")
    near, far = local.embed_passages(
        ["Transport without charge for pupils living far from school.", "The loan is repaid in monthly instalments."]
    ).vectors
    assert question @ near > question @ far + 0.2


def test_a_vector_does_not_depend_on_its_neighbours(local: LocalEmbedder) -> None:
    text = "The chapel opens on Sundays."
    alone = local.embed_query(text)
    among = local.embed_passages(["x " * 300, text, "Another one."]).vectors[1]
    assert alone == pytest.approx(among, abs=1e-6)


def test_a_long_text_is_read_to_its_end(local: LocalEmbedder) -> None:
    long = "Plain filler sentence about nothing. " * 60
    with_end = local.embed_passages([long, long + "The lighthouse keeper feeds seven cats."])
    assert with_end.split == {0, 1}
    question = local.embed_query("lighthouse keeper's cats")
    assert question @ with_end.vectors[1] > question @ with_end.vectors[0] + 0.02


def test_windows_are_even_and_lose_nothing() -> None:
    ids = list(range(600))
    windows = _windows(ids, 254)
    assert [len(w) for w in windows] == [200, 200, 200]
    assert [n for window in windows for n in window] == ids


def test_a_blank_text_has_no_vector_and_a_blank_question_is_refused(local: LocalEmbedder) -> None:
    got = local.embed_passages(["", "words"])
    assert set(got.failures) == {0}
    assert np.isnan(got.vectors[0]).all()
    assert np.isfinite(got.vectors[1]).all()
    with pytest.raises(InvalidArgument, match="query"):
        local.embed_query(" ")


def test_a_model_folder_without_its_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"needs model\.onnx"):
        LocalEmbedder(tmp_path).identity()


def test_vectors_that_half_precision_cannot_hold_are_found() -> None:
    rows = np.array([[1, 0], [np.nan, 1], [np.inf, 0], [70000, 0], [1e-9, 1e-9], [0, 0]], np.float32)
    assert storable(rows).tolist() == [True, False, False, False, False, False]
    assert np.isnan(unit_rows(rows)[[1, 2, 5]]).all()
    assert unit_rows(rows)[3].tolist() == [1.0, 0.0]


def test_a_contract_differs_in_words_that_name_both_sides() -> None:
    stored = EmbedderIdentity("ollama", "nomic", "aaaa", 768, "q: ", "p: ", 2048)
    check_contract(stored, EmbedderIdentity("ollama", "nomic", "aaaa", 768, "q: ", "p: ", 8192))
    with pytest.raises(ContractMismatch, match=r"digest is 'bbbb', the collection has 'aaaa'.*width is 3"):
        check_contract(stored, EmbedderIdentity("ollama", "nomic", "bbbb", 3, "q: ", "p: ", 2048))
