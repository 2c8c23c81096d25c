"""The proof of docs/2016-stack.md: what held the IPC setups back, mended one thing at a time.

    .venv/bin/python channels1/proof.py --rounds 3 --seconds 15 --into results/<folder>

Every arm is served once a round, in shuffled order, by processes of its own, and asked by ten
clients that never give up. Writes proof.json, its page (proof_page.py), and in raw/ all that the
generator and the gates said of each run. Ctrl-C ends it with what there is.
"""

import os
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random, SystemRandom

import click

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # before channels1/

from bench import records, supervise
from bench.apparatus import Target
from bench.campaign import RESTS_S, Failed
from bench.cells import SERIES_BUCKET_S
from bench.cli.run import INTERRUPTED, Interrupted, interruptible, kept_to
from bench.errors import BadInput
from bench.ledger import new_folder
from bench.provenance import Pinning, anonymous, command_line, pinning, provenance, siblings
from bench.records import Load, Sample
from bench.variants import VARIANTS, Variant
from bench.workloads import WORKLOADS
from channels1 import proof_page
from channels1.proof_page import Results, Run

IMPATIENT_S = 0.001


@dataclass(frozen=True)
class Arm(Variant):
    """A setup of 2016, as it is or with one thing changed by an environment variable."""

    name: str = ""
    of: str = ""  # the name in ``VARIANTS``
    settings: str = ""
    entry_point: str = ""
    switches: tuple[tuple[str, str], ...] = ()
    mended: tuple[str, ...] = ()  # as it says itself when it is asked

    def __post_init__(self) -> None:
        """Take what ``VARIANTS`` has checked."""


def published(name: str, of: str) -> Arm:
    base = VARIANTS[of]
    same = {"settings": base.settings, "entry_point": base.entry_point}
    return Arm(**base.factors(), name=name, of=of, **same)


def mended(name: str, *what: str) -> Arm:
    return replace(
        published(name, "channels017-daphne-ipc"),
        settings="testproject.settings.channels_ipc_mended",
        entry_point="testproject.asgi_for_ipc_mended:channel_layer",
        switches=(("CHANNELS1_MENDED", ",".join(what)),),
        mended=what,
    )


def impatient(name: str, of: str) -> Arm:
    return replace(
        published(name, of),
        entry_point="testproject.asgi_impatient:channel_layer",
        switches=(("CHANNELS1_DAPHNE_SLEEP_S", str(IMPATIENT_S)),),
    )


ARMS = (
    published("published", "channels017-daphne-ipc"),
    mended("channels", "channels"),
    mended("semaphore", "semaphore"),
    mended("both", "channels", "semaphore"),
    published("ipc-50ms", "channels1-daphne-ipc"),
    impatient("ipc-1ms", "channels1-daphne-ipc"),
    published("redis-50ms", "channels1-daphne-redis"),
    impatient("redis-1ms", "channels1-daphne-redis"),
)


@contextmanager
def served(arm: Arm, cpus: Collection[int] | None) -> Iterator[supervise.Deployment]:
    """Run ``arm``, as ``supervise.deployed`` does; ``StartFailed`` where it is not mended so."""
    with supervise.deployed(arm, cpus=cpus, switches=dict(arm.switches)) as deployment:
        if deployment.identity["mended"] != sorted(arm.mended):
            reason = f"{arm.name}: mended is {deployment.identity['mended']}, not {arm.mended}"
            raise supervise.StartFailed(reason, deployment.log_tail())
        yield deployment


def measured(arm: Arm, round_: int, attempt: int, seconds: int, pinned: Pinning) -> Sample:
    """Serve ``arm`` and load it once. A failure is a result, too."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    nothing = (None, None, None, None)
    sample = Sample("proof", arm.name, arm.of, "minute", round_, attempt, now, *nothing)
    # What gets no reply is waited for until the run is over, and so counts as a timeout.
    test = replace(WORKLOADS["minute"], timeout_s=seconds + 1)
    try:
        with served(arm, pinned.server) as deployment:
            found = Target(deployment, pinned).measure(test, duration_s=seconds, warmup_s=0)
    except (Failed, supervise.StartFailed) as failure:
        tail = anonymous(failure.log_tail)
        return replace(sample, failure=anonymous(failure.reason), log_tail=tail)
    filled = found.on(sample, deployment.identity)
    return replace(filled, command=anonymous(filled.command))


def run_of(sample: Sample, seconds: int) -> Run:
    """Return what the page needs to know of ``sample``."""
    load = sample.load
    return Run(
        arm=sample.arm,
        round=sample.round,
        attempt=sample.attempt,
        replies_per_5s=per_5s(load, seconds) if load else None,
        hung=load.timeout if load else None,
        faults=tuple(gate.reason for gate in records.missed(sample.gates)),
        failure=sample.failure,
        versions=sample.identity.get("versions", {}),
    )


def per_5s(load: Load, seconds: int) -> tuple[int, ...]:
    """Return the replies to what was sent in each whole 5 s; a second without any has no bucket."""
    counts = [0] * (seconds // SERIES_BUCKET_S)
    for second in load.buckets:
        index = int(second.start_s // SERIES_BUCKET_S)
        if index < len(counts):
            counts[index] += second.ok
    return tuple(counts)


def measure(results: Results, folder: Path, attempts: int, pinned: Pinning) -> Results:
    """Measure every round, and write each run down as it comes; return what there is at last.

    An attempt that a gate did not let count is made again, up to ``attempts`` times.
    """
    for round_ in range(1, results.rounds + 1):
        order = Random(f"{results.provenance['seed']}/{round_}")  # noqa: S311 - no secret
        for arm in order.sample(ARMS, len(ARMS)):
            for attempt in range(1, attempts + 1):
                time.sleep(RESTS_S[attempt - 1])
                sample = measured(arm, round_, attempt, results.seconds, pinned)
                records.write(sample, folder / "raw")
                run = run_of(sample, results.seconds)
                results = replace(results, runs=(*results.runs, run))
                proof_page.publish(results, folder)
                click.echo(f"round {round_} {arm.name}: {proof_page.told(run)}")
                if sample.valid:
                    break
    return replace(results, finished=datetime.now(UTC).isoformat(timespec="seconds"))


@click.command()
@click.option("--rounds", type=click.IntRange(1), default=3, help="How often each arm is measured.")
@click.option("--seconds", type=click.IntRange(SERIES_BUCKET_S), default=15, help="How long.")
@click.option("--into", type=click.Path(path_type=Path), help="A new folder.")
@click.option(
    "--attempts",
    type=click.IntRange(1, len(RESTS_S)),
    default=len(RESTS_S),
    help="How often a run is made that something else on the machine disturbs.",
)
def main(rounds: int, seconds: int, into: Path | None, attempts: int) -> None:
    """Measure what held the IPC setups of 2016 back."""
    try:
        with interruptible():
            folder = prove(rounds, seconds, into, attempts)
    except BadInput as error:
        raise click.UsageError(str(error)) from error
    except Interrupted:
        raise SystemExit(INTERRUPTED) from None
    click.echo(folder / "README.md")


def prove(rounds: int, seconds: int, into: Path | None, attempts: int) -> Path:
    """Measure, and return the folder with the page; raise ``BadInput`` where nothing can start."""
    os.environ.pop("REDIS_URL", None)  # a Redis of our own, whatever the shell names
    for arm in ARMS:
        supervise.require(arm, os.environ)
    started = datetime.now(UTC)
    folder = new_folder(into, started)
    pinned = pinning(os.sched_getaffinity(0), siblings())
    seed = SystemRandom().randrange(10**6)
    results = Results(
        started=started.isoformat(timespec="seconds"),
        finished=None,
        rounds=rounds,
        seconds=seconds,
        runs=(),
        provenance=provenance(pinned=pinned, seed=seed, command=command_line()),
    )
    with kept_to(pinned):
        proof_page.publish(measure(results, folder, attempts, pinned), folder)
    return folder


if __name__ == "__main__":
    main()
