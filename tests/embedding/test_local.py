"""The local model: unit vectors with meaning, nothing cut off, files pinned."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from agent_server.embedding import EmbedderIdentity, check_contract, storable, unit_rows
from agent_server.embedding.local import LocalEmbedder, _windows
from agent_server.errors import ContractMismatch, EmbeddingRefused, InvalidArgument, SettingsError


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    """The packaged model in a folder of one's own."""
    folder = tmp_path / "my-model"
    folder.mkdir()
    for name, path in LocalEmbedder()._files().items():
        (folder / name).symlink_to(path)
    return folder


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


def test_text_that_is_no_valid_unicode_costs_no_other_text_its_vector(local: LocalEmbedder) -> None:
    got = local.embed_passages(["words", "tide \ud800 table", "nul \x00 byte", "\ud800"])
    assert set(got.failures) == {3}
    assert got.vectors[1] @ local.embed_query("tide table") == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("blank", ["\u200b", "\x00", "\u00a0\ufeff"])
def test_a_question_of_invisible_characters_is_blank(local: LocalEmbedder, blank: str) -> None:
    with pytest.raises(InvalidArgument, match="query"):
        local.embed_query(blank)


UNREADABLE = ["ประเทศไทยมีประชากร", "แมวนอนบนเก้าอี้", "ኢትዮጵያ ውብ ናት", "🐻 !", "x" * 300]


def test_texts_in_letters_the_model_lacks_have_no_vector_rather_than_all_the_same(local: LocalEmbedder) -> None:
    readable = ["Привет мир", "中国的首都", "🐻 bears", "ราคา 500", "→ ★", "?!"]
    got = local.embed_passages([*UNREADABLE, *readable])
    assert set(got.failures) == set(range(len(UNREADABLE)))
    assert "no word that the model can read" in got.failures[0]
    assert np.isfinite(got.vectors[len(UNREADABLE) :]).all()
    with pytest.raises(EmbeddingRefused, match="no word that the model can read"):
        local.embed_query(UNREADABLE[0])


def test_a_model_folder_without_its_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"needs model\.onnx"):
        LocalEmbedder(tmp_path).identity()


def test_a_folder_of_ones_own_is_another_model_by_name_and_the_same_by_digest(
    local: LocalEmbedder, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_folder)
    own = LocalEmbedder(Path())
    assert own.identity().model == "my-model"
    assert own.identity() == LocalEmbedder(own_folder / ".." / "my-model").identity()
    assert (own.identity().digest, own.identity().dimensions) == (local.identity().digest, 384)
    assert own.embed_query("tides") == pytest.approx(local.embed_query("tides"), abs=1e-6)


def test_a_width_that_the_model_file_leaves_open_is_measured(own_folder: Path) -> None:
    own = LocalEmbedder(own_folder)
    real = own._session
    own.__dict__["_session"] = SimpleNamespace(
        get_outputs=lambda: [SimpleNamespace(shape=["batch", "tokens", "hidden"])],
        get_inputs=real.get_inputs,
        run=real.run,
    )
    assert own.identity().dimensions == 384


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
@pytest.mark.parametrize("content", [b"", b"{}"])
def test_a_file_that_is_no_model_is_a_settings_error_that_names_it(own_folder: Path, name: str, content: bytes) -> None:
    (own_folder / name).unlink()
    (own_folder / name).write_bytes(content)
    with pytest.raises(SettingsError, match=f"my-model/{name} cannot be loaded") as caught:
        LocalEmbedder(own_folder).embed_passages(["tides"])
    assert "KB_LOCAL_MODEL_DIR" in caught.value.hint


def test_a_packaged_file_other_than_the_pinned_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model.onnx").write_bytes(b"another model")
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    monkeypatch.setattr("agent_server.embedding.local._packaged", lambda _, file: tmp_path / Path(file).name)
    with pytest.raises(SettingsError, match=r"model\.onnx of the local model has sha256"):
        LocalEmbedder().identity()
    with pytest.raises(SettingsError, match="sha256"):
        LocalEmbedder()._session  # noqa: B018  never loaded unchecked


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
