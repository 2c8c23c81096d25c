"""What one run of the generator is asked for: users, subscriptions and how they are reached."""

import json
from collections import Counter
from dataclasses import asdict, dataclass
from random import Random

from bench.errors import BadInput, unknown

TRANSPORTS = ("websocket", "polling")
TOPIC_BYTES = 7


def topic(number: int) -> str:
    """Return the name that ``manage.py publish`` gives topic ``number``."""
    return f"t{number:06d}"


@dataclass(frozen=True)
class Spec:
    """``users`` clients, each subscribed to ``subscriptions`` topics drawn from ``topics``.

    ``churning`` users more connect and disconnect all the time.
    """

    url: str  # such as http://127.0.0.1:8000
    transport: str = "websocket"
    users: int = 100
    topics: int = 1_000
    subscriptions: int = 20
    message_bytes: int = 1_024
    ramp: int = 100  # users that connect at once, and are timed together
    churning: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        if self.transport not in TRANSPORTS:
            raise unknown("transport", self.transport, TRANSPORTS)
        if self.users < 1:
            raise BadInput(f"users {self.users}: a fan-out needs 1 user or more")
        if not 0 <= self.subscriptions <= self.topics:
            raise BadInput(
                f"subscriptions {self.subscriptions}: 0 to as many as there are topics, which is "
                f"{self.topics}"
            )

    def topics_of(self, user: int) -> list[str]:
        """Return the topics of a user: the same for one seed, spread evenly over the pool."""
        numbers = Random(f"{self.seed}/{user}").sample(range(self.topics), self.subscriptions)  # noqa: S311
        return [topic(number) for number in numbers]

    def subscribers(self) -> Counter[str]:
        """Return how many users subscribe to each topic that has one."""
        return Counter(name for user in range(self.users) for name in self.topics_of(user))

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def spec_from(text: str) -> Spec:
    return Spec(**json.loads(text))
