"""Measures the search and writes what the README says about it.

`make eval`: the sample bank's gold questions, from scratch in a home of its own, all arms.
`make eval-beir DATA=FOLDER`: the BEIR folders below it, in the home that the environment names (their vectors stay in
its cache). `--tables`: only the README's tables and the plots, from the committed files.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from agent_server.evaluation import report, tune_results
from agent_server.evaluation.arms import ARMS

ROOT = Path(__file__).parents[1]
BANK = ROOT / "knowledge-bank"
RESULTS = ROOT / "evaluation" / "results"
BEIR = RESULTS / "beir"
GOLD_SHOWN = ("ndcg@10", "recall@10", "hit@1")
BEIR_ARMS = ("rrf", "score", "bm25", "dense", "rrf-ts-and")
#: Of these only the words are measured: the local model reads English.
LEXICAL_ONLY = frozenset({"xquad-zh"})


def kb(*arguments: str, environ: Mapping[str, str] | None = None) -> None:
    """Run one command; the program ends with it when it fails."""
    print(f"$ kb {' '.join(arguments)}", flush=True)
    done = subprocess.run([str(Path(sys.executable).with_name("kb")), *arguments], cwd=ROOT, check=False, env=environ)
    if done.returncode != 0:
        sys.exit(f"kb {arguments[0]} ended with {done.returncode}")


def gold() -> None:
    """Every collection of the bank that has a gold file, in a home that is gone afterwards."""
    home = Path(tempfile.mkdtemp(prefix="kb-eval-"))
    home.chmod(0o755)  # the server's own folders below are closed; its user must get to them
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KB_", "OLLAMA_"))}
    environ = {**kept, "KB_HOME": str(home), "KB_EMBEDDER": "local", "KB_BANK": str(BANK)}
    try:
        kb("init", environ=environ)
        for path in sorted((BANK / "gold").glob("*.jsonl")):
            name = path.stem
            kb("collection", "create", name, environ=environ)
            kb("ingest", name, str((BANK / "documents" / name).relative_to(ROOT)), environ=environ)
            kb("eval", name, "--ablate", "--out", str(RESULTS / f"{name}.json"), environ=environ)
    finally:
        subprocess.run(
            [str(Path(sys.executable).with_name("kb")), "db", "stop"], check=False, env=environ, capture_output=True
        )
        shutil.rmtree(home, ignore_errors=True)


def beir(data: Path) -> None:
    """Every BEIR folder below `data`: a result file each, and one of the tuning where both arms are measured."""
    for folder in sorted(p for p in data.iterdir() if (p / "qrels").is_dir()):
        arms = "bm25" if folder.name in LEXICAL_ONLY else ",".join(BEIR_ARMS)
        out = str(BEIR / f"{folder.name}.json")
        kb("eval", "--beir", str(folder), "--arms", arms, "--scores-only", "--out", out)
        if folder.name not in LEXICAL_ONLY:
            tuned = str(BEIR / f"{report.TUNING}{folder.name}.json")
            kb("tune", "--beir", str(folder), "--dry-run", "--out", tuned)


def tables(readme: str) -> str:
    """The README's text with its tables made from the result files."""
    found = report.load(RESULTS)
    inside = f"{report.table(found, list(ARMS), GOLD_SHOWN)}\n\n{report.source_line(found)}"
    readme = report.between_markers(readme, "eval: gold", inside)
    outside = report.load(BEIR)
    english = {name: of for name, of in outside.items() if name not in LEXICAL_ONLY}
    inside = f"{report.table(english, BEIR_ARMS, ('ndcg@10',))}\n\n{report.source_line(english)}"
    for name in sorted(LEXICAL_ONLY & set(outside)):
        recall = outside[name]["bm25"]["metrics"]["recall@10"]
        inside += f" {name}, words alone: recall@10 {recall['mean']:.3f} ({recall['low']:.3f}–{recall['high']:.3f})."
    readme = report.between_markers(readme, "eval: beir", inside)
    tuned = tune_results.table(tune_results.load(BEIR, english), english)
    return report.between_markers(readme, "eval: tune", tuned)


def plots() -> dict[Path, str]:
    """The plots by path."""
    return {
        RESULTS / "gold.svg": report.plot(
            report.load(RESULTS), list(ARMS), "nDCG@10 on the sample bank, 95 % intervals"
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beir", type=Path, metavar="DATA", help="measure the BEIR folders below DATA")
    parser.add_argument("--tables", action="store_true", help="only tables and plots, from the files there are")
    asked = parser.parse_args()
    if asked.beir is not None:
        beir(asked.beir)
    elif not asked.tables:
        gold()
    readme = ROOT / "README.md"
    readme.write_text(tables(readme.read_text(encoding="utf-8")), encoding="utf-8")
    for path, text in plots().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
