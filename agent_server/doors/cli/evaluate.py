"""`kb eval`: how good the search is, on gold questions and on BEIR folders."""

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_server.catalog import Collection, list_collections
from agent_server.db import Database
from agent_server.doors.cli import context, output, progress
from agent_server.doors.cli.output import Json
from agent_server.errors import BadQuestions
from agent_server.retrieval.candidates import SearchOptions, reranker_of
from agent_server.retrieval.search import MAX_TOP_K
from agent_server.settings import Settings

if TYPE_CHECKING:
    from agent_server.evaluation.compare import Comparison

SHOWN = ("ndcg@10", "recall@10", "hit@1", "mrr", "map")
LISTED = 15  #: questions that fell, for people


def register(app: typer.Typer) -> None:
    app.command("eval")(evaluate)


def evaluate(
    collections: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COLLECTION]...", help="Which gold files to ask; without any all that there are."),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(help="Gold file of the one collection named; unset: gold/COLLECTION.jsonl in KB_BANK."),
    ] = None,
    beir: Annotated[
        list[Path] | None,
        typer.Option(
            help="A BEIR folder; its documents go once into a throw-away collection beir-NAME, which `kb collection "
            "drop` removes. Again for more folders."
        ),
    ] = None,
    split: Annotated[str, typer.Option(help="Which judgements of the BEIR folders: qrels/SPLIT.tsv.")] = "test",
    config: Annotated[
        str, typer.Option(help="Text search configuration of the BEIR folders' collections.")
    ] = "english",
    arms: Annotated[
        str, typer.Option(metavar="NAME,...", help="What to measure side by side; an unknown name lists all.")
    ] = "hybrid",
    ablate: Annotated[
        bool, typer.Option("--ablate", help="All arms; on gold files also collections made differently, then dropped.")
    ] = False,
    top_k: Annotated[int, typer.Option(min=10, max=MAX_TOP_K, help="How many passages a question gets.")] = 10,
    limit: Annotated[int, typer.Option(min=0, help="Only so many questions of each set, the first ones; 0: all.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Write the results to this file, with all it takes to repeat them.")
    ] = None,
    scores_only: Annotated[
        bool, typer.Option("--scores-only", help="Leave the rankings out of that file: a third of the size.")
    ] = False,
    compare: Annotated[
        Path | None, typer.Option(help="An earlier result file: differences, paired test, what fell.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure the search on gold questions or on BEIR folders.

    Questions go through the search that the tools call. A run that did not measure what was asked for ends with an
    error and writes nothing.
    """
    # They load readers of all formats.
    from agent_server.evaluation import ablate as on_gold  # noqa: PLC0415
    from agent_server.evaluation import arms as known  # noqa: PLC0415
    from agent_server.evaluation import beir_load as on_beir  # noqa: PLC0415
    from agent_server.evaluation import compare as comparing  # noqa: PLC0415
    from agent_server.evaluation import results, runs  # noqa: PLC0415
    from agent_server.ingest.steps import IngestOptions  # noqa: PLC0415

    names, folders = list(collections or ()), list(beir or ())
    if ablate and arms != "hybrid":
        raise typer.BadParameter("--ablate measures all arms; leave --arms out", param_hint="--ablate")
    if gold is not None and (len(names) != 1 or folders):
        raise typer.BadParameter("--gold needs exactly one collection to ask", param_hint="--gold")
    earlier = results.read(compare) if compare is not None else []
    done: list[dict[str, Any]] = []
    with ExitStack() as stack:
        settings, database = stack.enter_context(context.opened())
        every = [arm for arm in known.ARMS if arm != known.RERANKED or settings.rerank_url is not None]
        chosen = known.chosen(every if ablate else arms.split(","))
        golds = _gold_files(database, settings, names, gold) if names or not folders else []
        embedder = stack.enter_context(context.opened_embedder(settings))
        watch = stack.enter_context(progress.bar())
        command = _command(names, gold, folders, split, config, arms, ablate, top_k, limit)
        given = runs.Given(date.today().isoformat(), command, watch=watch)
        base = SearchOptions(
            top_k=top_k,
            statement_timeout_s=settings.statement_timeout_s,
            max_query_chars=settings.max_query_chars,
            reranker=reranker_of(settings),
        )
        options = IngestOptions(bank=settings.bank, batch_size=settings.embed_batch_size)
        for found, path in golds:
            done += on_gold.measure(database, found, path, embedder, chosen, given, base, options, limit=limit)
        for folder in folders:
            here = [a for a in chosen if not (ablate and a.variant)]
            done += on_beir.measure(
                database, folder, embedder, here, given, base,
                split=split, text_search_config=config, batch_size=settings.embed_batch_size, limit=limit,
            )  # fmt: skip
    pairs = comparing.matching(earlier, done) if compare is not None else []
    differences = [comparing.compare(before, after, seed=runs.SEED) for before, after in pairs]
    if out is not None:
        results.write(out, [results.without_rankings(r) for r in done] if scores_only else done)
    if as_json:
        output.emit({"runs": done, "comparisons": [d.to_json() for d in differences]})
        return
    output.write("\n\n".join([render(done), *map(render_comparison, differences)]))


def _gold_files(
    database: Database, settings: Settings, names: Sequence[str], gold: Path | None
) -> list[tuple[Collection, Path]]:
    """The collections to ask, each with its gold file. Raises BadQuestions when there is none."""
    if gold is not None:
        return [(context.collection_called(database, names[0]), gold)]
    if names:
        found = [context.collection_called(database, name) for name in names]
        return [(c, settings.bank / "gold" / f"{c.name}.jsonl") for c in found]
    with database.owner() as connection:
        pairs = [(c, settings.bank / "gold" / f"{c.name}.jsonl") for c in list_collections(connection)]
    if there := [(c, path) for c, path in pairs if path.is_file()]:
        return there
    raise BadQuestions(
        f"no collection has a gold file in {settings.bank / 'gold'}",
        hint="Write one (knowledge-bank/README.md says how), name one with --gold, or measure a --beir folder.",
    )


def _command(
    names: Sequence[str],
    gold: Path | None,
    folders: Sequence[Path],
    split: str,
    config: str,
    arms: str,
    ablate: bool,
    top_k: int,
    limit: int,
) -> str:
    """What to type to repeat the run; of paths only the last part, as they differ from machine to machine."""
    words = ["kb", "eval", *names]
    words += ["--gold", gold.name] if gold is not None else []
    for folder in folders:
        words += ["--beir", folder.resolve().name]
    words += ["--split", split] if split != "test" else []
    words += ["--config", config] if config != "english" else []
    words += ["--ablate"] if ablate else ["--arms", arms]
    words += ["--top-k", str(top_k)] if top_k != 10 else []
    words += ["--limit", str(limit)] if limit else []
    return shlex.join(words)


def render(done: Sequence[dict[str, Any]]) -> str:
    """Runs for people: a table for each dataset, then each kind of question under the first arm."""
    parts = []
    for name in dict.fromkeys(r["dataset"]["name"] for r in done):
        of = [r for r in done if r["dataset"]["name"] == name]
        first = of[0]
        judged = sum(SHOWN[0] in row for row in first["questions"])
        parts.append(f"{output.style(name, 'bold')}: {judged} questions, {first['embedder']['model']}")
        cells = [[r["arm"], *(_interval(r["metrics"][m]) for m in SHOWN), r["ms"]["total"]["p50"]] for r in of]
        parts.append(output.table(cells, ("arm", *SHOWN, "ms")))
        if first["kinds"]:
            kinds = [[k, v["questions"], *(_interval(v[m]) for m in SHOWN)] for k, v in first["kinds"].items()]
            parts.append(output.table(kinds, (f"{first['arm']}, by kind", "questions", *SHOWN)))
        if first["not_accepted"]:
            parts.append(f"{len(first['not_accepted'])} questions were not accepted and count as zero")
    return "\n".join(parts)


def render_comparison(found: "Comparison") -> str:
    """A comparison for people."""
    lines = [f"{output.style(found.dataset, 'bold')}: {found.after} against {found.before}, {found.shared} questions"]
    if found.only_before or found.only_after:
        lines.append(f"left out: {found.only_before} questions of the earlier run, {found.only_after} of this one")
    cells = [[d.metric, f"{d.before:.3f}", f"{d.after:.3f}", f"{d.change:+.3f}", f"{d.p:.3f}"] for d in found.metrics]
    lines.append(output.table(cells, ("metric", "before", "after", "change", "p")))
    if found.kinds:
        cells = [[k, f"{d.before:.3f}", f"{d.after:.3f}", f"{d.change:+.3f}"] for k, d in found.kinds.items()]
        lines.append(output.table(cells, (f"{found.metrics[0].metric} by kind", "before", "after", "change")))
    lines.append(f"{len(found.fell)} questions fell, {len(found.rose)} rose")
    lines += [f"  {id_}  {old:.3f} -> {new:.3f}" for id_, (old, new) in list(found.fell.items())[:LISTED]]
    return "\n".join(lines)


def _interval(metric: dict[str, float]) -> str:
    return f"{metric['mean']:.3f} ({metric['low']:.2f}-{metric['high']:.2f})"
