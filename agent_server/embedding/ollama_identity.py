"""Which model answers under a name: digest, width and abilities, asked before anything is loaded."""

from collections.abc import Callable
from typing import Any

from agent_server.embedding import EmbedderIdentity
from agent_server.embedding.ollama_texts import prefixes
from agent_server.embedding.ollama_wire import Answer, Budget, Wire
from agent_server.errors import EmbedderUnavailable, EmbeddingRefused

#: What Ollama itself assumes where a model does not say how much it reads.
DEFAULT_CONTEXT = 2048
#: Some models claim 128k and more, whose buffers would crowd out everything else; longer texts are split.
LARGEST_CONTEXT = 8192


def refuse_cloud(model: str) -> None:
    """Raise EmbeddingRefused for a name that Ollama forwards to ollama.com."""
    if model.lower().endswith((":cloud", "-cloud")):
        raise EmbeddingRefused(
            f"{model!r} runs off this machine; texts must not leave it.",
            hint="Set KB_EMBED_MODEL to a model that runs here, such as nomic-embed-text.",
        )


def unknown_model(wire: Wire, model: str) -> EmbeddingRefused:
    return EmbeddingRefused(
        f"Ollama at {wire.url} has no model {model!r}.",
        hint=f"Run `ollama pull {model}` there.",
        details={"url": wire.url, "model": model},
    )


def full_name(model: str) -> str:
    """The name with its tag, lower case, as names are compared."""
    name = model.strip().lower()
    return name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"


def ask_digest(wire: Wire, model: str, budget: Budget) -> str:
    """Digest (64 hex) of the weights the tag points at now. Raises EmbeddingRefused for an unknown name."""
    answer = _ok(wire, wire.ask(budget, "GET", "/api/tags"), "/api/tags", model)
    models = answer.get("models")
    for entry in models if isinstance(models, list) else []:
        if not isinstance(entry, dict):
            continue
        names = {full_name(str(entry.get(key) or "")) for key in ("name", "model")}
        if full_name(model) not in names:
            continue
        if entry.get("remote_host") or entry.get("remote_model"):
            refuse_cloud(f"{model}:cloud")
        return str(entry.get("digest") or "").removeprefix("sha256:")
    raise unknown_model(wire, model)


def ask_identity(wire: Wire, model: str, budget: Budget, measure: Callable[[int], int]) -> EmbedderIdentity:
    """The contract of `model`.

    `measure(context)` gives the width by embedding a word; it is called only for servers too old to tell it.
    Raises EmbeddingRefused for a model unknown or without the ability, EmbedderUnavailable without an answer.
    """
    digest = ask_digest(wire, model, budget)
    # Old servers read `name`, newer ones `model`; each ignores the other.
    show = _ok(wire, wire.ask(budget, "POST", "/api/show", {"model": model, "name": model}), "/api/show", model)
    abilities = show.get("capabilities")
    if isinstance(abilities, list) and abilities and "embedding" not in abilities:
        raise EmbeddingRefused(
            f"{model!r} is no embedding model; it offers {', '.join(map(str, abilities))}.",
            hint="Set KB_EMBED_MODEL to an embedding model, such as nomic-embed-text.",
            details={"model": model, "capabilities": abilities},
        )
    told = show.get("model_info")
    info = told if isinstance(told, dict) else {}
    family = info.get("general.architecture")
    context = min(_positive(info.get(f"{family}.context_length")) or DEFAULT_CONTEXT, LARGEST_CONTEXT)
    width = _positive(info.get(f"{family}.embedding_length"))
    query_prefix, passage_prefix = prefixes(model)
    return EmbedderIdentity(
        kind="ollama",
        model=full_name(model).removesuffix(":latest"),  # one model, one name, however it is written
        digest=digest,
        dimensions=width or measure(context),
        query_prefix=query_prefix,
        passage_prefix=passage_prefix,
        context_tokens=context,
    )


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _ok(wire: Wire, answer: Answer, path: str, model: str) -> dict[str, Any]:
    if answer.status == 404:
        raise unknown_model(wire, model)
    if answer.status >= 500:
        raise EmbedderUnavailable(
            f"Ollama at {wire.url} failed at {path}: {answer.status}, {answer.reason}.",
            hint="See Ollama's log.",
        )
    if answer.status != 200 or answer.data is None:
        raise EmbeddingRefused(
            f"Ollama at {wire.url} refuses {path} for {model!r}: {answer.status}, {answer.reason}.",
            hint="Check KB_EMBED_MODEL.",
        )
    return answer.data
