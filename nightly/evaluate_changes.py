"""What may explain that a search is worth less than on an earlier night: files, model, settings, code, figures."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from agent_server.catalog import Collection
from agent_server.db import Database
from agent_server.evaluation.fingerprint import code_sha256, files_sha256
from nightly.evaluate_verdict import Finding
from nightly.statements import fetch_all

#: Settings of a collection that its searches depend on, beside those that a run records.
_SET = ("text_search_config", "chunk_size", "chunk_overlap", "avg_length", "has_hnsw", "ef_search")
NAMED = 5  #: files of each sort that are named


def surroundings(database: Database, collection: Collection, measured: Mapping[str, Any]) -> dict[str, Any]:
    """All that a figure of this night depends on; JSON, with one short hash a file."""
    with database.owner(collection.schema_name) as connection:
        each = {row["source"]: row["version"] for row in fetch_all(connection, "evaluation_files")}
        edges = fetch_all(connection, "graph_totals")[0]
    return {
        "files": {"count": len(each), "sha256": short_hash(*(f"{k}\0{v}" for k, v in each.items())), "each": each},
        "gold": measured["dataset"]["sha256"],
        "model": {k: measured["embedder"][k] for k in ("model", "digest", "query_prefix", "passage_prefix")},
        "settings": {**measured["settings"], **{name: getattr(collection, name) for name in _SET}},
        "edges": {name: edges[name] for name in ("cites", "defines", "terms")},
        "passages": {name: measured["collection"][name] for name in ("passages", "searched", "without_vector")},
        "code": {"agent_server": code_sha256(), "nightly": _nightly_sha256()},
        "software": {k: v for k, v in measured["software"].items() if k != "code_sha256"},
    }


def since(at: datetime, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Finding]:
    """What differs between two nights' surroundings, the earlier being of `at`; says so when nothing does. Pure."""
    found = _files(before.get("files", {}), now["files"])
    if before.get("gold") != now["gold"]:
        found.append(Finding("changed", "gold questions", text="the file is another"))
    for name in ("model", "settings", "edges", "passages", "software"):
        was, is_ = before.get(name, {}), now[name]
        found += [
            Finding("changed", f"{name} {key}", text=f"{_shown(was.get(key))} -> {_shown(value)}")
            for key, value in is_.items()
            if was.get(key) != value
        ]
    changed_code = [name for name, sha in now["code"].items() if before.get("code", {}).get(name) != sha]
    if changed_code:
        found.append(Finding("changed", "code", text=f"of {' and '.join(changed_code)}"))
    if not found:
        found = [Finding("changed", "nothing", text=f"all that is recorded is as it was on {at:%Y-%m-%d %H:%M}")]
    return found


def short_hash(*texts: str) -> str:
    """A short hash of some texts in order."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0\0")
    return digest.hexdigest()[:16]


def _files(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Finding]:
    if before.get("sha256") == now["sha256"] or "each" not in before:
        return []
    was, is_ = before["each"], now["each"]
    sorts = {
        "added": [s for s in is_ if s not in was],
        "changed": [s for s in is_ if s in was and was[s] != is_[s]],
        "gone": [s for s in was if s not in is_],
    }
    return [Finding("changed", f"files {sort}", text=_some(names)) for sort, names in sorts.items() if names]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{len(names)} ({', '.join(names[:NAMED])}{more})"


def _shown(value: Any) -> str:
    text = "nothing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


@cache
def _nightly_sha256() -> str:
    """Of the code that makes edges and claims."""
    here = Path(__file__).parent
    return files_sha256(sorted(p for p in here.rglob("*") if p.suffix in {".py", ".sql"}))
