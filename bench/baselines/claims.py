"""What a reader should conclude, in words: drawn from the intervals and from nothing else."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from bench.baselines.ladder import BARE, ONE_HOP, STOCK, TWIN
from bench.baselines.results import Results, ratio, short, underused
from bench.baselines.rows import ALONE, ONE_CLIENT
from bench.findings import times
from bench.spreads import Ratio


@dataclass(frozen=True)
class Claim:
    """A comparison of ``row`` to ``base`` in ``figure``; ``text`` has ``{}`` for the ratio.

    ``so`` is what follows for who deploys, said only where the whole interval is beyond
    ``so_beyond``: below it where that is below 1, else above.
    """

    row: str
    base: str
    figure: str
    text: str
    so: str = ""
    so_beyond: float = 1.0

    def is_about(self, rows: Collection[str]) -> bool:
        return self.row in rows or self.base in rows


LADDER = (
    Claim(
        STOCK,
        BARE,
        "cpu_us",
        "A request through Django with its stock middleware and a sync view takes {} times the CPU "
        "of a bare ASGI callable on the same uvicorn",
    ),
    Claim(
        "consumer",
        BARE,
        "cpu_us",
        "Channels' routing and an HTTP consumer take {} times the CPU of the bare callable",
    ),
    Claim(
        "none-sync",
        STOCK,
        "cpu_us",
        "Without middleware the same request takes {} times the CPU",
        "Middleware is most of what a Django request over ASGI costs, by its trips to a thread.",
        0.5,
    ),
    Claim(
        "stock-async",
        STOCK,
        "cpu_us",
        "An async view under the stock middleware takes {} times the CPU of a sync view",
    ),
    Claim(
        "inline-sync",
        STOCK,
        "cpu_us",
        "The same seven middlewares, run in the event loop, take {} times the CPU",
        "It is the trips that cost, and not what the middleware does.",
        0.6,
    ),
    Claim(
        ONE_HOP,
        STOCK,
        "cpu_us",
        "Django entered once, by `testproject/one_hop.py`, takes {} times the CPU of stock Django, "
        "with the same middleware and the same view",
        "Who serves sync views over ASGI gets most of the time back with that one class.",
        0.5,
    ),
    Claim(ONE_HOP, STOCK, "rps", "It answers {} times as many requests"),
    Claim(
        ONE_HOP,
        "gunicorn",
        "cpu_us",
        "It takes {} times the CPU of the same project over WSGI on gunicorn (which opens a "
        "connection for each request)",
    ),
    Claim(
        "stock-sync-x2",
        STOCK,
        "cpu_us",
        "On two processors, stock Django takes {} times the CPU that it takes on one",
        "Give each ASGI process one processor: its threads hand the same lock back and forth.",
        1.1,
    ),
    Claim(
        "stock-sync-x2",
        STOCK,
        "rps",
        "On two processors it answers {} times as many requests as on one",
    ),
)
PROXIES = (
    Claim(
        "uwsgi-uwsgi-unix",
        "uwsgi-http-tcp",
        "rps",
        "From nginx to uWSGI, the uwsgi protocol over a unix socket answers {} times as many "
        "requests as HTTP over TCP",
    ),
    Claim(
        "uwsgi-http-unix",
        "uwsgi-http-tcp",
        "rps",
        "HTTP over a unix socket answers {} times as many as over TCP",
    ),
    Claim(
        "gunicorn-http-unix",
        "gunicorn-http-tcp",
        "rps",
        "For gunicorn, a unix socket answers {} times as many as TCP",
    ),
    Claim(
        "go-kept",
        "go",
        "rps",
        "For Go behind nginx, keeping the connections between them answers {} times as many",
    ),
)
FRAMEWORKS = (
    Claim(
        "uwsgi-uwsgi-unix",
        ALONE,
        "rps_per_cpu_s",
        "For each CPU second, a bare WSGI callable behind nginx answers {} times as many requests "
        "as nginx alone",
    ),
    Claim(
        "django",
        "uwsgi-uwsgi-unix",
        "rps",
        "Django with its stock middleware answers {} times as many as the bare WSGI callable",
    ),
    Claim(
        "django-no_middleware",
        "django",
        "rps",
        "Without middleware it answers {} times as many as with it",
    ),
    Claim("flask", "django", "rps", "Flask answers {} times as many as Django"),
)
_SERVERS = {"daphne": "Daphne", "granian": "granian", "gunicorn_asgi": "gunicorn's ASGI worker"}
SERVERS = tuple(
    claim
    for server, label in _SERVERS.items()
    for claim in (
        Claim(
            f"{server}-{BARE}",
            BARE,
            "cpu_us",
            f"A bare callable on {label} takes {{}} times the CPU of one on uvicorn",
        ),
        Claim(
            f"{server}-{STOCK}",
            STOCK,
            "cpu_us",
            f"Stock Django on {label} takes {{}} times the CPU of stock Django on uvicorn",
        ),
        Claim(
            f"{server}-{ONE_HOP}",
            f"{server}-{STOCK}",
            "cpu_us",
            f"On {label}, Django entered once takes {{}} times the CPU of stock Django",
            "It pays on this server too.",
            0.5,
        ),
    )
)
WORK = tuple(
    Claim(
        f"work-{name}",
        "work-hello",
        "rps",
        f"A view that {does} answers {{}} times as many requests as one that says hello",
    )
    for name, does in {
        "render_name": "renders a template with a name",
        "render_table": "renders a table of 6 x 4",
        "lookup": "looks 50,000 numbers up in a set",
    }.items()
)
CONCURRENCY = (
    Claim(ALONE, ONE_CLIENT, "rps", "nginx alone answers {} times as many to 64 clients as to one"),
    Claim("nginx-128", ALONE, "rps", "To 128 clients it answers {} times as many as to 64"),
)


def conclusions(results: Results) -> dict[str, list[str]]:
    """Return sentences under headings, of what enough rounds measured; the others are left out.

    So are comparisons of rates where a server had time to spare: they would be its clients'. One
    client cannot keep a server busy, and what it gets is the question.
    """
    groups = {
        "Django over ASGI": LADDER,
        "Between nginx and the server": PROXIES,
        "Frameworks": FRAMEWORKS,
        "Other ASGI servers": SERVERS,
        "Doing work": WORK,
        "Concurrency": CONCURRENCY,
    }
    lacking = {row for row, generator in short(results) if generator == results.generator}
    idle = {row for row in results.rows if row != ONE_CLIENT and underused(results, row)}

    def stands(claim: Claim) -> bool:
        return not claim.is_about(lacking | idle if claim.figure == "rps" else lacking)

    found = {
        head: list(_sentences(results, filter(stands, claims))) for head, claims in groups.items()
    }
    return {head: sentences for head, sentences in found.items() if sentences}


def twin(results: Results) -> str | None:
    """Return what the A/A pair says; None where it was not measured."""
    found = {name: ratio(results, TWIN, STOCK, name) for name in ("cpu_us", "rps")}
    cpu, rate = found["cpu_us"], found["rps"]
    if cpu is None or rate is None:
        return None
    said = (
        "Stock Django on uvicorn was measured twice in every round, as if it were two deployments: "
        f"{times(cpu.estimate)} times the CPU ({bounds(cpu)}) and {times(rate.estimate)} times the "
        f"rate ({bounds(rate)}). What ends no further from 1 is called no difference here."
    )
    if any(one.interval and not one.interval.contains(1.0) for one in (cpu, rate)):
        return f"**It differs from itself.** {said}"
    return said


def _sentences(results: Results, claims: Iterable[Claim]) -> Iterator[str]:
    for claim in claims:
        measured = ratio(results, claim.row, claim.base, claim.figure)
        if measured is not None:
            yield sentence(claim, measured, _reach(results, claim.figure))


def _reach(results: Results, figure: str) -> float:
    """Return by what factor the A/A pair's interval for ``figure`` reaches away from 1."""
    found = ratio(results, TWIN, STOCK, figure)
    return found.interval.reach if found and found.interval else 1.0


def sentence(claim: Claim, measured: Ratio, reach: float = 1.0) -> str:
    """Return the claim with its figure, and what follows where the interval allows it.

    What ends no further from 1 than ``reach`` is no difference.
    """
    said = f"{claim.text.format(f'**{times(measured.estimate)}**')} ({bounds(measured)})"
    interval = measured.interval
    if interval is None:
        return f"{said}."
    if not interval.beyond(reach):
        return f"{said}: no difference can be told."
    beyond = claim.so_beyond
    follows = interval.high < beyond if beyond < 1 else interval.low > beyond
    return f"{said}. {claim.so}" if claim.so and follows else f"{said}."


def bounds(measured: Ratio) -> str:
    """Return the interval, or how far the rounds range where there is none."""
    interval, ranged = measured.interval, measured.spread
    if interval is not None:
        return f"95 % interval {times(interval.low)} to {times(interval.high)}"
    if ranged.rounds == 1:
        return "1 round"
    return f"{ranged.rounds} rounds, {times(ranged.low)} to {times(ranged.high)}"
