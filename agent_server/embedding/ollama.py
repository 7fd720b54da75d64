"""Vectors from an Ollama server: the Embedder that a platform with a GPU, or a neighbour with one, uses."""

import random as random_module
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as NotInTime
from functools import partial

from agent_server.embedding import Embedded, EmbedderIdentity, Vectors, is_blank
from agent_server.embedding.ollama_batch import (
    KEEP_ALIVE_S,
    PROBE,
    BatchEmbedder,
    BatchFault,
    ask_rows,
)
from agent_server.embedding.ollama_identity import ask_digest, ask_identity, refuse_cloud
from agent_server.embedding.ollama_wire import Budget, Wire
from agent_server.errors import (
    EmbedderUnavailable,
    EmbeddingRefused,
    InvalidArgument,
    KnowledgeBankError,
    PoisonText,
)

#: Identity comes from the disk of the server, never from a load: a server that is well answers within this.
IDENTITY_TIMEOUT_S = 5.0
#: A tag may come to point at other weights while this program runs; seconds between looks.
RECHECK_S = 60.0
#: An embedding model serves one text at a time; a second request in flight hides the round trip, a third only waits.
PASSAGE_REQUESTS = 2
QUERY_THREADS = 4


class OllamaEmbedder:
    """Embedder over `/api/embed` of the server at `url` (see parse_host). Safe to use from several threads.

    Nothing is asked before the first call. `sleep`, `random` and `clock` are there for tests.
    """

    def __init__(
        self,
        url: str,
        model: str,
        *,
        query_timeout_s: float = 1.0,
        passage_timeout_s: float = 300.0,
        batch_size: int = 32,
        tries: int = 4,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[], float] = random_module.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises EmbeddingRefused for a model that runs off this machine."""
        refuse_cloud(model)
        self.model = model
        self._query_timeout_s = query_timeout_s
        self._passage_timeout_s = passage_timeout_s
        self._batch_size = batch_size
        self._tries = tries
        self._clock = clock
        self._make_wire = partial(Wire, url, sleep=sleep, random=random, clock=clock)
        self._wire = self._make_wire()
        self._known: EmbedderIdentity | None = None
        self._checked_at = 0.0
        self._passages = threading.BoundedSemaphore(PASSAGE_REQUESTS)
        self._askers = ThreadPoolExecutor(QUERY_THREADS, thread_name_prefix="kb-query")
        self._asked: set[Future[Vectors]] = set()
        self._warming = threading.Lock()

    def identity(self) -> EmbedderIdentity:
        """The contract, asked once within IDENTITY_TIMEOUT_S and kept.

        Raises EmbedderUnavailable without an answer, EmbeddingRefused for an unknown or unfit model.
        """
        known = self._known
        return (
            known
            if known is not None
            else self._ask_identity(self._wire, self._identity_budget(), self._passage_budget())
        )

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        """Vectors (n, d) of passages, with failures and splits by position; blanks fail without being sent.

        `batch_size` texts go in one request, and passage_timeout_s holds for each.

        Raises EmbedderUnavailable when the server does not answer within the tries, EmbeddingRefused when it
        cannot embed with this model at all; then no text is to blame and nothing is lost by asking again.
        """
        with self._passages:
            contract = self._current(self._identity_budget(), self._passage_budget())
            sent = {place: text for place, text in enumerate(texts) if not is_blank(text)}
            job = BatchEmbedder(self._wire, contract, self._passage_budget(), contract.passage_prefix)
            done = job.run(sent, len(texts), self._batch_size)
        blank = {place: "blank" for place in range(len(texts)) if place not in sent}
        return Embedded(done.vectors, dict(sorted({**done.failures, **blank}.items())), frozenset(done.split))

    def embed_query(self, text: str) -> Vectors:
        """The unit vector (d,) of a question, within query_timeout_s of wall time, whatever the server does.

        Raises EmbedderUnavailable that says what was waited for; the model is then loaded in the background, since
        giving up aborts the load that this question began. Raises InvalidArgument for a blank, PoisonText
        for a question that the model cannot embed.
        """
        if is_blank(text):
            raise InvalidArgument("query", "is blank", hint="Ask something.")
        seconds = self._query_timeout_s
        ends = self._clock() + seconds
        budget = Budget(call_s=seconds, tries=2, ends=ends, first_pause_s=0.1)
        # In a thread: looking up a host name and reading dribbled headers obey no time-out of the client.
        job = self._askers.submit(self._query_vector, text, budget)
        self._asked.add(job)
        job.add_done_callback(self._asked.discard)
        try:
            return job.result(timeout=seconds)
        except (NotInTime, EmbedderUnavailable) as error:
            if isinstance(error, EmbedderUnavailable) and self._clock() < ends:
                raise
            job.cancel()
            late = EmbedderUnavailable(
                f"no vector of the question within {seconds:g} s; waited for {budget.stage}.",
                hint="The model may still be loading: try again, or raise KB_QUERY_TIMEOUT_S.",
                details={"url": self._wire.url, "waited_for": budget.stage, "seconds": seconds},
            )
        self._warm_up_aside()
        raise late

    def warm_up(self) -> None:
        """Load the model and wait for it, within passage_timeout_s for each try; an empty input does that.

        Raises as embed_passages does.
        """
        self._load(self._wire, self._passage_budget())

    def close(self) -> None:
        """Free the connections, once the questions that run have had their time."""
        wait(list(self._asked), timeout=self._query_timeout_s)
        self._wire.close()
        self._askers.shutdown(wait=True, cancel_futures=True)

    def _query_vector(self, text: str, budget: Budget) -> Vectors:
        contract = self._current(budget, budget)
        done = BatchEmbedder(self._wire, contract, budget, contract.query_prefix).run({0: text}, 1)
        if done.failures:
            raise PoisonText(
                f"{self.model!r} cannot embed this question: {done.failures[0]}.",
                hint="Put the question in other words.",
            )
        vector: Vectors = done.vectors[0]
        return vector

    def _current(self, budget: Budget, load_budget: Budget) -> EmbedderIdentity:
        """The contract, compared with the server's tag where the last look is RECHECK_S ago.

        `load_budget` is for the embedding that measures the width on old servers. Raises EmbeddingRefused once when
        the weights have changed; identity() tells the new ones from then on.
        """
        known = self._known
        if known is None:
            return self._ask_identity(self._wire, budget, load_budget)
        if self._clock() - self._checked_at < RECHECK_S:
            return known
        digest = ask_digest(self._wire, self.model, budget)
        if digest != known.digest:
            self._known = None
            raise EmbeddingRefused(
                f"the weights behind {self.model!r} changed from {known.digest[:12]} to {digest[:12]} while this "
                "program ran; their vectors do not mix.",
                hint="Pull the earlier weights again, or `kb reembed NAME` with these.",
                details={"model": self.model, "known": known.digest, "found": digest},
            )
        self._checked_at = self._clock()
        return known

    def _ask_identity(self, wire: Wire, budget: Budget, load_budget: Budget) -> EmbedderIdentity:
        known = ask_identity(wire, self.model, budget, lambda context: self._measure(wire, context, load_budget))
        self._known, self._checked_at = known, self._clock()
        return known

    def _measure(self, wire: Wire, context: int, budget: Budget) -> int:
        """The model's width, from a word's vector: for servers that do not tell it."""
        try:
            row = ask_rows(wire, self.model, context, budget, [PROBE])[0]
        except BatchFault as fault:
            raise EmbeddingRefused(
                f"{self.model!r} cannot embed: {fault.reason}.",
                hint="Set KB_EMBED_MODEL to an embedding model, such as nomic-embed-text.",
            ) from None
        if not row or not all(isinstance(x, int | float) for x in row):
            raise EmbeddingRefused(f"{self.model!r} answered a vector without values.", hint="Upgrade Ollama.")
        return len(row)

    def _load(self, wire: Wire, budget: Budget) -> None:
        contract = self._known or self._ask_identity(wire, self._identity_budget(), budget)
        answer = wire.ask(
            budget,
            "POST",
            "/api/embed",
            {
                "model": self.model,
                "input": [],
                "options": {"num_ctx": contract.context_tokens},
                "keep_alive": KEEP_ALIVE_S,
            },
        )
        if answer.status != 200:  # the first servers with this path refused an empty input
            BatchEmbedder(wire, contract, budget, "").run({0: PROBE}, 1)

    def _warm_up_aside(self) -> None:
        """Load the model in a thread of its own, unless one does so already."""
        if not self._warming.acquire(blocking=False):
            return

        def load() -> None:
            # Connections of its own: it may outlast `close`, which must not pull them away between two steps.
            wire = self._make_wire()
            try:
                self._load(wire, Budget(call_s=self._passage_timeout_s, tries=1))
            except KnowledgeBankError:
                pass  # the next question will say what is wrong
            finally:
                wire.close()
                self._warming.release()

        threading.Thread(target=load, name="kb-warm-up", daemon=True).start()

    def _identity_budget(self) -> Budget:
        return Budget(
            call_s=IDENTITY_TIMEOUT_S,
            tries=self._tries,
            ends=self._clock() + IDENTITY_TIMEOUT_S,
            first_pause_s=0.25,
        )

    def _passage_budget(self) -> Budget:
        return Budget(call_s=self._passage_timeout_s, tries=self._tries)
