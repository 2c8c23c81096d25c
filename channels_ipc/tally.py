"""Counting what goes wrong without filling the log."""

import logging

logger = logging.getLogger("channels_ipc")


class Tally:
    """Counts events. The first is logged; with ``repeat`` also every tenth power after it."""

    def __init__(self, sentence: str, *, repeat: bool = False) -> None:
        self.count = 0
        self._sentence = sentence
        self._repeat = repeat
        self._next_log = 1

    def add(self, number: int, detail: str) -> None:
        """Count ``number`` more events; ``detail`` says where the latest was."""
        self.count += number
        if number and self.count >= self._next_log:
            logger.warning("%s: %s (%d so far)", self._sentence, detail, self.count)
            self._next_log = self._next_log * 10 if self._repeat else 1 << 62
