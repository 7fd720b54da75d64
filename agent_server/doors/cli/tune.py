"""`kb tune`: choose how a collection fuses its lists, on its own labelled questions."""

import shlex
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_server.catalog import set_fusion
from agent_server.db import Database
from agent_server.doors.cli import context, output, progress
from agent_server.doors.cli.output import Json
from agent_server.retrieval.candidates import SearchOptions
from agent_server.settings import Settings

if TYPE_CHECKING:
    from agent_server.embedding import Embedder
    from agent_server.evaluation.dataset import Dataset


def register(app: typer.Typer) -> None:
    app.command("tune")(tune)


def tune(
    collection: Annotated[
        str | None, typer.Argument(metavar="[COLLECTION]", help="Which collection, asked its gold questions.")
    ] = None,
    gold: Annotated[
        Path | None, typer.Option(help="Gold file of the collection; unset: gold/COLLECTION.jsonl in KB_BANK.")
    ] = None,
    beir: Annotated[
        Path | None, typer.Option(help="Instead of a collection a BEIR folder, as `kb eval` takes it.")
    ] = None,
    split: Annotated[str, typer.Option(help="Which judgements of the BEIR folder: qrels/SPLIT.tsv.")] = "test",
    config: Annotated[str, typer.Option(help="Text search configuration of the BEIR folder's collection.")] = "english",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Measure and tell; leave the collection as it is.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the measurements to this file, with all it takes to repeat them.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Choose a collection's fusion and its weight by cross-validation on labelled questions.

    Rank fusion and score fusion with weights from .1 to .9 are compared with either arm alone. A hybrid that loses to
    its better arm on held-out questions is refused. What is chosen is stored with its figures: `kb collection show`.
    """
    # They load readers of all formats.
    from agent_server.evaluation import tune as tuning  # noqa: PLC0415
    from agent_server.evaluation import tune_results  # noqa: PLC0415
    from agent_server.evaluation.runs import TOP_K, Given  # noqa: PLC0415

    if (collection is None) == (beir is None):
        raise typer.BadParameter("name a collection or a --beir folder", param_hint="COLLECTION")
    if gold is not None and beir is not None:
        raise typer.BadParameter("--gold and --beir exclude each other", param_hint="--gold")
    with ExitStack() as stack:
        settings, database = stack.enter_context(context.opened())
        embedder = stack.enter_context(context.opened_embedder(settings))
        watch = stack.enter_context(progress.bar())
        given = Given(date.today().isoformat(), _command(collection, gold, beir, split, config), watch=watch)
        base = SearchOptions(
            top_k=TOP_K,
            expand=None if beir is None else (),  # a throw-away collection has no edges to follow
            statement_timeout_s=settings.statement_timeout_s,
            max_query_chars=settings.max_query_chars,
        )
        questions = _questions(database, settings, embedder, collection, gold, beir, split, config, watch)
        record = tuning.tune(database, embedder, questions, given, base)
        if out is not None:
            tune_results.write(out, record)
        chosen = record["chosen"]
        if not dry_run:
            evidence = tuning.evidence(record)
            set_fusion(database, questions.collection, chosen["fusion"], chosen["fusion_weight"], evidence)
    if as_json:
        output.emit({**record, "stored": not dry_run})
    else:
        output.write(render(record, stored=not dry_run))


def _questions(
    database: Database,
    settings: Settings,
    embedder: "Embedder",
    collection: str | None,
    gold: Path | None,
    beir: Path | None,
    split: str,
    config: str,
    watch: Any,
) -> "Dataset":
    from agent_server.evaluation import beir as folders  # noqa: PLC0415  as above
    from agent_server.evaluation import beir_load  # noqa: PLC0415
    from agent_server.evaluation.dataset import gold_dataset  # noqa: PLC0415

    if beir is None:
        found = context.collection_called(database, collection or "")
        return gold_dataset(database, found, gold or settings.bank / "gold" / f"{found.name}.jsonl")
    folder = folders.read_folder(beir, split)
    loaded = beir_load.load(
        database, folder, embedder, text_search_config=config, batch_size=settings.embed_batch_size, watch=watch
    )
    return folders.dataset(folder, loaded.collection.name, loaded.ids, loaded.about)


def _command(collection: str | None, gold: Path | None, beir: Path | None, split: str, config: str) -> str:
    """What to type to repeat the measurement; of paths only the last part, as they differ from machine to machine."""
    words = ["kb", "tune", *([collection] if collection else [])]
    words += ["--gold", gold.name] if gold is not None else []
    words += ["--beir", beir.resolve().name] if beir is not None else []
    words += ["--split", split] if split != "test" else []
    words += ["--config", config] if config != "english" else []
    return shlex.join(words)


def render(record: dict[str, Any], *, stored: bool) -> str:
    """A choice for people: every setting with its figure, what was chosen, and why."""
    of, metric = record["dataset"], record["metric"]
    title = output.style(record["collection"]["name"], "bold")
    head = f"{title}: {of['questions']} questions, {record['folds']} folds, {record['embedder']['model']}"
    cells = [
        [
            "tuned, out of fold" if name == "tuned" else name,
            f"{found['mean']:.3f} ({found['low']:.2f}-{found['high']:.2f})",
            "" if name == "tuned" else f"{found['p']:.3f}",
            record["picks"].get(name, ""),
        ]
        for name, found in record["figures"].items()
    ]
    lines = [head, output.table(cells, ("setting", metric, "p", "picked"))]
    if record["kinds"]:
        shown = ("tuned", "rrf", "dense", "lexical")
        kinds = [[k, v["questions"], *(f"{v[name]:.3f}" for name in shown)] for k, v in record["kinds"].items()]
        lines.append(output.table(kinds, ("by kind", "questions", *shown)))
    lines.append(record["reason"])
    chosen = record["chosen"]
    weight = "" if chosen["fusion_weight"] is None else f", fusion_weight {chosen['fusion_weight']:g}"
    done = "stored" if stored else "not stored (--dry-run)"
    lines.append(f"chosen: fusion {chosen['fusion']}{weight}; {done}")
    return "\n".join(lines)
