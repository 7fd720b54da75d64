"""Vectors of a list of texts, where one text may spoil the whole request.

Ollama fails a batch as one and does not say which text was to blame, so a failing batch is halved until the
text stands alone. Before a text is blamed, a harmless word is embedded: a server that fails on that as well is
broken, and no text may be given up for it.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agent_server.embedding import EmbedderIdentity, Vectors, unit_rows
from agent_server.embedding.ollama_identity import unknown_model
from agent_server.embedding.ollama_texts import halves
from agent_server.embedding.ollama_wire import Budget, Wire
from agent_server.errors import EmbedderUnavailable, EmbeddingRefused

#: Seconds the model stays loaded. A number: as text, "-1" and the like are refused.
KEEP_ALIVE_S = 1800
PROBE = "harbour"
#: A single text longer than this that kills the runner is tried in parts, since length alone may be the cause.
_LONG_CHARS = 1000


class BatchFault(Exception):
    """A request failed for a reason that may lie in one of its texts."""

    def __init__(self, reason: str, *, too_long: bool = False, passing: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.too_long = too_long
        #: The same request may succeed at once: a runner that died, an answer with holes.
        self.passing = passing


@dataclass(slots=True)
class Outcome:
    """Rows (n, d), unit or NaN, with what happened to which position."""

    vectors: Vectors
    failures: dict[int, str] = field(default_factory=dict)
    split: set[int] = field(default_factory=set)


class BatchEmbedder:
    """One job: the texts of one call, under one contract and one Budget."""

    def __init__(self, wire: Wire, contract: EmbedderIdentity, budget: Budget, prefix: str) -> None:
        self._wire = wire
        self._contract = contract
        self._budget = budget
        self._prefix = prefix

    def run(self, texts: Mapping[int, str], count: int, batch_size: int = 32) -> Outcome:
        """Vectors (count, d) of `texts` by position; positions not among them stay NaN without a failure.

        The server embeds the texts of a request one after the other: more than `batch_size` in one would outlast
        its time-out.
        Raises EmbedderUnavailable and EmbeddingRefused when the server, and no text, is to blame.
        """
        width = self._contract.dimensions
        outcome = Outcome(np.full((count, width), np.nan, np.float32))
        places = list(texts)
        for at in range(0, len(places), batch_size):
            self._some(places[at : at + batch_size], texts, outcome, first=True)
        return outcome

    def _some(self, places: list[int], texts: Mapping[int, str], out: Outcome, *, first: bool) -> None:
        single = len(places) == 1
        try:
            # Halves of a batch are not repeated before they are halved again: the whole was, already.
            rows = self._request([texts[p] for p in places], again=first or single)
        except BatchFault as fault:
            if single:
                self._alone(places[0], texts[places[0]], fault, out)
                return
            middle = len(places) // 2
            self._some(places[:middle], texts, out, first=False)
            self._some(places[middle:], texts, out, first=False)
            return
        out.vectors[places] = rows
        for place in (p for p, row in zip(places, rows, strict=True) if np.isnan(row).any()):
            self._some([place], texts, out, first=False)  # alone, its fault can be told from the server's

    def _alone(self, place: int, text: str, fault: BatchFault, out: Outcome) -> None:
        """Settle a text that fails by itself: in parts, or as a failure."""
        if _divisible(text, fault):
            try:
                out.vectors[place] = self._mean_of_parts(text, fault)
            except BatchFault as part_fault:
                fault = part_fault
            else:
                out.split.add(place)
                return
        self._prove_server(fault)
        out.vectors[place] = np.nan
        out.failures[place] = fault.reason

    def _mean_of_parts(self, text: str, fault: BatchFault) -> Vectors:
        """The mean (d,) of the parts' vectors, weighed by their lengths. Raises BatchFault of the first bad part."""
        total = np.zeros(self._contract.dimensions, np.float64)
        waiting = [(text, fault)]
        while waiting:
            whole, why = waiting.pop()
            parts = halves(whole) if _divisible(whole, why) else None
            if parts is None:
                raise why
            for part in parts:
                try:
                    total += self._request([part])[0].astype(np.float64) * len(part)
                except BatchFault as again:
                    waiting.append((part, again))
        mean: Vectors = unit_rows(total.astype(np.float32)[np.newaxis])[0]
        if np.isnan(mean).any():
            raise BatchFault("its parts cancel each other out")
        return mean

    def _prove_server(self, fault: BatchFault) -> None:
        """Raise unless the server embeds a harmless word."""
        try:
            self._request([PROBE])
        except BatchFault as probe:
            # Both reasons: either alone may be the useful one.
            message = f"Ollama at {self._wire.url} cannot embed with {self._contract.model!r}: {probe.reason}"
            details = {"url": self._wire.url, "model": self._contract.model, "first_fault": fault.reason}
            if probe.passing:
                raise EmbedderUnavailable(
                    f"{message}.", hint="See Ollama's log; memory may be short.", details=details
                ) from None
            raise EmbeddingRefused(
                f"{message}.", hint="Upgrade Ollama, or pull the model again.", details=details
            ) from None

    def _request(self, texts: Sequence[str], *, again: bool = True) -> Vectors:
        """Rows (n, d), at least one of them good. Raises BatchFault."""
        try:
            return embed_once(self._wire, self._contract, self._budget, [self._prefix + t for t in texts])
        except BatchFault as fault:
            if not (again and fault.passing):
                raise
        return embed_once(self._wire, self._contract, self._budget, [self._prefix + t for t in texts])


def embed_once(wire: Wire, contract: EmbedderIdentity, budget: Budget, inputs: Sequence[str]) -> Vectors:
    """One request for non-blank `inputs`, prefix included: unit rows (n, d), NaN where a row is useless.

    Raises BatchFault when a text may be to blame, EmbeddingRefused when none can be, and what Wire.ask raises.
    """
    rows = ask_rows(wire, contract.model, contract.context_tokens, budget, inputs)
    widths = {len(row) for row in rows if row}
    if widths - {contract.dimensions}:
        raise EmbeddingRefused(
            f"{contract.model!r} answered vectors {sorted(widths)} wide; expected {contract.dimensions}.",
            hint="The model behind the name has changed: pull the earlier weights, or `kb reembed NAME`.",
            details={"model": contract.model, "expected": contract.dimensions, "found": sorted(widths)},
        )
    raw = np.full((len(rows), contract.dimensions), np.nan, np.float64)
    for place, row in enumerate(rows):
        if not row or not all(isinstance(x, int | float) for x in row):  # NaN may come as null
            continue
        with suppress(OverflowError):  # JSON's integers have no bound
            raw[place] = row
    with np.errstate(over="ignore"):
        vectors = unit_rows(raw.astype(np.float32))
    if np.isnan(vectors).any(axis=1).all():
        raise BatchFault("no finite vector with a direction came back", passing=True)
    return vectors


def ask_rows(wire: Wire, model: str, context: int, budget: Budget, inputs: Sequence[str]) -> list[list[Any]]:
    """The rows as they came, one list per input; their width and values are not checked yet."""
    body = {
        "model": model,
        "input": list(inputs),
        "truncate": False,  # else the tail is cut off without a sign
        "options": {"num_ctx": context},  # always the same: another value reloads the model
        "keep_alive": KEEP_ALIVE_S,
    }
    answer = wire.ask(budget, "POST", "/api/embed", body)
    reason = answer.reason
    if answer.status == 404:
        raise unknown_model(wire, model)
    if answer.status == 501:
        raise EmbeddingRefused(
            f"{model!r} cannot embed: {reason}.",
            hint="Set KB_EMBED_MODEL to an embedding model, such as nomic-embed-text.",
        )
    if answer.status != 200 or answer.data is None:
        too_long = "context length" in reason.lower()
        raise BatchFault(
            f"Ollama answered {answer.status}: {reason}",
            too_long=too_long,
            passing=answer.status >= 500 and not too_long,
        )
    rows = answer.data.get("embeddings")
    if not isinstance(rows, list) or len(rows) != len(inputs):
        found = len(rows) if isinstance(rows, list) else 0
        raise BatchFault(f"Ollama answered {found} vectors for {len(inputs)} texts", passing=True)
    return [row if isinstance(row, list) else [] for row in rows]


def _divisible(text: str, fault: BatchFault) -> bool:
    """Whether parts of `text` may fare better than the whole."""
    return fault.too_long or (fault.passing and len(text) > _LONG_CHARS and "nan" not in fault.reason.lower())
