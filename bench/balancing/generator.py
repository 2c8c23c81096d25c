"""Runs one tool once, bounded in time, on processors of its own."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.load import ROOT, pinned, raise_priority
from bench.tools.tool import Tool, Unreadable

START_AND_DRAIN_S = 40.0
LOG_TAIL_LINES = 20


@dataclass(frozen=True)
class Generator:
    """A tool that runs. Made by ``running``."""

    process: subprocess.Popen[bytes]
    tool: Tool
    folder: Path
    limit_s: float

    @property
    def pid(self) -> int:
        return self.process.pid

    def text(self) -> str:
        """Wait for the end, and return what the tool had to say.

        One that hangs is killed at its limit; what it has said by then may be whole. Raises
        ``Unreadable`` where a result file is missing.
        """
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(self.limit_s)
        self.kill()
        if self.tool.result_file is None:
            return self.printed()
        path = self.folder / self.tool.result_file
        if not path.exists():
            lines = self.printed().strip().splitlines() or ["it said nothing"]
            raise Unreadable(f"{self.tool.name} wrote no result: {lines[-1]}")
        return path.read_text()

    def printed(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def log_tail(self) -> str:
        return "\n".join(self.printed().splitlines()[-LOG_TAIL_LINES:])

    def kill(self) -> None:
        with suppress(ProcessLookupError):  # it has ended by itself
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def running(
    tool: Tool, arguments: tuple[str, ...], cpus: Collection[int] | None, limit_s: float
) -> Iterator[Generator]:
    """Run ``tool`` with ``arguments`` on ``cpus``; it is gone when the block ends.

    ``{}`` in the arguments stands for the file that it shall write.
    """
    program = tool.find()
    assert program is not None, f"{tool.name} has been looked for before"
    with tempfile.TemporaryDirectory(prefix="tool-") as name:
        folder = Path(name)
        result = str(folder / (tool.result_file or "unused"))
        command = (*program, *(result if part == "{}" else part for part in arguments))
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                pinned(command, cpus),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        # Every tool alike: a comparison at different priorities would compare those.
        raise_priority(process.pid, cpus)
        generator = Generator(process, tool, folder, limit_s + START_AND_DRAIN_S)
        try:
            yield generator
        finally:
            generator.kill()
