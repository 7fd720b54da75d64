"""Authority tiers from `source_authority.json`: path rules, written by the operator, never by a document.

    {"tiers": {"primary": 1.0, "guide": 0.4},
     "rules": [{"collection": "FINANCE", "source": "rules/**", "tier": "primary"}]}

The first rule that matches a source decides; a source without a rule has authority 0.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent_server import globs
from agent_server.errors import SettingsError

FILE_NAME = "source_authority.json"


class _Rule(BaseModel):
    model_config = ConfigDict(extra="forbid")
    collection: str = "*"
    source: str
    tier: str


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tiers: dict[str, float] = Field(default_factory=dict)
    rules: list[_Rule] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class AuthorityRules:
    """(collection pattern, source pattern, authority) in the order in which they are tried."""

    rules: tuple[tuple[str, str, float], ...] = ()

    def authority(self, collection: str, source: str) -> float:
        """Authority in [0, 1] of a source."""
        for in_collection, pattern, value in self.rules:
            fits = in_collection == "*" or in_collection.lower() == collection.lower()
            if fits and _glob(pattern).fullmatch(source):
                return value
        return 0.0


def load_rules(root: Path, bank: Path) -> AuthorityRules | None:
    """Rules for the files of `root`: from the nearest source_authority.json in it or above it, else from `bank`.

    None when there is no such file anywhere: then nothing is known, and authority that was given before stays.
    Raises SettingsError that names the file and what is wrong with it.
    """
    for folder in (root, *root.parents, bank):
        path = folder / FILE_NAME
        if path.is_file():
            return _read(path)
    return None


def _read(path: Path) -> AuthorityRules:
    try:
        content = _File.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (json.JSONDecodeError, ValidationError) as error:
        raise SettingsError(f"{path} cannot be used: {error}", hint="See knowledge-bank/README.md.") from None
    for name, value in content.tiers.items():
        if not 0 <= value <= 1:
            raise SettingsError(f"{path}: tier {name!r} is {value}; expected 0 to 1")
    for rule in content.rules:
        if rule.tier not in content.tiers:
            known = ", ".join(content.tiers) or "none"
            raise SettingsError(f"{path}: rule for {rule.source!r} names tier {rule.tier!r}; defined: {known}")
    return AuthorityRules(tuple((r.collection, r.source, content.tiers[r.tier]) for r in content.rules))


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(globs.expression(pattern), re.DOTALL)
