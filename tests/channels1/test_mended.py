"""What the proof of docs/2016-stack.md changes in the software of 2016, and that it is all."""

import json
import subprocess

import pytest

from bench.environment import ROOT

PROJECT = ROOT / "channels1"
LAYERS = {
    "published": "IPCChannelLayer(prefix=PREFIX)",
    "none": "MendedChannelLayer([], prefix=PREFIX)",
    "channels": "MendedChannelLayer(['channels'], prefix=PREFIX)",
    "semaphore": "MendedChannelLayer(['semaphore'], prefix=PREFIX)",
    "both": "MendedChannelLayer(['semaphore', 'channels'], prefix=PREFIX)",
}
IMPORTS = """
import json, os, threading, time
import collapse
from asgi_ipc import IPCChannelLayer
from testproject.mended import MendedChannelLayer
from testproject.segments import remove
PREFIX = collapse.PREFIX
"""
# Everything that a layer does for Daphne and a worker, as far as it can be seen from outside.
USED = """
def full(layer):
    try:
        layer.send("full", {"number": 10})
    except layer.ChannelFull:
        return True

def used(layer):
    layer.expiry = -1
    layer.send("late", {"late": True})
    layer.expiry = 60
    for number in range(layer.capacity):
        layer.send("full", {"number": number})
    layer.group_add("group", "member")
    layer.send_group("group", {"sent": "to the group"})
    return {
        "full": full(layer),
        "in order": [layer.receive_many(["full"]) for _ in range(layer.capacity)],
        "nothing": layer.receive_many(["full", "late", "never"]),
        "group": layer.receive_many(["member"]),
        "new": layer.new_channel("http.response!").startswith("http.response!"),
        "left": sorted(layer.channel_store.keys()),
        "mended": getattr(layer, "mended", None),
    }
"""
LOST = """
collapse.SENDS = 2000
def lost(make, kind=collapse.Process):
    collapse.Process, collapse.IPCChannelLayer = kind, lambda prefix: make()
    try:
        return collapse.lost_by_two_processes()
    finally:
        remove(prefix=PREFIX)
"""


@pytest.fixture(scope="module")
def ask(python017):
    def asked(code: str):
        done = subprocess.run(
            [python017, "-B", "-c", IMPORTS + code],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return asked


@pytest.fixture(scope="module")
def used(ask):
    """What each layer says when it is used, by its name in ``LAYERS``."""
    makers = ", ".join(f"{name!r}: lambda: {made}" for name, made in LAYERS.items())
    return ask(f"""{USED}
found = {{}}
try:
    for name, make in {{{makers}}}.items():
        remove(prefix=PREFIX)
        found[name] = used(make())
finally:
    remove(prefix=PREFIX)
print(json.dumps(found))
""")


@pytest.mark.parametrize("name", LAYERS)
def test_mended_layer_does_what_the_published_one_does(used, name):
    same = {key: value for key, value in used["published"].items() if key not in ("left", "mended")}
    assert same["full"] is True
    assert [message for _, message in same["in order"]] == [{"number": n} for n in range(10)]
    assert {key: used[name][key] for key in same} == same


@pytest.mark.parametrize("name", LAYERS)
def test_emptied_channel_is_gone_where_channels_are_mended_and_nowhere_else(used, name):
    emptied = [] if name in ("channels", "both") else ["full", "late", "member"]
    assert used[name]["left"] == emptied


def test_layer_says_what_is_mended(used):
    told = {name: one["mended"] for name, one in used.items()}
    assert told == {
        "published": None,
        "none": [],
        "channels": ["channels"],
        "semaphore": ["semaphore"],
        "both": ["channels", "semaphore"],
    }


@pytest.mark.parametrize("name", LAYERS)
def test_two_processes_lose_messages_unless_the_semaphore_is_held(ask, name):
    lost = ask(f"{LOST}\nprint(lost(lambda: {LAYERS[name]}))")
    assert (lost == 0) is (name in ("semaphore", "both"))


def test_threads_of_a_process_may_share_a_layer_that_holds_the_semaphore(ask):
    shared = "(lambda layer: lambda: layer)(MendedChannelLayer(['semaphore'], prefix=PREFIX))"
    assert ask(f"{LOST}\nprint(lost({shared}, threading.Thread))") == 0


def test_semaphore_that_nobody_gives_back_is_an_error_and_empties_nothing(ask):
    told = ask("""
import posix_ipc
try:
    layer = MendedChannelLayer(["semaphore"], prefix=PREFIX)
    layer.send("one", {"number": 1})
    other = IPCChannelLayer(prefix=PREFIX).channel_store.semaphore
    other.acquire()
    try:
        layer.receive_many(["one"])
    except posix_ipc.BusyError as error:
        found = [type(error).__name__]
    other.release()
    print(json.dumps([*found, *layer.receive_many(["one"])]))
finally:
    remove(prefix=PREFIX)
""")
    assert told == ["BusyError", "one", {"number": 1}]


def test_unknown_mend_is_refused(ask):
    told = ask("""
try:
    MendedChannelLayer(["semaphor"], prefix=PREFIX)
except ValueError as error:
    print(json.dumps(str(error)))
""")
    assert told == "mended is ['semaphor']: there are ('channels', 'semaphore')"


@pytest.mark.parametrize(("asked", "sleep_s"), [("", 0.05), ("sleep_for(0.001)", 0.001)])
def test_only_the_sleep_after_an_empty_look_changes(python, asked, sleep_s):
    """In the order of the looks: nothing, a message, an error; and a delay of somebody else."""
    done = subprocess.run(
        [
            *(python, "-B", "-c"),
            f"""
import json, logging
from daphne import server
from testproject.impatient import sleep_for

logging.disable(logging.CRITICAL)

class Reactor:
    running = True
    delays = []
    def callLater(self, delay, call):
        self.delays.append(delay)

class Layer:
    looks = iter([(None, None), ("daphne.response.a!b", {{}}), None])
    def receive(self, channels, block):
        return next(self.looks)[:2]

class Factory:
    def dispatch_reply(self, channel, message):
        pass

server.reactor = Reactor()
{asked}
daphne = server.Server(Layer(), endpoints=["tcp:port=0"])
daphne.send_channel, daphne.factory = "daphne.response.a!", Factory()
for _ in range(3):
    daphne.backend_reader_sync()
server.reactor.callLater(0.05, daphne.timeout_checker)
print(json.dumps(Reactor.delays))
""",
        ],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [sleep_s, 0, 5.0, 0.05]
