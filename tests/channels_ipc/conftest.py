"""Layers that are closed after the test, and real processes that are ended with it."""

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from channels_ipc import IPCChannelLayer

ROOT = Path(__file__).parents[2]

PRELUDE = """
import asyncio, os, sys, time
from channels.exceptions import ChannelFull, MessageTooLarge
from channels_ipc import IPCChannelLayer, IPCError
directory, *args = sys.argv[1:]
def say(*words): print(*words, flush=True)
def layer(**settings): return IPCChannelLayer(directory=directory, **settings)
"""


@pytest.fixture
def directory(tmp_path):
    return str(tmp_path / "ipc")


@pytest.fixture
async def make_layer(directory):
    """Return a function that makes a layer; two layers are two ends, as in two processes."""
    layers = []

    def make(**settings):
        layers.append(IPCChannelLayer(**{"directory": directory, **settings}))
        return layers[-1]

    yield make
    for layer in layers:
        await layer.close()


class Program:
    """A Python process that uses the layer. Ended with the test, however that goes."""

    def __init__(self, source, directory, *args):
        script = PRELUDE + textwrap.dedent(source)
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", script, directory, *map(str, args)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def pid(self):
        return self.process.pid

    def line(self):
        """Return the next line the process says, and fail with its errors where there is none."""
        line = self.process.stdout.readline()
        if not line:
            pytest.fail(f"the process said nothing more:\n{self.process.stderr.read()}")
        return line.strip()

    async def next_line(self):
        return await asyncio.to_thread(self.line)

    def result(self, timeout_s=30):
        """Wait for the end and return all that was said; fail where it ended badly."""
        out, err = self.process.communicate(timeout=timeout_s)
        assert self.process.returncode == 0, err
        return out.strip()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def start(directory):
    programs = []

    def start(source, *args):
        programs.append(Program(source, directory, *args))
        return programs[-1]

    yield start
    for program in programs:
        program.end()


@pytest.fixture
def run(start):
    """Run a process to its end and return what it said."""

    def run(source, *args):
        return start(source, *args).result()

    return run
