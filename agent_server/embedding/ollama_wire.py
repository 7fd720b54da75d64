"""One request to Ollama, its time bounds and its retries; what an answer means is not decided here."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from agent_server.embedding.ollama_host import is_loopback
from agent_server.errors import EmbedderUnavailable, EmbeddingRefused, SettingsError

#: The server, or a proxy before it, says "not now". 500 is not among them: it may be the text's fault.
PASSING_STATUSES = frozenset({408, 429, 502, 503, 504})
#: A host that is there answers a connection within this; reading may take minutes while a model loads.
CONNECT_TIMEOUT_S = 5.0
LONGEST_PAUSE_S = 30.0
_SHOWN_CHARS = 200


@dataclass(slots=True)
class Budget:
    """How long one piece of work may take.

    `call_s` bounds one request, `ends` (on the clock of the Wire) the whole work, pauses included.
    """

    call_s: float
    tries: int
    ends: float | None = None
    first_pause_s: float = 1.0
    #: What is being waited for now; read from another thread when time is up.
    stage: str = field(default="a free connection")


@dataclass(frozen=True, slots=True)
class Answer:
    """Status and body. `data` is the JSON object, or None when the body is something else."""

    status: int
    text: str
    data: dict[str, Any] | None

    @property
    def reason(self) -> str:
        """Why the server refused, from `error` as text, as an object, absent, or from a body that is no JSON."""
        error = self.data.get("error") if self.data is not None else None
        if isinstance(error, dict):
            error = error.get("message")
        if isinstance(error, str) and error.strip():
            return error.strip()[:_SHOWN_CHARS]
        if self.data is None and self.text.strip() and not self.text.lstrip().startswith("<"):
            return " ".join(self.text.split())[:_SHOWN_CHARS]
        return "no reason given"


class Wire:
    """Requests to one server. Safe to use from several threads. Raises SettingsError where proxy or certificates of
    the environment cannot be used."""

    def __init__(
        self,
        url: str,
        *,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url.rstrip("/")
        self.clock = clock
        self._sleep = sleep
        self._random = random
        # A proxy cannot reach this machine's loopback in our place, and answers with an error page of its own.
        try:
            self._client = httpx.Client(
                trust_env=not is_loopback(self.url), headers={"content-type": "application/json"}
            )
        except (ImportError, ValueError, OSError, httpx.InvalidURL) as error:
            # A SOCKS proxy, a certificate file that is not there, a proxy that is no URL: that one may hold a password.
            why = str(error) if isinstance(error, ImportError | OSError) else "a proxy's address is no URL"
            raise SettingsError(
                f"no connection to Ollama at {self.url} can be made with this environment: {why}.",
                hint="Check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE and SSL_CERT_DIR.",
            ) from None

    def close(self) -> None:
        self._client.close()

    def ask(self, budget: Budget, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        """The answer, once the server gives one that is not "try later".

        Connection trouble, time-outs, PASSING_STATUSES and cut answers are tried again with growing, jittered
        pauses. Raises EmbedderUnavailable when tries or time run out, EmbeddingRefused when what answers
        is no Ollama.
        """
        tried = 0
        while True:
            budget.stage = f"{method} {self.url}{path}"
            try:
                answer = self._once(budget, method, path, body)
                why = self._passing(answer)
                if why is None:
                    self._refuse_strangers(answer, path)
                    return answer
            except httpx.TimeoutException as error:
                why = "no connection in time" if isinstance(error, httpx.ConnectTimeout) else "no answer in time"
            except httpx.TransportError as error:
                why = str(error) or type(error).__name__
            except httpx.DecodingError as error:
                why = f"unreadable answer ({error})"
            tried += 1
            pause = min(LONGEST_PAUSE_S, budget.first_pause_s * 2 ** (tried - 1)) * (0.5 + self._random() / 2)
            if tried >= budget.tries or self._left(budget, pause) <= 0:
                raise EmbedderUnavailable(
                    f"Ollama at {self.url} did not answer {path} after {tried} "
                    f"{'try' if tried == 1 else 'tries'}: {why}.",
                    hint="Check that `ollama serve` runs there; while a model loads or the queue is full, wait.",
                    details={"url": self.url, "path": path, "tries": tried, "reason": why},
                )
            budget.stage = f"another try of {path} after: {why}"
            self._sleep(pause)

    def _left(self, budget: Budget, spent: float = 0.0) -> float:
        """Seconds that remain to the work after `spent` more."""
        return float("inf") if budget.ends is None else budget.ends - self.clock() - spent

    def _once(self, budget: Budget, method: str, path: str, body: dict[str, Any] | None) -> Answer:
        seconds = min(budget.call_s, self._left(budget))
        if seconds <= 0:
            raise httpx.ReadTimeout("the time for this work is over")
        ends = self.clock() + seconds
        # Encoded here: json.dumps writes lone surrogates as escapes, which the server reads as U+FFFD; httpx's own
        # encoding raises on them.
        content = None if body is None else json.dumps(body).encode("ascii")
        request = self._client.build_request(
            method,
            self.url + path,
            content=content,
            timeout=httpx.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT_S)),
        )
        response = self._client.send(request, stream=True)
        try:
            parts = []
            for part in response.iter_bytes():
                parts.append(part)
                # The read time-out counts from the last byte; a server that dribbles would never meet it.
                if self.clock() > ends:
                    raise httpx.ReadTimeout("the answer did not end in time")
        finally:
            response.close()
        raw = b"".join(parts)
        try:
            data = json.loads(raw)
        except (ValueError, RecursionError):
            data = None
        text = "" if isinstance(data, dict) else raw.decode("utf-8", "replace")
        return Answer(response.status_code, text, data if isinstance(data, dict) else None)

    @staticmethod
    def _passing(answer: Answer) -> str | None:
        if answer.status in PASSING_STATUSES:
            return f"{answer.status} {answer.reason}"
        if answer.status == 200 and answer.data is None and not answer.text.lstrip().startswith("<"):
            return "the answer was cut short"
        return None

    def _refuse_strangers(self, answer: Answer, path: str) -> None:
        """Raise EmbeddingRefused for what only something other than a fitting Ollama answers."""
        hint = "Check KB_OLLAMA_URL / OLLAMA_HOST."
        if answer.status == 404 and answer.data is None:
            raise EmbeddingRefused(
                f"{self.url} has no {path}: Ollama is too old there, or the address has the wrong base path.",
                hint=f"Upgrade Ollama to 0.3 or later. {hint}",
                details={"url": self.url, "path": path},
            )
        stranger = answer.status in (401, 403, 405) or 300 <= answer.status < 400
        if stranger or (answer.status == 200 and answer.data is None):
            raise EmbeddingRefused(
                f"what answers at {self.url} is no Ollama that serves this program: {path} gave status "
                f"{answer.status}, {answer.reason}.",
                hint=f"{hint} Ollama bound to loopback refuses foreign host names with an empty 403.",
                details={"url": self.url, "path": path, "status": answer.status},
            )
