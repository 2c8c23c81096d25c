"""What every rule stands on: the layer under test, made from its settings and closed again."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar
from uuid import uuid4

import pytest
import pytest_asyncio
from django.utils.module_loading import import_string

from .participant import close
from .processes import Processes
from .subject import Subject

MakeLayer = Callable[..., Any]
TakeProcesses = Callable[..., Any]

WAIT_S = 2.0  # for what must come; a rule that holds never waits this long
QUIET_S = 0.07  # for what must not come


def across_processes(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a rule that a layer within one process cannot be held to."""
    rule.across_processes = True
    return rule


@pytest.mark.asyncio
class LayerRules:
    """Base of the classes that hold the rules. Each test is one rule; its docstring states it."""

    subjects: ClassVar[Sequence[Subject]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Hold every subject to every rule, with what is known of it as a mark."""
        if "subject" in metafunc.fixturenames:
            rule = metafunc.function
            metafunc.parametrize("subject", [parameter(one, rule) for one in self.subjects])

    @pytest.fixture
    def config(self, subject: Subject) -> Mapping[str, Any]:
        """The layer's CONFIG. Override it where a part is known only when the test runs."""
        return subject.config

    @pytest_asyncio.fixture
    async def make_layer(
        self, subject: Subject, config: Mapping[str, Any]
    ) -> AsyncIterator[MakeLayer]:
        """Make layers from the subject's settings and the settings a rule adds to them."""
        made = []

        def make(**settings: Any) -> Any:
            made.append(import_string(subject.backend)(**{**config, **settings}))
            return made[-1]

        yield make
        for layer in made:
            await layer.flush()
            await close(layer)

    @pytest_asyncio.fixture
    async def layer(self, make_layer: MakeLayer) -> Any:
        """The layer, with its settings as they are."""
        return make_layer()

    @pytest.fixture(scope="class")
    @classmethod
    def pool(cls) -> Iterator[Processes]:
        processes = Processes()
        yield processes
        processes.stop()

    @pytest_asyncio.fixture
    async def take_processes(
        self, subject: Subject, config: Mapping[str, Any], pool: Processes
    ) -> AsyncIterator[TakeProcesses]:
        """Start real processes with the same layer: ``await take_processes(2, capacity=3)``."""

        async def take(number: int, **settings: Any) -> Any:
            return await pool.take(subject.backend, {**config, **settings}, number)

        yield take
        await pool.give_back()


def parameter(subject: Subject, rule: Callable[..., Any]) -> Any:
    """Return ``subject`` as a parameter of ``rule``, marked with what is expected of it."""
    marks = list(subject.marks)
    if not applies(subject, rule):
        marks.append(pytest.mark.skip(reason=f"not applicable: {subject.name} is one process"))
    elif rule.__name__ in subject.breaks:
        marks.append(pytest.mark.xfail(reason=subject.breaks[rule.__name__], strict=True))
    return pytest.param(subject, id=subject.name, marks=marks)


def applies(subject: Subject, rule: Callable[..., Any]) -> bool:
    return subject.crosses_processes or not hasattr(rule, "across_processes")


def unique(stem: str = "channel") -> str:
    """Return a name that no other test has used: layers are shared, and names must not be."""
    return f"{stem}.{uuid4().hex[:12]}"


async def receive(layer: Any, channel: str, timeout_s: float = WAIT_S) -> dict[str, Any]:
    """Return the next message; raise TimeoutError where none comes."""
    return await asyncio.wait_for(layer.receive(channel), timeout_s)


async def is_quiet(layer: Any, channel: str, wait_s: float = QUIET_S) -> bool:
    """Whether nothing arrives on ``channel`` for ``wait_s``."""
    try:
        await receive(layer, channel, wait_s)
    except TimeoutError:
        return True
    return False


async def drain(
    layer: Any, channel: str, at_least: int = 0, *, wait_s: float = 1.0, quiet_s: float = QUIET_S
) -> list[int]:
    """Return the ids of all that can be received: ``at_least`` so many are waited for longer."""
    ids = []
    while True:
        try:
            patience_s = wait_s if len(ids) < at_least else quiet_s
            ids.append((await receive(layer, channel, patience_s))["id"])
        except TimeoutError:
            return ids


async def eventually(
    condition: Callable[[], Any], timeout_s: float = WAIT_S, every_s: float = 0.05
) -> bool:
    """Await ``condition()`` until it is true; say whether that came within ``timeout_s``."""
    loop = asyncio.get_running_loop()
    end = loop.time() + timeout_s
    while loop.time() < end:
        if await condition():
            return True
        await asyncio.sleep(every_s)
    return False
