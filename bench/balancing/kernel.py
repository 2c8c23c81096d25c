"""What the kernel counted of TCP while a cell ran: the same for every tool, whatever it prints.

The counters are those of this network namespace, so they hold what every process in it did. A
proxy's connections to the application are among them.
"""

from dataclasses import dataclass
from pathlib import Path

PROC_NET = Path("/proc/net")


@dataclass(frozen=True)
class Tcp:
    """Counts since boot, or by how much they grew.

    ``opened`` are connections made, ``overflows`` clients turned away because a listen queue was
    full (they ask again after 1 s, then 2, then 4), ``retransmitted`` segments sent again.
    """

    opened: int
    overflows: int
    retransmitted: int

    def since(self, earlier: "Tcp") -> "Tcp":
        return Tcp(
            self.opened - earlier.opened,
            self.overflows - earlier.overflows,
            self.retransmitted - earlier.retransmitted,
        )


def parsed(text: str) -> dict[str, dict[str, int]]:
    """Return the counters in the text of ``/proc/net/snmp`` or ``netstat``, by protocol. Pure.

    Each protocol has two lines: the names and the numbers.
    """
    found: dict[str, dict[str, int]] = {}
    lines = text.splitlines()
    for names, numbers in zip(lines[::2], lines[1::2], strict=True):
        protocol, _, rest = names.partition(": ")
        values = numbers.partition(": ")[2].split()
        found[protocol] = dict(zip(rest.split(), map(int, values), strict=True))
    return found


def tcp(proc_net: Path = PROC_NET) -> Tcp:
    """Return the counts at this moment."""
    segments = parsed((proc_net / "snmp").read_text())["Tcp"]
    extended = parsed((proc_net / "netstat").read_text())["TcpExt"]
    return Tcp(segments["ActiveOpens"], extended["ListenOverflows"], segments["RetransSegs"])
