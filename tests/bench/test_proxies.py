"""Which ports a variant has, what its proxy is given, and what its server believes of it."""

import re

import pytest
from click.testing import CliRunner

from bench import environment, ports, proxies
from bench.cli import main
from bench.environment import ROOT
from bench.variants import PROXIES, VARIANTS, Variant, resolve

FRONTED = [one for one in VARIANTS.values() if one.proxy in proxies.PROXIES]
each_front = pytest.mark.parametrize("variant", FRONTED, ids=lambda variant: variant.name)


@pytest.mark.parametrize(
    ("name", "front", "application"),
    [
        ("daphne-ipc", 8000, (8000,)),
        ("gunicorn", 9001, (9001,)),
        ("gunicorn-x8", 8000, (8000,)),
        ("gunicorn-nginx-x4", 8008, (8000,)),
        ("daphne-ipc-nginx-x4-ports", 8008, (8010, 8011, 8012, 8013)),
        ("daphne-redis-haproxy-x4-ports", 9000, (8010, 8011, 8012, 8013)),
        ("gunicorn-apache-x4-ports", 8081, (8010, 8011, 8012, 8013)),
        ("channels1-gunicorn", 8000, (8000,)),
    ],
)
def test_ports_are_those_of_the_studies(name, front, application):
    assert ports.front(resolve(name)) == front
    assert ports.application(resolve(name)) == application


@each_front
def test_proxy_knows_the_variants_ports_and_no_others(variant):
    (text,) = proxies.files(variant).values()
    code = re.sub(r"(?m)^\s*#.*$", "", text)
    known = {int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", code)}
    assert known == {ports.front(variant), *ports.application(variant)}


def test_variant_without_a_proxy_has_no_file_of_one():
    assert proxies.files(resolve("daphne-ipc")) == {}


@each_front
def test_program_of_the_proxy_is_started_after_the_servers(variant):
    files = environment.environment(variant)["DEPLOY_FILES_FROM_BENCH_ENV"].split()
    assert files[-1] == f"supervisor/programs/{variant.proxy}.conf"
    assert "\npriority = 40\n" in (ROOT / files[-1]).read_text()


@each_front
def test_server_believes_its_proxy(variant):
    text = environment.configuration(variant)["supervisord.conf"]
    wanted = {
        "daphne": "    --proxy-headers\n",
        "uvicorn": "    --proxy-headers --forwarded-allow-ips 127.0.0.1\n",
        "gunicorn": "    --forwarded-allow-ips 127.0.0.1\n",
    }
    assert wanted[variant.server] in text


@pytest.mark.parametrize(
    "variant", [one for one in VARIANTS.values() if one.proxy == "direct"], ids=lambda one: one.name
)
def test_server_that_clients_connect_to_believes_nobody(variant):
    text = environment.configuration(variant)["supervisord.conf"]
    assert " --proxy-headers" not in text
    assert "--forwarded-allow-ips 127" not in text


@pytest.mark.parametrize(
    ("factors", "reason"),
    [
        ({"proxy": "squid"}, "unknown proxy 'squid'"),
        ({"sharing": "pots"}, "did you mean ports"),
        ({"sharing": "ports", "processes": 4}, "several ports need several processes and a proxy"),
        (
            {"sharing": "ports", "proxy": "nginx"},
            "several ports need several processes and a proxy",
        ),
        ({"server": "granian", "proxy": "nginx"}, "granian cannot take a client's address"),
        ({"stack": "channels1", "proxy": "nginx"}, "of 2016 there are the three setups"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(map(str, value.values())),
)
def test_front_that_cannot_work_is_refused(factors, reason):
    with pytest.raises(ValueError, match=reason):
        Variant(**{"server": "daphne", "layer": "ipc"} | factors)


def test_table_has_each_front_over_each_way_to_share():
    found = {(one.proxy, one.sharing) for one in FRONTED}
    assert found == {(name, way) for name in proxies.PROXIES for way in ("socket", "ports")}
    assert set(proxies.PROXIES) < set(PROXIES)


def test_show_prints_what_the_proxy_reads():
    shown = CliRunner().invoke(main, ("show", "daphne-ipc-nginx-x4-ports")).output
    assert "[program:nginx]" in shown
    assert "# ==> run/nginx.conf <==" in shown
    assert "server 127.0.0.1:8013 max_fails=1" in shown


def test_show_writes_every_file_below_a_folder(tmp_path):
    names = CliRunner().invoke(main, ("show", "gunicorn-apache-x4", "--into", str(tmp_path))).output
    assert [str(tmp_path / one) for one in ("supervisord.conf", "run/apache.conf")] == names.split()
    assert "BalancerMember http://127.0.0.1:8000" in (tmp_path / "run/apache.conf").read_text()


def test_show_replaces_no_file(tmp_path):
    mine = tmp_path / "run" / "apache.conf"
    mine.parent.mkdir()
    mine.write_text("mine")
    done = CliRunner().invoke(main, ("show", "gunicorn-apache-x4", "--into", str(tmp_path)))
    assert done.exit_code == 2
    assert f"{mine} is there already" in done.output
    assert (mine.read_text(), list(tmp_path.iterdir())) == ("mine", [mine.parent])
