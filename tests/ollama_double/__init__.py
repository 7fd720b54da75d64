"""A double of Ollama's HTTP API over a real socket, built from its specification, with faults on demand.

    with OllamaDouble() as double:
        double.fault(nan_text="POISON")
        client = OllamaEmbedder(double.url, "nomic-embed-text")

Its vectors are hashed n-grams (`embed_with` takes others): near for shared words, without meaning. It answers
the way Ollama does by the specification, not by observation; the contract test runs against both.
"""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from tests.ollama_double.embed import EmbedWith
from tests.ollama_double.models import Model, stock
from tests.ollama_double.server import Server
from tests.ollama_double.state import Recorded, State


class OllamaDouble:
    """The server, its record of requests and its switches. `prefix` is a base path, as behind a proxy."""

    def __init__(
        self,
        *,
        port: int = 0,
        prefix: str = "",
        embed_with: EmbedWith | None = None,
        dimensions: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`embed_with` makes (n, dimensions) rows from texts, for every embedding model; give `dimensions` with it."""
        models = stock()
        if dimensions is not None:
            for model in models.values():
                model.dimensions = dimensions if model.embeds else model.dimensions
        self.state = State(models, clock)
        self._server = Server(port, self.state, embed_with, prefix)
        self.port = int(self._server.server_address[1])
        self.url = f"http://127.0.0.1:{self.port}{prefix}"
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.01},
            name="ollama-double",
            daemon=True,
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if self._server.faulted and error is None:
            raise self._server.faulted[0]

    def close(self) -> None:
        self.state.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.drop_connections()
        self._server.server_close()

    def fault(self, *, times: int | None = None, path: str = "/api/embed", **switches: Any) -> None:
        """Turn switches on, for `times` requests of `path` (`*`: any), else until `clear`."""
        for name, value in switches.items():
            self.state.set(name, value, times, path)

    def clear(self) -> None:
        """Turn every switch off; waits of `cold` end."""
        self.state.clear()

    def finish_loads(self) -> None:
        """End the waits of `cold` now."""
        self.state.finish_loads()

    @property
    def models(self) -> dict[str, Model]:
        return self.state.models

    @property
    def requests(self) -> list[Recorded]:
        return list(self.state.requests)

    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    def embeds(self) -> list[list[str]]:
        """The inputs of each /api/embed request, as lists."""
        bodies = [r.body for r in self.requests if r.path.endswith("/api/embed") and r.body is not None]
        return [[b["input"]] if isinstance(b.get("input"), str) else b.get("input") or [] for b in bodies]

    def wait_until(self, happened: Callable[[], object], timeout: float = 5.0) -> None:
        """Wait for what the handler threads do. Raises TimeoutError."""
        with self.state.changed:
            if not self.state.changed.wait_for(happened, timeout):
                raise TimeoutError("it did not happen")


__all__ = ["Model", "OllamaDouble", "Recorded"]
