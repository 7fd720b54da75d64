"""The embedder of a night, with its model loaded."""

from collections.abc import Iterator
from contextlib import contextmanager

from agent_server.embedding import Embedder
from nightly.jobs import NightContext


@contextmanager
def ready(context: NightContext) -> Iterator[Embedder]:
    """The context's embedder after it has embedded a passage, for which it may take its time: at night nobody has asked
    it for hours, and a question's vector is not waited for while a model loads.

    Raises what the embedder raises.
    """
    embedder = context.embedder()
    try:
        embedder.embed_passages(["ready"])
        yield embedder
    finally:
        embedder.close()
