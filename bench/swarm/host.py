"""What a container engine can change about a machine beyond its own directories, and undoing it.

Compared are the firewall's rules, everything below ``/proc/sys/net``, the network interfaces, and
the control groups of the engine's own name. Interfaces and settings are put back; a firewall rule
is somebody's decision, so a difference there is reported and left alone.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_SETTINGS = Path("/proc/sys/net")
_INTERFACES = Path("/sys/class/net")
# Each prints its rules; counters and comments would differ by themselves.
_FIREWALLS = (
    ("iptables-save",),
    ("iptables-legacy-save",),
    ("ip6tables-save",),
    ("ip6tables-legacy-save",),
    ("nft", "--stateless", "list", "ruleset"),
)
_MOVING = ("nf_conntrack_count", "tcp_fastopen_key")  # by themselves
_INTERFACE = re.compile(r"/(?:conf|neigh)/([^/]+)/")  # whose setting it is
_FOR_ALL = frozenset(("all", "default"))


@dataclass(frozen=True)
class Host:
    """A machine at one moment. ``firewall`` has the rules of each program that is installed."""

    firewall: Mapping[str, tuple[str, ...]]
    settings: Mapping[str, str]  # path below /proc/sys/net -> text
    interfaces: frozenset[str]


def read() -> Host:
    """Return the machine as it is now."""
    return Host(
        firewall={command[0]: _rules(command) for command in firewalls()},
        settings=_settings(),
        interfaces=frozenset(os.listdir(_INTERFACES)),  # noqa: PTH208 - names are all it takes
    )


def firewalls() -> list[tuple[str, ...]]:
    """Return the commands of this machine that print a firewall's rules."""
    return [command for command in _FIREWALLS if shutil.which(command[0])]


def _rules(command: tuple[str, ...]) -> tuple[str, ...]:
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return rules(printed)


def rules(printed: str) -> tuple[str, ...]:
    """Return the lines that decide something: no comment, no counter, no empty table.

    To look at a table makes it, so an empty one is none. A chain of the kernel's that lets
    everything pass is none either.
    """
    lines = (line.partition(" [")[0].strip() for line in printed.splitlines())
    nothing = ("#", "*", "COMMIT")
    return tuple(
        line
        for line in lines
        if line and not line.startswith(nothing) and not (line[0] == ":" and "ACCEPT" in line)
    )


def _settings() -> dict[str, str]:
    found = {}
    for folder, _, names in os.walk(_SETTINGS):
        for name in names:
            path = f"{folder}/{name}"
            if not path.endswith(_MOVING):
                # Some can only be written, and an interface may go while we look.
                with suppress(OSError):
                    found[path] = Path(path).read_text()
    return found


def differences(before: Host, after: Host) -> list[str]:
    """Return one sentence for everything that is not as it was. Pure."""
    found = [
        f"{program}: {'gone' if rule in rules else 'new'}: {rule}"
        for program, rules in before.firewall.items()
        for rule in _unshared(rules, after.firewall.get(program, ()))
    ]
    found += [
        f"{path} is {after.settings[path].strip()} and was {text.strip()}"
        for path, text in before.settings.items()
        if path in after.settings and after.settings[path] != text
    ]
    found += [
        f"{path} is new: {text.strip()}"
        for path, text in after.settings.items()
        if path not in before.settings and _was_there(path, before)
    ]
    found += [f"interface {name} is new" for name in sorted(after.interfaces - before.interfaces)]
    found += [f"interface {name} is gone" for name in sorted(before.interfaces - after.interfaces)]
    return found


def _was_there(path: str, before: Host) -> bool:
    """Say whether what the setting belongs to was there before: an interface may be new itself."""
    found = _INTERFACE.search(path)
    return found is None or found[1] in before.interfaces | _FOR_ALL


def _unshared(one: tuple[str, ...], other: tuple[str, ...]) -> list[str]:
    return [line for line in (*one, *other) if (line in one) != (line in other)]


def restore(before: Host, interfaces: frozenset[str]) -> None:
    """Put settings back, and remove those of ``interfaces`` that were not there before.

    Others that have come meanwhile are somebody else's.
    """
    for name in sorted((read().interfaces - before.interfaces) & interfaces):
        subprocess.run(("ip", "link", "delete", name), check=True, capture_output=True)
    now = _settings()
    for path, text in before.settings.items():
        if path in now and now[path] != text:
            Path(path).write_text(text)
