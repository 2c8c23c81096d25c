"""Real processes do random things, some are killed or stopped meanwhile, and a model keeps count.

``CHANNELS_IPC_FUZZ_S=600 pytest tests/channels_ipc/test_fuzz.py`` runs it for longer. A failure
names its seed; ``CHANNELS_IPC_FUZZ_SEED`` repeats its choices, not the timing of the processes.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from channels_ipc import IPCChannelLayer

ROOT = Path(__file__).parents[2]
DURATION_S = float(os.environ.get("CHANNELS_IPC_FUZZ_S", "5"))  # of each test
FIRST_SEED = int(os.environ.get("CHANNELS_IPC_FUZZ_SEED", "1"))
CAPACITY = 40
STEPS = 100  # with the same processes and their successors
BURST = 30  # messages at most; above CAPACITY together with what may wait
NAMED = ("work", "jobs")
GROUPS = ("room", "hall")
SIZES = (0, 0, 0, 900, 3000, 5000, 100_000)

PROGRAM = """
import asyncio, json, sys
from channels.exceptions import ChannelFull
from channels_ipc import IPCChannelLayer
directory, who, capacity = sys.argv[1], sys.argv[2], int(sys.argv[3])
layer = IPCChannelLayer(directory=directory, capacity=capacity)

async def new():
    return await layer.new_channel()
async def send(channel, first, sizes):
    accepted = []
    for n, size in enumerate(sizes, first):
        try:
            await layer.send(channel, {"from": who, "n": n, "body": b"x" * size})
            accepted.append(n)
        except ChannelFull:
            pass
    return accepted
async def group_send(group, first, sizes):
    for n, size in enumerate(sizes, first):
        await layer.group_send(group, {"from": f"{who} to {group}", "n": n, "body": b"x" * size})
    return list(range(first, first + len(sizes)))
async def receive(channel, count, patience_s):
    received = []
    try:
        while len(received) < count:
            message = await asyncio.wait_for(layer.receive(channel), patience_s)
            received.append((message["from"], message["n"]))
    except TimeoutError:
        pass
    return received

async def main():
    calls = {"new": new, "send": send, "receive": receive, "group_send": group_send,
             "group_add": layer.group_add, "group_discard": layer.group_discard,
             "flush": layer.flush}
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, *arguments = json.loads(line)
        result = await calls[name](*arguments)
        counts = layer.dropped.count, layer.malformed.count
        print(json.dumps([result, *counts]), flush=True)
asyncio.run(main())
"""


class Actor:
    """A process that does as it is told, one thing after the other."""

    def __init__(self, who, directory):
        self.who = who
        self.sent = 0
        self.dropped = 0
        self.channels = []
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", PROGRAM, directory, who, str(CAPACITY)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def tell(self, *command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        assert line, f"{self.who} ended"
        result, self.dropped, malformed = json.loads(line)
        assert malformed == 0
        return result

    def do(self, *command):
        self.tell(*command)
        return self.answer()

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Model:
    """What each channel must give yet: for each sender, the numbers in the order of sending."""

    def __init__(self):
        self.due = defaultdict(lambda: defaultdict(list))
        self.perhaps = defaultdict(lambda: defaultdict(list))  # sent by who was killed meanwhile
        self.members = defaultdict(set)
        self.missed = 0  # messages to groups that did not come
        self.received = 0

    def received_from(self, channel, received):
        for sender, n in received:
            self.received += 1
            due, perhaps = self.due[channel][sender], self.perhaps[channel][sender]
            if n in due:
                missed = due.index(n)
                assert not missed or " to " in sender, f"{channel}: {due[:missed]} of {sender} lost"
                self.missed += missed
                del due[: missed + 1]
            else:
                assert n in perhaps, f"{channel}: {n} of {sender} twice, or out of order"
                del perhaps[: perhaps.index(n) + 1]

    def waiting(self, channel):
        return sum(map(len, self.due[channel].values()))

    def forget(self, channel):
        for record in (self.due, self.perhaps):
            record.pop(channel, None)
        for members in self.members.values():
            members.discard(channel)

    def flush(self):
        self.due.clear()
        self.perhaps.clear()
        self.members.clear()


class Play:
    """One run: the actors, the model, and the random choices.

    A ``quiet`` one does nothing that keeps it from telling exactly what must be counted as dropped.
    """

    def __init__(self, seed, directory, *, quiet):
        self.random = random.Random(seed)
        self.directory = directory
        self.quiet = quiet
        self.model = Model()
        self.numbers = iter(range(1_000_000))
        self.dropped_by_the_killed = 0
        self.actors = [self.actor() for _ in range(3)]

    def actor(self):
        actor = Actor(f"actor{next(self.numbers)}", self.directory)
        actor.channels = [actor.do("new") for _ in range(2)]
        return actor

    def step(self):
        steps = {
            self.bursts: 8,
            self.receive: 8,
            self.join: 4,
            self.leave: 2,
        }
        if not self.quiet:
            steps |= {self.kill: 1, self.stop: 1, self.flush: 0.3}
        self.random.choices(list(steps), list(steps.values()))[0]()
        # Each has a turn to read its mailbox: one that is full counts as one, whatever its members.
        for actor in self.actors:
            actor.do("receive", actor.channels[0], 0, 0)

    def some_channel(self):
        own = [channel for actor in self.actors for channel in actor.channels]
        return self.random.choice([*own, *NAMED * 2])

    def bursts(self, actors=None):
        """Several processes send at the same time, to channels and to groups."""
        told = [(actor, *self.tell_to_send(actor)) for actor in actors or self.some_actors()]
        for actor, sender, channels in told:
            accepted = actor.answer()
            for channel in channels:
                self.model.due[channel][sender] += accepted

    def some_actors(self):
        return self.random.sample(self.actors, self.random.randint(1, len(self.actors)))

    def tell_to_send(self, actor):
        """Return who the messages are from, and the channels that must get those accepted."""
        sizes = [self.random.choice(SIZES) for _ in range(self.random.randint(1, BURST))]
        first, actor.sent = actor.sent, actor.sent + len(sizes)
        if self.random.random() < 0.3:
            group = self.random.choice(GROUPS)
            actor.tell("group_send", group, first, sizes)
            return f"{actor.who} to {group}", set(self.model.members[group])
        channel = self.some_channel()
        actor.tell("send", channel, first, sizes)
        return actor.who, {channel}

    def receive(self):
        told = []
        for actor in self.some_actors():
            channel = self.random.choice([*actor.channels, *NAMED])
            if channel not in (channel for _, channel in told):  # whose messages would mix
                actor.tell("receive", channel, self.random.randint(1, 2 * BURST), 0.01)
                told.append((actor, channel))
        for actor, channel in told:
            self.model.received_from(channel, actor.answer())

    def join(self):
        channel, group = self.some_channel(), self.random.choice(GROUPS)
        # One that its owner and another process have added may be counted by both as full.
        owners = [actor for actor in self.actors if channel in actor.channels] * self.quiet
        self.random.choice(owners or self.actors).do("group_add", group, channel)
        self.model.members[group].add(channel)

    def leave(self):
        channel, group = self.some_channel(), self.random.choice(GROUPS)
        self.random.choice(self.actors).do("group_discard", group, channel)
        self.model.members[group].discard(channel)

    def kill(self):
        """A process dies in the middle of a burst of its own, with others at work."""
        victim, *others = self.random.sample(self.actors, 3)
        first = victim.sent
        sender, channels = self.tell_to_send(victim)
        numbers = range(first, victim.sent)
        for actor in others:
            self.bursts([actor]) if self.random.random() < 0.5 else None
        victim.process.send_signal(self.random.choice((signal.SIGKILL, signal.SIGTERM)))
        self.dropped_by_the_killed += victim.dropped
        victim.end()
        for channel in channels:
            self.model.perhaps[channel][sender] += numbers
        for channel in victim.channels:
            self.model.forget(channel)
        self.actors[self.actors.index(victim)] = self.actor()

    def stop(self):
        """A process is stopped while the others send, to it as well."""
        victim, *others = self.random.sample(self.actors, 3)
        victim.process.send_signal(signal.SIGSTOP)
        self.bursts(others)
        victim.process.send_signal(signal.SIGCONT)

    def flush(self):
        self.random.choice(self.actors).do("flush")
        self.model.flush()

    def finish(self):
        """Take all that is left: nothing may be missing that nobody counted as dropped."""
        for actor in self.actors:
            for channel in (*actor.channels, *NAMED):
                received = actor.do("receive", channel, 1_000_000, 0.3)
                self.model.received_from(channel, received)
        for channel, senders in self.model.due.items():
            for sender, due in senders.items():
                assert not due or " to " in sender, f"{channel}: {due} of {sender} lost"
                self.model.missed += len(due)
        dropped = sum(actor.dropped for actor in self.actors) + self.dropped_by_the_killed
        # What the killed had dropped may be more: nobody misses what was to their own channels.
        assert self.model.missed <= dropped
        assert self.model.missed == dropped or not self.quiet


def play(seed, directory, *, quiet):
    play = Play(seed, directory, quiet=quiet)
    try:
        for _ in range(STEPS):
            play.step()
        play.finish()
        return play.model
    finally:
        for actor in play.actors:
            actor.end()


@pytest.mark.timeout(DURATION_S + 60)
@pytest.mark.parametrize("quiet", [False, True], ids=["killed", "quiet"])
async def test_random_use_loses_and_doubles_nothing(directory, quiet):
    # Somebody who lives on, as a server does, keeps the named channels of the killed.
    witness = IPCChannelLayer(directory=directory, capacity=CAPACITY)
    listening = asyncio.create_task(witness.receive(await witness.new_channel()))
    end, seed, missed = time.monotonic() + DURATION_S, FIRST_SEED, 0
    while time.monotonic() < end:
        try:
            model = await asyncio.to_thread(play, seed, directory, quiet=quiet)
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}")
        assert model.received > STEPS
        missed += model.missed
        await witness.flush()
        seed += 1
    assert missed > 0  # or there was nothing to count
    listening.cancel()
    await witness.close()
    after = IPCChannelLayer(directory=directory)
    await after.group_send("room", {"type": "t"})
    assert os.listdir(f"{directory}/asgi/n") == []
    await after.close()
