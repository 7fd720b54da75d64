"""From nothing to cited passages: what `make demo` runs. Each step is a `kb` command that you can type yourself.

Fails when the passage that answers a question is not first or second.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
KB = str(Path(sys.executable).with_name("kb"))
BANK = ROOT / "knowledge-bank"

#: (what it shows, collection, question, words of the passage that answers it)
QUESTIONS = [
    ("an exact code", "FINANCE", "What does NW-4021 mean?", "Qualifying income too low for the amount or the product"),
    (
        "a section number",
        "FINANCE",
        "What does section 8.4 of the lending rulebook say?",
        "HVCU may use set-off only after the cure period has ended",
    ),
    (
        "a paraphrase",
        "FINANCE",
        "I was turned down. How long do I have to ask somebody to look at it again?",
        "That day is 45 days after the date on the letter.",
    ),
    ("a definition", "FINANCE", "What is a grace period?", "**Grace period** means the days after the due date"),
    ("the same word elsewhere", "K12", "What is a grace period?", "the first five minutes after the first bell"),
    ("a code in another spelling", "K12", "dvc 207", "DVC-207 is about charging that stops early"),
]


def kb(*arguments: str, quiet: bool = False) -> str:
    """Run one command; its output is shown unless `quiet`, and returned when it is."""
    if not quiet:
        print(f"\n$ kb {' '.join(repr(a) if ' ' in a else a for a in arguments)}", flush=True)
    done = subprocess.run([KB, *arguments], cwd=ROOT, check=False, text=True, stdout=subprocess.PIPE if quiet else None)
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
    for what, collection, question, quote in QUESTIONS:
        print(f"\n--- {what}", flush=True)
        kb("search", collection, question, "--top-k", "2")
        found = json.loads(kb("search", collection, question, "--top-k", "2", "--json", quiet=True))
        if not any(quote in " ".join(p["text"].split()) for p in found["passages"]):
            missed.append(f"{question!r}: expected {quote!r}")
    print(f"\nDone in {time.monotonic() - started:.0f} s. The server stays up for your own questions:")
    print("  .venv/bin/kb search FINANCE 'your question'   (kb --help, kb db stop)")
    if missed:
        sys.exit("not among the first two: " + "; ".join(missed))


if __name__ == "__main__":
    main()
