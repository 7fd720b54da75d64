"""The models that the double has pulled."""

import hashlib
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Model:
    """One tag and its weights."""

    name: str
    family: str
    dimensions: int
    context: int
    capabilities: tuple[str, ...]
    generation: int = 0  #: digest_change raises it: same tag, other weights
    special_tokens: int = 2  #: BOS and EOS, which the limit of an input loses
    size: int = 274_302_450

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{self.name}/{self.generation}".encode()).hexdigest()

    @property
    def embeds(self) -> bool:
        return "embedding" in self.capabilities

    def details(self) -> dict[str, Any]:
        return {
            "parent_model": "",
            "format": "gguf",
            "family": self.family,
            "families": [self.family],
            "parameter_size": "137M",
            "quantization_level": "F16",
        }

    def tag(self, *, capabilities: bool) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "name": self.name,
            "model": self.name,
            "modified_at": "2026-08-01T09:30:00.123456789+02:00",
            "size": self.size,
            "digest": self.digest,
            "details": self.details(),
        }
        if capabilities:
            entry["capabilities"] = list(self.capabilities)
        return entry

    def show(self, *, capabilities: bool, info: bool) -> dict[str, Any]:
        answer: dict[str, Any] = {
            "modelfile": f"FROM {self.name}\n",
            "parameters": "num_ctx                        8192",
            "template": "{{ .Prompt }}",
            "details": self.details(),
            "modified_at": "2026-08-01T09:30:00.123456789+02:00",
        }
        if info:
            answer["model_info"] = {
                "general.architecture": self.family,
                f"{self.family}.embedding_length": self.dimensions,
                f"{self.family}.context_length": self.context,
                "tokenizer.ggml.tokens": None,
            }
            if self.embeds:
                answer["model_info"][f"{self.family}.pooling_type"] = 1
        if capabilities:
            answer["capabilities"] = list(self.capabilities)
        return answer


def stock() -> dict[str, Model]:
    """Fresh models by full name."""
    models = (
        Model("nomic-embed-text:latest", "nomic-bert", 768, 2048, ("embedding",)),
        Model("mxbai-embed-large:latest", "bert", 1024, 512, ("embedding",)),
        Model("llama3.2:latest", "llama", 3072, 131_072, ("completion", "tools"), special_tokens=1),
        Model("gemma2:latest", "gemma2", 2304, 8192, ("completion",), special_tokens=1),
        Model("qwen3:latest", "qwen3", 4096, 40_960, ("completion", "tools", "thinking"), special_tokens=0),
    )
    return {model.name: model for model in models}


def full_name(name: str) -> str:
    name = name.lower()
    return name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"
