"""What is noticed of a machine that is not as it was."""

from dataclasses import replace

import pytest

from bench.swarm import host

NET = "/proc/sys/net"
BEFORE = host.Host(
    firewall={"iptables-save": ("-A INPUT -j DROP",)},
    settings={f"{NET}/ipv4/ip_forward": "0\n", f"{NET}/ipv4/conf/eth0/forwarding": "0\n"},
    interfaces=frozenset(("lo", "eth0")),
)


def test_host_that_is_as_it_was_has_no_differences():
    assert host.differences(BEFORE, BEFORE) == []


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        (
            replace(BEFORE, firewall={"iptables-save": ("-A INPUT -j DROP", "-A FORWARD -j DROP")}),
            "iptables-save: new: -A FORWARD -j DROP",
        ),
        (replace(BEFORE, firewall={}), "iptables-save: gone: -A INPUT -j DROP"),
        (
            replace(BEFORE, settings={**BEFORE.settings, f"{NET}/ipv4/ip_forward": "1\n"}),
            "/proc/sys/net/ipv4/ip_forward is 1 and was 0",
        ),
        (
            replace(
                BEFORE, settings={**BEFORE.settings, f"{NET}/bridge/bridge-nf-call-iptables": "1\n"}
            ),
            "/proc/sys/net/bridge/bridge-nf-call-iptables is new: 1",
        ),
        (
            replace(
                BEFORE, settings={**BEFORE.settings, f"{NET}/ipv4/conf/eth0/forwarding": "1\n"}
            ),
            "/proc/sys/net/ipv4/conf/eth0/forwarding is 1 and was 0",
        ),
        (
            replace(BEFORE, settings={**BEFORE.settings, f"{NET}/ipv4/conf/all/new": "1\n"}),
            "/proc/sys/net/ipv4/conf/all/new is new: 1",
        ),
        (replace(BEFORE, interfaces=BEFORE.interfaces | {"br0"}), "interface br0 is new"),
        (replace(BEFORE, interfaces=frozenset(("lo",))), "interface eth0 is gone"),
    ],
)
def test_difference_is_said_with_what_it_was(after, sentence):
    assert host.differences(BEFORE, after) == [sentence]


def test_settings_of_an_interface_that_is_new_are_told_with_it():
    settings = {**BEFORE.settings, f"{NET}/ipv4/conf/br0/forwarding": "1\n"}
    after = replace(BEFORE, settings=settings, interfaces=BEFORE.interfaces | {"br0"})
    assert host.differences(BEFORE, after) == ["interface br0 is new"]


def test_firewall_without_rules_is_the_same_whether_its_tables_were_looked_at_or_not():
    looked_at = "# Generated\n*nat\n:PREROUTING ACCEPT [12:345]\nCOMMIT\n"
    assert host.rules(looked_at) == host.rules("") == ()


def test_firewall_rule_is_the_same_whatever_it_has_counted():
    one, other = (
        "*filter\n:INPUT DROP [1:2]\n-A INPUT -j LOG\nCOMMIT\n",
        "*filter\n:INPUT DROP [3:4]\n-A INPUT -j LOG\n",
    )
    assert host.rules(one) == host.rules(other) == (":INPUT DROP", "-A INPUT -j LOG")


def test_settings_that_an_engine_changes_are_among_those_read():
    settings = host.read().settings
    assert "/proc/sys/net/ipv4/ip_forward" in settings
    assert "/proc/sys/net/ipv4/neigh/default/gc_thresh1" in settings
    assert "/proc/sys/net/ipv4/conf/lo/forwarding" in settings


def test_settings_do_not_change_by_themselves():
    before = host.read()
    assert host.differences(before, host.read()) == []
