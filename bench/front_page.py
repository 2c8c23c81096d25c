"""What the front page and three of docs/ take from code and data: ``python -m bench.front_page``.

Each part stands between two comments, ``<!-- name -->`` and ``<!-- /name -->``. A test asserts that
filling them in again changes nothing.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import findings, summary
from bench.balancing.conclusions import compared
from bench.balancing.publish import found_in
from bench.conclusions import INVALID, caution, standing
from bench.fanout.cells import SEARCH
from bench.fanout.excerpt import carried, costs
from bench.fanout.page import most_users
from bench.fanout.results import read as read_fanout
from bench.fanout.results import renewed
from bench.layers.aims import verdicts
from bench.layers.relayed import judged
from bench.layers.results import ratio as layers_ratio
from bench.layers.results import read as read_layers
from bench.records import read, read_campaign
from bench.report import inline
from bench.results import read_results
from bench.spreads import times
from bench.variants import SERVERS, VARIANTS, Variant
from bench.workloads import WORKLOADS

ROOT = Path(__file__).resolve().parent.parent
# The headline is named by its date alone; other campaigns say behind it what they are about.
HEADLINE, LAYERS = "????-??-??/campaign.json", "????-??-??-layers/layers.json"
FANOUT, MOST_USERS = "????-??-??-fanout/fanout.json", "????-??-??-fanout-users/fanout.json"
BALANCING_HTTP, BALANCING_ECHO = "????-??-??-http/study.json", "????-??-??-echo/study.json"
FANOUT_AGAIN = "????-??-??-fanout-*/fanout.json"  # of some questions, as new as the whole or newer
CHARTS = ("latency-2016", "throughput-2016")
TOLD = ("throughput", "relay")
GLOSSARY = (
    "`/` is answered by Django where the connection ends, and no channel layer takes part; "
    "`/relay/` crosses the layer to a worker and back, as every request did in 2016. gunicorn, "
    "over WSGI, is the control of both. The server has one processor, its workers and Redis "
    "included, and every request opens a connection. “(again)” is the control measured a second "
    "time; “rounds” counts those that passed every check; “per CPU-s” is per second of server CPU. "
    "A figure is the median of the rounds, a ratio is estimated from the rounds' own ratios: where "
    "a deployment kept up in some rounds only, the one is no quotient of the others."
)


def fill(text: str, parts: dict[str, str]) -> str:
    """Return ``text`` with each part in its place; raise ``KeyError`` where it has no place."""
    for name, part in parts.items():
        place = re.compile(rf"<!-- {name} -->\n.*?<!-- /{name} -->", re.DOTALL)
        # Escaped, because sub() gives backslashes a meaning of their own.
        filled = f"<!-- {name} -->\n{part}\n<!-- /{name} -->".replace("\\", "\\\\")
        text, count = place.subn(filled, text)
        if count != 1:
            raise KeyError(f"{count} places for {name}: one <!-- {name} --> is needed")
    return text


def parts(root: Path = ROOT) -> dict[str, str]:
    """Return what stands in each place of the README."""
    published = newest(root / "results")
    headline = _results(published, root) if published else ["The headline campaign is not yet."]
    return {
        "variants": "\n".join(_variants()),
        "results": "\n".join([*headline, *_others(root)]),
    }


def layer_parts(root: Path = ROOT) -> dict[str, str]:
    """Return what stands in each place of docs/channels-ipc.md."""
    published = newest(root / "results")
    return {
        "relayed": "\n".join(_relayed(published) if published else ["Not published yet."]),
        "alone": "\n".join(_alone(root)),
    }


def fanout_parts(root: Path = ROOT) -> dict[str, str]:
    """Return what stands in each place of docs/fan-out.md."""
    folder, searched = (newest(root / "results", data) for data in (FANOUT, MOST_USERS))
    if folder is None or searched is None:
        return dict.fromkeys(("carried", "costs", "users"), "Not published yet.")
    results = read_fanout(folder)
    link = f"[the campaign of {folder.name[:10]}](../results/{folder.name}/README.md)"
    since = []
    for path in sorted((root / "results").glob(FANOUT_AGAIN)):
        again = read_fanout(path.parent)
        newer = again.finished is not None and again.started >= results.started
        if newer and again.questions != (SEARCH,):
            results = renewed(results, again)
            about = ", ".join(f"“{question}”" for question in again.questions)
            since.append(f"[{about}](../results/{path.parent.name}/README.md)")
    measured_since = f", with {' and '.join(since)} measured since" if since else ""
    where = f"In {link}{measured_since}, of {results.rounds} rounds:\n"
    tried = f"[Tried once each](../results/{searched.name}/README.md):"
    return {
        "carried": "\n".join([where, *carried(results)]),
        "costs": "\n".join(costs(results)),
        "users": "\n".join([tried, *most_users(read_fanout(searched).outcomes)]).rstrip("\n"),
    }


def balancing_parts(root: Path = ROOT) -> dict[str, str]:
    """Return what stands in each place of docs/balancing.md."""
    published = {"http": BALANCING_HTTP, "websocket": BALANCING_ECHO}
    return {
        name: "\n".join(_fronts(newest(root / "results", data))) for name, data in published.items()
    }


def _fronts(folder: Path | None) -> Iterator[str]:
    if folder is None:
        yield "Not published yet."
        return
    study, readings = found_in(folder)
    yield (
        f"From [{study.title}, {folder.name[:10]}](../results/{folder.name}/README.md), "
        f"{study.rounds} rounds, processors for the server: {study.server_cores}, for the "
        f"generator: {study.generator_cores}.\n"
    )
    yield from compared(study, readings)


def _relayed(folder: Path) -> Iterator[str]:
    summed = read_results(folder).summary
    link = f"[the headline campaign of {folder.name}](../results/{folder.name}/README.md)"
    yield f"In {link}, of {summed.campaign.rounds} rounds:\n"
    yield from judged(summed)


def _alone(root: Path) -> Iterator[str]:
    """Yield which aims the newest run of the layers by themselves has reached, and which not."""
    folder = newest(root / "results", LAYERS)
    if folder is None:
        yield "Not published yet."
        return
    results = read_layers(folder)
    found = verdicts(results)
    missed = [one for one in found if not one.reached]
    yield (
        f"[The run of {folder.name[:10]}](../results/{folder.name}/README.md), of {results.rounds} "
        f"rounds, reached {len(found) - len(missed)} of the {len(found)} aims that were set. Those "
        "not reached, with the median of the rounds' ratios, its range and its 95 % interval:\n"
    )
    for one in missed:
        line = f"- {one.aim.title}: {times(one.ratio) or 'not measured'}; wanted was {one.aim.text}"
        pipe = layers_ratio(results, one.aim.measure, (one.aim.peer, "raw"))
        if one.aim.against == "ipc" and pipe is not None:
            line += f". To a bare pipe, without any layer, it is {times(pipe)}"
        yield f"{line}."


def newest(results: Path, data: str = HEADLINE) -> Path | None:
    """Return the folder of the newest published campaign whose data file fits, if there is one."""
    return max((path.parent for path in results.glob(data)), default=None)


def _others(root: Path) -> Iterator[str]:
    """Yield a link to each campaign about something else, the newest first."""
    for page in sorted(root.glob("results/????-??-??-*/README.md"), reverse=True):
        text = page.read_text()
        title = text.partition("\n")[0].removeprefix("# ")
        warning = " (invalid: it says why)" if INVALID in text else ""
        yield ""
        yield f"[{title}]({page.relative_to(root)}), {page.parent.name[:10]}{warning}"


_ALSO: dict[str, Callable[[Variant], bool]] = {
    "without middleware": lambda one: one.middleware == "none",
    "Django in one hop": lambda one: one.handler == "one_hop",
    "topics by `group_send`": lambda one: one.delivery == "group",
}


def _variants() -> Iterator[str]:
    """Yield a row for each server on each layer, with the values its other factors take."""
    yield "| server | channel layer | processes | in front | also |"
    yield "|---|---|---|---|---|"
    rows: dict[tuple[str, str], list[Variant]] = {}
    for variant in VARIANTS.values():
        if variant.stack == "today":
            rows.setdefault((variant.server, variant.layer), []).append(variant)
    for (server, layer), variants in rows.items():
        processes = sorted({variant.processes for variant in variants})
        fronts = dict.fromkeys(one.proxy for one in variants if one.proxy != "direct")
        also = [text for text, is_so in _ALSO.items() if any(map(is_so, variants))]
        yield (
            f"| {SERVERS[server].label} ({SERVERS[server].interface.upper()}) "
            f"| {'–' if layer == 'none' else layer} | {', '.join(map(str, processes))} "
            f"| {', '.join(fronts) or '–'} | {', '.join(also) or '–'} |"
        )


def _results(folder: Path, root: Path) -> Iterator[str]:
    campaign = read_campaign(folder)
    summed = summary.summarize(campaign, read(folder / "raw"))
    where = folder.relative_to(root)
    if warning := caution(summed):
        yield f"> **{inline(warning)}**"
        yield ""
    yield f"{standing(summed)} [All of it]({where}/README.md), with the raw data."
    yield ""
    yield GLOSSARY
    yield ""
    yield from _in_words(summed)
    yield ""
    yield "<details><summary>The figures of every test</summary>"
    for section in findings.sections(summed):
        yield ""
        yield f"**{section.title}**"
        yield ""
        headings = [
            f"{figure.heading} | to the control ({section.span})" for figure in section.figures
        ]
        yield f"| | {' | '.join(headings)} | rounds |"
        yield "|---|" + "---:|---|" * len(section.figures) + "---|"
        for row in section.rows:
            name = f"{row.arm} ({row.role})" if row.role else row.arm
            yield f"| {' | '.join([name, *_entries(row), row.rounds])} |"
        if section.remarks:
            yield ""
            yield from (f"- {remark}" for remark in section.remarks)
    if not summed.quick:
        yield ""
        yield findings.ALIKE
    yield ""
    yield "</details>"
    for chart in CHARTS:
        if (folder / "charts" / f"{chart}.svg").is_file():
            yield ""
            yield from _picture(where / "charts", chart)


def _in_words(summed: summary.Summary) -> Iterator[str]:
    """Yield what each deployment does with a second of processor time, beside the others."""
    for test in TOLD:
        for ratio in (*summed.ratios, *summed.contrasts):
            asked = (ratio.test, ratio.figure.name) == (test, "rps_per_cpu_s")
            if asked and ratio.interval and ratio.arm != summed.campaign.twin:
                same = "" if ratio.differs else ": no difference can be told"
                yield (
                    f"- `{WORKLOADS[test].path}`: {ratio.arm} answers "
                    f"{findings.times(ratio.estimate)} times as many requests per second of server "
                    f"CPU as {ratio.base} ({findings.bounds(ratio, ' to ')}){same}."
                )


def _entries(row: findings.Row) -> Iterator[str]:
    for entry in row.entries:
        mark = "≈ " if entry.tone == "same" else ""
        yield entry.value
        yield f"{mark}{entry.ratio}" + (f" ({entry.bounds})" if entry.bounds else "")


def _picture(folder: Path, chart: str) -> Iterator[str]:
    yield "<picture>"
    yield f'<source media="(prefers-color-scheme: dark)" srcset="{folder}/{chart}-dark.svg">'
    yield f'<img alt="{chart.replace("-", ", ")} beside today" src="{folder}/{chart}.svg">'
    yield "</picture>"


def main() -> None:
    for page, made in (
        ("README.md", parts()),
        ("docs/channels-ipc.md", layer_parts()),
        ("docs/fan-out.md", fanout_parts()),
        ("docs/balancing.md", balancing_parts()),
    ):
        path = ROOT / page
        path.write_text(fill(path.read_text(), made))


if __name__ == "__main__":
    main()
