"""Settings from the environment (`KB_*`) and a `.env` file; unknown keys are refused by name."""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dotenv import dotenv_values
from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from agent_server.errors import SettingsError

PREFIX = "KB_"
#: `KB_TEST_*` belong to the test suite and are not settings of the program.
FOREIGN_PREFIXES = ("KB_TEST_",)


def default_home() -> Path:
    """Where data lives when KB_HOME is unset.

    Root keeps it under /var/lib: the embedded server then runs as another user, who must be able to reach its
    data without anybody's home being opened to him.
    """
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        return Path("/var/lib/knowledge-bank")
    data_home = os.environ.get("XDG_DATA_HOME")
    return (Path(data_home) if data_home else Path.home() / ".local" / "share") / "knowledge-bank"


def default_bank() -> Path:
    """The bank's folder when KB_BANK is unset: `knowledge-bank` below the current folder."""
    return Path("knowledge-bank")


class Settings(BaseSettings):
    """Everything that can be set; each field is one environment variable `KB_<NAME>`."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True, env_ignore_empty=True)

    database_url: SecretStr | None = Field(
        None, description="Postgres to use (a DSN). Unset: an embedded server under KB_HOME."
    )
    home: Path = Field(
        default_factory=default_home, description="Folder for the embedded server, its secret and the caches."
    )
    bank: Path = Field(default_factory=default_bank, description="The bank: documents/, gold/, source_authority.json.")
    reader_secret: SecretStr | None = Field(
        None,
        description="Secret from which the reader roles' passwords are made. Unset: a random one, kept under "
        "KB_HOME. Hosts that share a database must share it.",
    )
    embedder: Literal["ollama", "local"] | None = Field(
        None, description="Unset: ollama when OLLAMA_HOST or KB_OLLAMA_URL is set, else local."
    )
    embed_model: str = Field("nomic-embed-text", description="Embedding model asked of Ollama.")
    ollama_url: str | None = Field(None, description="Where Ollama answers. Unset: OLLAMA_HOST, else its default.")
    local_model_dir: Path | None = Field(
        None, description="Folder with model.onnx and tokenizer.json to use instead of the packaged model."
    )
    embed_batch_size: int = Field(32, ge=1, le=512, description="Texts in one embedding request.")
    embed_timeout_s: float = Field(
        300.0, gt=0, description="Longest wait for a batch of passages, model loading included."
    )
    query_timeout_s: float = Field(
        1.0, gt=0, description="Longest wait for a question's vector; then the lexical arm answers alone."
    )
    statement_timeout_s: float = Field(10.0, gt=0, description="Longest a search statement may run in Postgres.")
    rerank_url: str | None = Field(
        None,
        description="A reranker: /v1/rerank below this address orders the best 30 passages anew. Unset: none is asked.",
    )
    rerank_model: str = Field("", description="Model asked of the reranker; servers of one model need none.")
    rerank_timeout_s: float = Field(
        2.0, gt=0, le=60, description="Longest wait for the reranker; then passages stay as they were fused."
    )
    max_file_bytes: int = Field(256 * 1024 * 1024, ge=1024, description="Files larger than this are too_large.")
    extract_timeout_s: float = Field(120.0, gt=0, description="Longest a file, or a window of a large text, may take.")
    ingest_workers: int = Field(2, ge=1, le=16, description="Files read and stored at once; one embeds at a time.")
    max_query_chars: int = Field(4000, ge=100, le=100_000, description="Longest question accepted.")
    trace_retention_days: int = Field(
        90, ge=0, le=36_500, description="How long searches and tool calls stay recorded; 0: for ever."
    )
    recall_target: float = Field(
        0.95, ge=0.5, le=1, description="Recall@10 of the dense index below which the recall audit raises ef_search."
    )
    nightly_at: str = Field("02:30", description="Hour of the nightly run, HH:MM in KB_TIMEZONE.")
    timezone: str = Field("UTC", description="Zone of KB_NIGHTLY_AT, by its name in the time zone database.")
    nightly_grace_h: float = Field(
        24.0, ge=0, le=8760, description="How late a nightly run that was missed is made up for, in hours."
    )
    nightly_webhook: SecretStr | None = Field(
        None, description="Address that the report of a nightly run that failed or died is sent to, as POST with JSON."
    )
    nightly_command: str = Field(
        "", description="Command that is run when a nightly run failed or died, with the report as JSON on its input."
    )
    llm: Literal["extractive", "ollama"] = Field(
        "extractive", description="What reads and answers beyond rules. extractive: no language model is ever asked."
    )
    llm_model: str = Field("", description="The language model asked when KB_LLM is not extractive.")

    @field_validator("database_url")
    @classmethod
    def _is_postgres(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().startswith(("postgresql://", "postgres://")):
            raise ValueError("must be a DSN that starts with postgresql://")
        return value

    @field_validator("rerank_url")
    @classmethod
    def _is_reranker(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("must be an address that starts with http:// or https://")
        return None if value is None else value.rstrip("/")

    @field_validator("nightly_at")
    @classmethod
    def _is_hour(cls, value: str) -> str:
        if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", value):
            raise ValueError("must be an hour from 00:00 to 23:59, as 02:30")
        return value

    @field_validator("timezone")
    @classmethod
    def _is_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, OSError, ValueError) as error:  # OSError: the name of a folder of zones
            raise ValueError("names no zone of the time zone database, as Europe/Berlin") from error
        return value

    @field_validator("nightly_webhook")
    @classmethod
    def _is_address(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and not value.get_secret_value().startswith(("http://", "https://")):
            raise ValueError("must be an address that starts with http:// or https://")
        return value

    @field_validator("nightly_command")
    @classmethod
    def _is_command(cls, value: str) -> str:
        shlex.split(value)  # raises ValueError for a quotation that is not closed
        return value.strip()

    @field_validator("embed_model", "llm_model")
    @classmethod
    def _stays_here(cls, value: str) -> str:
        if value.endswith((":cloud", "-cloud")):
            raise ValueError("names a model that runs off this machine; texts must not leave it")
        return value

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Values come from `load_settings` alone, so that tests can hand in any environment."""
        del settings_cls, env_settings, dotenv_settings, file_secret_settings
        return (init_settings,)

    @property
    def embedder_kind(self) -> Literal["ollama", "local"]:
        """`KB_EMBEDDER`, or what the rest of the environment says."""
        if self.embedder is not None:
            return self.embedder
        return "ollama" if self.ollama_url is not None else "local"

    def shown(self) -> dict[str, str]:
        """Every setting as text for `kb doctor`; secrets are hidden by their type."""
        return {f"{PREFIX}{name.upper()}": str(getattr(self, name)) for name in type(self).model_fields}


def load_settings(environ: Mapping[str, str] | None = None, dotenv: Path | None = None) -> Settings:
    """Settings from `environ` (default: the process's) over `dotenv` (default: `.env` in the current folder).

    `OLLAMA_HOST` fills `ollama_url` where KB_OLLAMA_URL does not. Raises SettingsError that names each
    unknown key and each value that cannot be used.
    """
    env = os.environ if environ is None else environ
    file = Path(".env") if dotenv is None else dotenv
    from_file = {k: v or "" for k, v in dotenv_values(file).items()} if file.is_file() else {}
    merged = {**from_file, **env}
    ours = {
        key[len(PREFIX) :].lower(): value
        for key, value in merged.items()
        if key.startswith(PREFIX) and not key.startswith(FOREIGN_PREFIXES) and value != ""
    }
    if "ollama_url" not in ours and merged.get("OLLAMA_HOST", "").strip():
        ours["ollama_url"] = merged["OLLAMA_HOST"]
    values: dict[str, Any] = dict(ours)
    try:
        return Settings(**values)
    except ValidationError as error:
        faults = [f"{PREFIX}{'.'.join(map(str, e['loc'])).upper()}: {_reason(e)}" for e in error.errors()]
        known = ", ".join(f"{PREFIX}{n.upper()}" for n in sorted(Settings.model_fields))
        raise SettingsError(
            "settings cannot be used: " + "; ".join(faults),
            hint=f"Known settings: {known}.",
            details={"faults": faults},
        ) from None


def _reason(fault: Mapping[str, Any]) -> str:
    if fault["type"] == "extra_forbidden":
        return "no such setting"
    return str(fault["msg"])
