"""compose.yaml, the Dockerfile and haproxy's configuration, against the code and each other."""

import ast
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from bench import ports, proxies
from bench.environment import ROOT, configuration
from bench.proxies import PROXIES
from bench.swarm import image, stack
from bench.variants import SWARM_VARIANTS

DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = (ROOT / "compose.yaml").read_text()
HAPROXY = ROOT / "swarm" / "haproxy.cfg"
DEFAULT = SWARM_VARIANTS["uvicorn-redis-swarm-x4"]


def test_compose_by_default_is_a_variant(compose):
    web = compose["services"]["web"]
    assert web["command"] == stack.command(DEFAULT)
    assert int(web["deploy"]["replicas"]) == DEFAULT.processes
    assert int(compose["services"]["worker"]["deploy"]["replicas"]) == DEFAULT.workers
    assert web["environment"]["DJANGO_SETTINGS_MODULE"] == DEFAULT.settings
    assert web["environment"]["TESTPROJECT_MIDDLEWARE"] == DEFAULT.middleware
    assert web["environment"]["TESTPROJECT_HANDLER"] == DEFAULT.handler
    assert web["environment"]["TESTPROJECT_DELIVERY"] == DEFAULT.delivery


def test_compose_publishes_one_port_and_it_is_the_variants(compose):
    services = compose["services"].items()
    published = {name: service["ports"] for name, service in services if "ports" in service}
    (port,) = published.pop("haproxy")
    assert published == {}
    assert int(port["published"]) == ports.SWARM == ports.front(DEFAULT)


def test_compose_takes_every_variable_that_a_variant_sets():
    variables = set(stack.variables(DEFAULT, image.MADE))
    taken = set(re.findall(r"\$\{(\w+)", COMPOSE))
    # The one that is left is the site's own name.
    assert taken == variables | {"DJANGO_ALLOWED_HOSTS"}


def test_compose_needs_no_kernel_that_spreads_connections(compose):
    modes = {one["deploy"]["endpoint_mode"] for one in compose["services"].values()}
    assert modes == {"dnsrr"}
    assert compose["services"]["haproxy"]["ports"][0]["mode"] == "host"


def test_compose_can_be_published_by_the_routing_mesh(compose_with):
    services = compose_with(SWARM_PORT_MODE="ingress", SWARM_ENDPOINT_MODE="vip")["services"]
    modes = {name: service["deploy"]["endpoint_mode"] for name, service in services.items()}
    # haproxy alone: it still has to see each container of the application.
    assert modes == {"haproxy": "vip", "web": "dnsrr", "worker": "dnsrr", "redis": "dnsrr"}
    assert services["haproxy"]["ports"][0]["mode"] == "ingress"


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_container_is_asked_for_its_health_as_haproxy_asks_it(compose, status, code):
    class Application(BaseHTTPRequestHandler):
        def do_GET(self):
            healthy = (self.path, self.headers["Host"]) == ("/healthz", f"localhost:{port}")
            self.send_response(status if healthy else 404)
            self.end_headers()

        def log_message(self, *args):
            pass

    kind, _, *command = compose["services"]["web"]["healthcheck"]["test"]
    assert kind == "CMD"
    with ThreadingHTTPServer(("127.0.0.1", 0), Application) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        port = server.server_port
        here = (part.replace(str(ports.APPLICATION), str(port)) for part in command)
        asked = subprocess.run((sys.executable, *here), capture_output=True, timeout=20)
        server.shutdown()
    assert (asked.returncode, asked.stderr) == (code, b"")


def test_checks_of_health_are_what_a_stack_may_have(compose):
    """Of version 3.8: docker stack deploy refuses a key that it does not know."""
    check = compose["services"]["web"]["healthcheck"]
    assert check.keys() == {"test", "interval", "timeout", "retries", "start_period"}


def test_services_run_without_root_on_files_they_cannot_write(compose):
    user = re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.MULTILINE)[-1]
    for name, service in compose["services"].items():
        assert int(service.get("user", user).partition(":")[0]) > 0, name
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name


def test_images_are_of_one_version(compose):
    base = re.search(r"^ARG BASE=(\S+)$", DOCKERFILE, re.MULTILINE)[1]
    images = [compose["services"][name]["image"] for name in ("haproxy", "redis")]
    for one in (base, *images):
        assert re.search(r":\d+\.\d+\.\d+", one), f"{one} is another one tomorrow"


def test_image_has_the_pins_of_what_is_tested_and_not_of_what_measures():
    script = re.search(r"RUN (sed '[^']+' requirements.txt) > ", DOCKERFILE)[1]
    served = subprocess.run(script, shell=True, cwd=ROOT, capture_output=True, text=True).stdout
    pinned, taken = pins((ROOT / "requirements.txt").read_text()), pins(served)
    assert taken < pinned
    names = {one.partition("==")[0].lower() for one in taken}
    assert {"django", "channels", "channels_redis", "gunicorn", "uvicorn", "daphne"} <= names
    assert not {"locust", "pytest", "ruff"} & names
    assert "-c constraints.txt" in served


def test_image_has_every_package_of_the_project_that_it_imports():
    let_in = {line[1:] for line in dockerignored() if line.startswith("!")}
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    modules = [path for name in let_in & packages for path in (ROOT / name).rglob("*.py")]
    imported = {name for path in modules for name in imports(path)}
    assert imported & packages <= let_in
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert let_in == {name for names in copied for name in names.split()}


def test_image_is_made_of_nothing_that_is_not_let_in():
    assert next(line for line in dockerignored() if line) == "*"


def pins(requirements):
    return set(re.findall(r"^[\w.-]+==\S+", requirements, re.MULTILINE))


def dockerignored():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    return [line for line in lines if not line.startswith("#")]


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_images_fingerprint_is_of_what_is_let_in():
    names = {str(path.relative_to(ROOT)) for path in image.sources()}
    assert {"Dockerfile", "manage.py", "testproject/urls.py", "requirements.txt"} <= names
    assert not any(name.startswith(("bench/", "tests/", ".venv")) for name in names)


def test_haproxy_finds_its_configuration_good():
    assert shutil.which("haproxy"), "haproxy is missing: apt-get install haproxy"
    command = ("haproxy", "-c", "-q", "-f", str(HAPROXY))
    checked = subprocess.run(command, capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_haproxy_asks_for_the_port_of_the_application(compose):
    target = compose["services"]["haproxy"]["ports"][0]["target"]
    assert f"bind :{target}" in HAPROXY.read_text()
    places, port = re.search(r"server-template web (\d+) web:(\d+)", HAPROXY.read_text()).groups()
    assert int(port) == ports.APPLICATION
    assert int(places) >= max(variant.processes for variant in SWARM_VARIANTS.values())


def test_haproxy_guards_the_application_as_it_does_without_containers():
    lone = proxies.rendered(PROXIES["haproxy"], 9000, (8010, 8011))
    rules = re.findall(r"^ +(http-request .*|option http-restrict.*)$", lone, re.MULTILINE)
    shared = [rule for rule in rules if "X-Forwarded-Proto" not in rule]
    assert len(shared) > 6
    configuration = HAPROXY.read_text()
    assert [rule for rule in shared if f"    {rule}\n" not in configuration] == []
    assert "http-request set-header X-Forwarded-Proto http\n" in configuration


@pytest.mark.parametrize("variant", SWARM_VARIANTS.values(), ids=lambda variant: variant.name)
def test_command_of_a_container_is_filled_in_and_listens_for_the_others(variant):
    command = stack.command(variant)
    assert command.startswith(f"{variant.server} {variant.entry_point} ")
    assert "%(" not in command
    assert "0.0.0.0" in command
    assert str(ports.APPLICATION) in command
    assert "127.0.0.1" not in command


def test_configuration_to_take_home_is_the_variant():
    variant = SWARM_VARIANTS["gunicorn-swarm-x8"]
    text = configuration(variant)["compose.yaml"]
    shown = yaml.safe_load(text)["services"]
    assert shown["web"]["command"] == stack.command(variant)
    assert shown["web"]["deploy"]["replicas"] == 8
    assert shown["redis"]["deploy"]["replicas"] == 0
    # What is left is for whoever deploys it: a secret key, a name, the images.
    assert not re.findall(r"\$\{SWARM_(?!\w*IMAGE)", text)
    assert "${DJANGO_SECRET_KEY:?" in text
