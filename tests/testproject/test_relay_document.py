"""docs/relay.md says what the code does."""

from pathlib import Path

import pytest

from testproject import relay, worker

TEXT = " ".join((Path(__file__).parents[2] / "docs" / "relay.md").read_text().split())


@pytest.mark.parametrize(
    "claim",
    [
        f"or {relay.BATCH_MAX} are there",
        f"{relay.WAITING_MAX:,} requests of this event loop wait already",
        f"no later than {worker.SLICE_S * 1000:g} ms after the first",
    ],
)
def test_document_states_the_limits(claim):
    assert claim in TEXT


@pytest.mark.parametrize("error", [relay.RelayError, *relay.RelayError.__subclasses__()])
def test_document_explains_every_status(error):
    assert f"| {error.status} |" in TEXT


def test_document_states_the_time_to_gather():
    assert relay.GATHER_S == 0.001
    assert "or a millisecond is over" in TEXT
