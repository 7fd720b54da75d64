"""A line a step on standard output, for those who watch a run."""

from agent_server.doors.cli import output
from nightly.jobs import StepReport
from nightly.record import Step
from nightly.run import Watcher


class Lines(Watcher):
    """`ok       ingest     FINANCE  3 indexed, 9 unchanged  2.1 s`, and what is to be looked at below it."""

    def ended(self, step: Step, report: StepReport | None, seconds: float) -> None:
        said = report.summary if report is not None else step.error
        output.write(f"{step.outcome:<8} {step.job:<10} {step.collection}  {output.clean(said)}  {seconds:.1f} s")
        for finding in report.findings if report is not None else ():
            output.write(f"         - {output.clean(finding)}")
