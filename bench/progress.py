"""How a campaign goes, for a person: a bar in a terminal, plain lines elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from bench.figures import headline, quantity
from bench.plan import Arm, Plan
from bench.records import Sample, missed
from bench.workloads import Workload


class Report:
    """Prints a line for every attempt that was kept, and hands the rest to ``_now``."""

    def __init__(self, plan: Plan, console: Console) -> None:
        self._plan = plan
        self._console = console

    def starting(self, round_: int, arm: Arm) -> None:
        self._now(self._place(round_, arm, "starting"))

    def measuring(self, round_: int, arm: Arm, test: Workload, attempt: int) -> None:
        again = f", attempt {attempt}" if attempt > 1 else ""
        self._now(self._place(round_, arm, f"{test.test}{again}"))

    def kept(self, sample: Sample) -> None:
        self._print(line(sample))

    def skipped(self, what: str, why: str) -> None:
        self._console.print(
            f"[yellow]skipped[/] {what}: {escape(why)}", highlight=False, soft_wrap=True
        )

    def progressed(self, share: float, left_s: float) -> None:
        """Say nothing: a log that is not watched needs no estimate."""

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)

    def _place(self, round_: int, arm: Arm, what: str) -> str:
        return f"round {round_}/{self._plan.rounds} · {arm.name} · {what}"

    def _now(self, what: str) -> None:
        """Say nothing: a line follows when it is done."""


class Bar(Report):
    """The same below a bar that shows how far it is and what it still takes."""

    def __init__(self, plan: Plan, console: Console, progress: Progress, left_s: float) -> None:
        super().__init__(plan, console)
        self._progress = progress
        self._task = progress.add_task("", total=1.0, left=duration(left_s))

    def progressed(self, share: float, left_s: float) -> None:
        self._progress.update(self._task, completed=share, left=duration(left_s))

    def _now(self, what: str) -> None:
        self._progress.update(self._task, description=what)


@contextmanager
def watching(plan: Plan, console: Console, first: int = 1) -> Iterator[Report]:
    """Yield what tells ``console`` how the campaign goes from round ``first`` on, as it can."""
    if not console.is_terminal:
        yield Report(plan, console)
        return
    columns = (
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[left]} left[/]"),
        TextColumn("{task.description}"),
    )
    # Drawing takes a millisecond on the generator's side: once a second is enough.
    with Progress(*columns, console=console, transient=True, refresh_per_second=1) as progress:
        yield Bar(plan, console, progress, plan.total_s(first))


def line(sample: Sample) -> str:
    """Return what came of ``sample``, in rich's markup."""
    place = f"{sample.round:>2} {sample.test:<13} {sample.arm:<20}"
    if sample.failure is not None:
        return f"{place} [red]failed[/]: {escape(sample.failure)}"
    against = [f"{gate.name} {quantity(gate.measured, gate.unit)}" for gate in missed(sample.gates)]
    verdict = f"[yellow]discarded[/]: {', '.join(against)}" if against else "[green]ok[/]"
    return f"{place} {_figures(sample)}  {verdict}"


def _figures(sample: Sample) -> str:
    figures = headline(sample.load.mode) if sample.load else ()
    return ", ".join(f"{one.label} {quantity(one.value(sample), one.unit)}" for one in figures)


def duration(seconds: float) -> str:
    """Return a span of time as a person says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"
