"""The aims of a whole deployment, against the campaign that judges them."""

import re
from dataclasses import replace
from statistics import median

import pytest

from bench.layers.relayed import AIMS, judged

ALONE, REDIS, WSGI = AIMS


def rates(samples, arm, test):
    """Return requests/s and requests per server-CPU-second of each round, from the raw samples."""
    return {
        one.round: (
            one.load.ok / one.load.elapsed_s,
            one.load.ok / (one.server.cpu_user_s + one.server.cpu_system_s),
        )
        for one in samples
        if (one.arm, one.test) == (arm, test) and one.load and all(gate.ok for gate in one.gates)
    }


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.arm)
def test_line_says_what_the_samples_say(full, aim):
    (line,) = (line for line in judged(full.summary) if line.startswith(f"- Against {aim.text}: "))
    said = [float(number) for number in re.findall(r"([\d.]+) times as many", line)]
    above = rates(full.samples, "daphne-ipc", "relay")
    below = rates(full.samples, aim.arm, aim.test)
    for figure in (0, 1):
        ratio = median(above[one][figure] / below[one][figure] for one in above if one in below)
        assert said[figure] == pytest.approx(ratio, rel=0.02)
    ends = [
        (float(low), float(high)) for low, high in re.findall(r"\(([\d.]+) to ([\d.]+)\)", line)
    ]
    assert len(ends) == 2
    assert all(low <= one <= high for one, (low, high) in zip(said, ends, strict=True))


def test_verdict_follows_from_every_figure(full):
    summary = full.summary
    assert ALONE.reached(summary) is True
    assert REDIS.reached(summary) is False
    assert WSGI.reached(summary) is False
    lines = list(judged(summary))
    assert lines[0].endswith("The aim was at least 0.8 times: reached.")
    assert lines[1].endswith("The aim was at least 5 times: **not reached**.")
    one_of_two = median(ratio.estimate for ratio in ALONE.ratios(summary))
    assert replace(ALONE, limit=one_of_two).reached(summary) is False


def test_campaign_without_the_relay_judges_nothing(full, make):
    samples = tuple(one for one in full.samples if one.test != "relay")
    summary = make.canned(full.campaign, samples).summary
    assert [aim.reached(summary) for aim in AIMS] == [None, None, None]
    assert all(line.endswith("not measured.") for line in list(judged(summary))[:3])
