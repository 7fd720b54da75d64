"""From nothing to cited passages: what `make demo` runs. Each step is a `kb` command that you can type yourself.

Fails when a question's right source is not among the first two passages.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
KB = str(Path(sys.executable).with_name("kb"))
BANK = ROOT / "knowledge-bank"

#: (what it shows, collection, question, the source that answers it)
QUESTIONS = [
    ("an exact code", "FINANCE", "What does NW-4021 mean?", "reference/decision-codes.md"),
    (
        "a section number",
        "FINANCE",
        "What does section 8.4 of the lending rulebook say?",
        "rules/lending-rulebook.md",
    ),
    (
        "a paraphrase",
        "FINANCE",
        "I was turned down. How long do I have to ask somebody to look at it again?",
        "rules/lending-rulebook.md",
    ),
    ("a definition", "FINANCE", "What is qualifying income?", "rules/lending-rulebook.md"),
    ("the same word elsewhere", "K12", "What is a grace period?", "policies/6161-student-devices.md"),
    ("a code in another spelling", "K12", "dvc 207", "reference/device-codes.md"),
]


def kb(*arguments: str, quiet: bool = False) -> str:
    """Run one command; its output is shown unless `quiet`, and returned when it is."""
    if not quiet:
        print(f"\n$ kb {' '.join(repr(a) if ' ' in a else a for a in arguments)}", flush=True)
    done = subprocess.run(
        [KB, *arguments], cwd=ROOT, check=False, text=True, stdout=subprocess.PIPE if quiet else None
    )
    if done.returncode != 0:
        sys.exit(f"kb {arguments[0]} ended with {done.returncode}")
    return done.stdout or ""


def main() -> None:
    started = time.monotonic()
    kb("init")
    known = {c["name"] for c in json.loads(kb("collection", "list", "--json", quiet=True))["collections"]}
    for folder in sorted(p for p in (BANK / "documents").iterdir() if p.is_dir()):
        if folder.name not in known:
            kb("collection", "create", folder.name)
        kb("ingest", folder.name, str(folder.relative_to(ROOT)))
    missed = []
    for what, collection, question, source in QUESTIONS:
        print(f"\n--- {what}", flush=True)
        kb("search", collection, question, "--top-k", "2")
        found = json.loads(kb("search", collection, question, "--top-k", "2", "--json", quiet=True))
        if source not in [p["source"] for p in found["passages"]]:
            missed.append(f"{question!r}: expected {source}")
    print(f"\nDone in {time.monotonic() - started:.0f} s. The server stays up for your own questions:")
    print("  .venv/bin/kb search FINANCE 'your question'   (kb --help, kb db stop)")
    if missed:
        sys.exit("not among the first two: " + "; ".join(missed))


if __name__ == "__main__":
    main()
