"""The jobs `citations`, `defines` and `claims`: what is read out of passages, brought up to date.

Each looks for sources whose passages are others than those it has read, so that it makes good what any earlier run,
by night or by hand, has left undone.
"""

from agent_server.catalog import Collection
from agent_server.db import Database
from nightly import citations, claims, defines
from nightly.claims_model import read_with_model
from nightly.jobs import NightContext, StepReport


def citations_job(database: Database, collection: Collection, context: NightContext) -> StepReport:  # noqa: ARG001
    """Citations of the sources that have changed. Raises the first fault after all others were read."""
    report = citations.refresh(database, collection)
    counts = {"sources": report.sources, "links": report.links, "dangling": report.dangling}
    return StepReport(counts, summary=f"{report.sources} sources read")


def defines_job(database: Database, collection: Collection, context: NightContext) -> StepReport:  # noqa: ARG001
    """Terms and definition edges of the sources that have changed."""
    report = defines.refresh(database, collection)
    counts = {"sources": report.sources, "terms": report.terms, "edges": report.edges}
    return StepReport(counts, summary=f"{report.sources} sources read")


def claims_job(database: Database, collection: Collection, context: NightContext) -> StepReport:
    """Claims of the sources that have changed; where KB_LLM=ollama a language model reads them too."""
    report = claims.refresh(database, collection)
    counts: dict[str, int | float | str] = {
        "sources": report.sources,
        "found": report.found,
        "followed": report.followed,
        "conflicts": report.conflicts,
    }
    faults: tuple[str, ...] = ()
    if context.settings.llm == "ollama":
        model = read_with_model(database, collection, context.settings)
        report.by_status = claims.count(database, collection)
        counts |= {"model_passages": model.passages, "model_claims": model.stored, "model_checked": model.checked}
        faults = tuple(model.faults)
    counts |= report.by_status
    summary = f"{report.sources} sources read, {report.found} claims found"
    return StepReport(counts, ok=not faults, summary=summary, findings=faults)
