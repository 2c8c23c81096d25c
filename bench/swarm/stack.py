"""A variant as a stack: what compose.yaml takes from the environment, and the stack's life."""

import configparser
import re
import secrets
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from bench import ports
from bench.contract.replies import get, told
from bench.environment import HOST, ROOT, environment
from bench.readiness import mismatches
from bench.swarm.engine import Engine, EngineFailed, until
from bench.swarm.image import MADE, Images
from bench.variants import Variant

NAME = "channels"
WEB = f"{NAME}_web"
SERVICES = ("haproxy", "web", "worker", "redis")
_STOP_S = 40.0
_PAUSE_S = 0.2

# In the stack's own network only haproxy can reach the servers, and its address is not known
# before it runs. It overwrites what clients claim.
_TRUSTED = {
    "gunicorn": "--forwarded-allow-ips *",
    "uvicorn": "--proxy-headers --forwarded-allow-ips *",
    "daphne": "--proxy-headers",
}


def command(variant: Variant) -> str:
    """Return the command of one application container: the server's own, from supervisor/."""
    alone = replace(variant, proxy="direct", processes=1)
    values = environment(alone, redis_url="redis://redis") | {
        "DEPLOY_HOST": "0.0.0.0",  # noqa: S104 - the stack's network
        "DEPLOY_PROXY_OPTIONS": _TRUSTED[variant.server],
    }
    text = re.sub(r"%\(ENV_(\w+)\)s", lambda match: values[match[1]], _program(variant.server))
    listening = text.replace("%(process_num)d", str(ports.APPLICATION))
    return " ".join(listening.split()).removeprefix("setpriv --pdeathsig TERM ")


def _program(server: str) -> str:
    """Return the command in a server's program file, with its placeholders."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(ROOT / "supervisor" / "programs" / f"{server}.conf")
    return next(parser[name]["command"] for name in parser.sections() if "program:" in name)


def variables(variant: Variant, images: Images) -> dict[str, str]:
    """Return what compose.yaml takes from the environment to be ``variant``.

    Ports are published without the routing mesh, which not every kernel can do.
    """
    needs_layer = variant.layer != "none"
    return {
        "SWARM_IMAGE": images.application,
        "SWARM_HAPROXY_IMAGE": images.haproxy,
        "SWARM_REDIS_IMAGE": images.redis,
        "SWARM_COMMAND": command(variant),
        "SWARM_REPLICAS": str(variant.processes),
        "SWARM_WORKERS": str(variant.workers),
        "SWARM_REDIS": str(int(needs_layer)),
        "SWARM_PORT": str(ports.SWARM),
        "SWARM_PORT_MODE": "host",
        "SWARM_ENDPOINT_MODE": "dnsrr",
        "DJANGO_SETTINGS_MODULE": variant.settings,
        "DJANGO_SECRET_KEY": secrets.token_urlsafe(50),
        "TESTPROJECT_MIDDLEWARE": variant.middleware,
        "TESTPROJECT_HANDLER": variant.handler,
        "TESTPROJECT_DELIVERY": variant.delivery,
    }


def configuration(variant: Variant) -> dict[str, str]:
    """Return file name -> text: compose.yaml as ``variant``, and what it reads.

    The images and the secret key are left for whoever deploys it to give.
    """
    values = variables(variant, MADE)
    left = {"DJANGO_SECRET_KEY", "SWARM_IMAGE", "SWARM_HAPROXY_IMAGE", "SWARM_REDIS_IMAGE"}

    def value(match: re.Match[str]) -> str:
        name = match[1]
        return values[name] if name in values.keys() - left else match[0]

    compose = re.sub(r"\$\{(\w+):-[^}]*\}", value, (ROOT / "compose.yaml").read_text())
    haproxy = "swarm/haproxy.cfg"
    return {"compose.yaml": compose, haproxy: (ROOT / haproxy).read_text()}


@dataclass(frozen=True)
class Stack:
    """A stack that runs in ``engine``."""

    engine: Engine
    variant: Variant

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{ports.SWARM}"

    def scale(self, replicas: int) -> None:
        """Ask for ``replicas`` application containers; return at once, as docker does."""
        self.engine.docker("service", "scale", "--detach", f"{WEB}={replicas}")

    def wait(
        self, replicas: int, limit_s: float, known: Collection[str] = ()
    ) -> tuple[dict[str, Any], frozenset[str]]:
        """Return what the application says it is, and its hosts, when all of it serves.

        ``known`` are hosts that answered before: under load haproxy gives new requests to new
        containers, which have fewer connections, so that the others are not heard of. Raises
        ``EngineFailed`` after ``limit_s`` seconds, or at once where another application answers.
        """
        end_s = time.monotonic() + limit_s
        self._wait_for_containers(replicas, limit_s)
        hosts = set(known)
        while time.monotonic() < end_s:
            answers = self._answers(4 * replicas)
            hosts |= {answer["host"] for answer in answers}
            if len(hosts) >= replicas and answers and self._relays():
                return answers[0], frozenset(hosts)
            time.sleep(_PAUSE_S)
        raise EngineFailed(f"{len(hosts)} of {replicas} containers answer", self.log_tail())

    def _wait_for_containers(self, replicas: int, limit_s: float) -> None:
        until(
            lambda: self.containers() == replicas,
            limit_s,
            lambda: (f"{self.containers()} of {replicas} containers run", self.log_tail()),
        )

    def containers(self) -> int:
        """Return how many application containers run."""
        label = f"label=com.docker.swarm.service.name={WEB}"
        return len(self.engine.docker("ps", "--quiet", "--filter", label).split())

    def _answers(self, count: int) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(count) as clients:
            found = list(clients.map(lambda _: self._identity(), range(count)))
        return [one for one in found if one is not None]

    def _identity(self) -> dict[str, Any] | None:
        """Return what one container says it is; None where none answered."""
        try:
            reply = get(self.base_url, "/healthz")
        except OSError:
            return None
        if reply.status != 200:
            return None
        answer = told(reply)
        differences = mismatches(self.variant, answer)
        if differences:
            raise EngineFailed("the stack is not the variant: " + ", ".join(differences))
        return answer

    def _relays(self) -> bool:
        return not self.variant.has_worker or get(self.base_url, "/relay/").status == 200

    def log_tail(self, lines: int = 40) -> str:
        """Return the last lines of every service's log, and of the engine's."""
        logs = [self._log(name, lines) for name in SERVICES]
        return "\n".join((*logs, f"==> engine <==\n{self.engine.log_tail(lines)}"))

    def _log(self, service: str, lines: int) -> str:
        try:
            text = self.engine.docker(
                *("service", "logs", "--raw", "--tail", str(lines), f"{NAME}_{service}")
            )
        except EngineFailed as failure:
            text = str(failure)
        return f"==> {service} <==\n{text.strip()}"


def deploy(engine: Engine, variant: Variant, images: Images) -> Stack:
    """Deploy compose.yaml as ``variant``; return at once, as docker does."""
    options = ("--compose-file", "compose.yaml", "--resolve-image", "never")
    engine.docker("stack", "deploy", *options, NAME, variables=variables(variant, images))
    return Stack(engine, variant)


def remove(engine: Engine) -> None:
    """Remove the stack and its network, and leave the Swarm. Raises ``EngineFailed``."""
    engine.docker("stack", "rm", NAME)
    until(
        lambda: not engine.docker("ps", "--quiet").split(),
        _STOP_S,
        lambda: ("containers outlive the stack", engine.docker("ps")),
    )
    engine.docker("swarm", "leave", "--force")
