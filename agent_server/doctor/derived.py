"""What is derived from passages: edges between them, and claims with their evidence."""

from collections.abc import Mapping
from typing import Any

from agent_server.doctor.check import FIX, Check


def check_edges(name: str, row: Mapping[str, Any]) -> Check:
    """`row` is that of doctor_edges.sql."""
    if row["gone"] or row["misread"]:
        found = f"{row['gone']} lead from or to passages that are gone, {row['misread']} no longer fit their passage"
        return Check(f"{name} edges", "error", found, FIX)
    retired = f", {row['retired']} of them to retired passages" if row["retired"] else ""
    return Check(f"{name} edges", "ok", f"{row['edges']}{retired}")


def check_claims(name: str, row: Mapping[str, Any]) -> Check:
    """`row` is that of doctor_claims.sql."""
    if row["unfounded"]:
        found = f"the words of {row['unfounded']} do not stand in their passage, such as claim {row['example']}"
        return Check(f"{name} claims", "error", found, FIX)
    return Check(f"{name} claims", "ok", f"{row['claims']}, each with its words in a live passage")
