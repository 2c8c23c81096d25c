"""The images of compose.yaml: made of Debian's packages, without a registry.

So Redis and haproxy are the releases that a Debian machine's other variants run on.
``SWARM_IMAGES=registry`` takes those that compose.yaml and the Dockerfile name instead.

What was made once is kept as an archive in ``build/swarm/`` (``make clean`` removes it), for an
engine that is started for a test or a measurement begins with no image at all.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.environment import ROOT
from bench.errors import BadInput
from bench.swarm.engine import Engine, EngineFailed

ARCHIVES = ROOT / "build" / "swarm"
APPLICATION = "channels-test-project:measured"
DEBIAN = "channels-debian:measured"
# All that the three images need, of the release that has the oldest Python the project supports.
_RELEASE = "bookworm"
_PACKAGES = ("ca-certificates", "haproxy", "python3", "python3-venv", "redis-server")
_MIRROR = "http://deb.debian.org/debian"
_CERTIFICATES = Path("etc/ssl/certs/ca-certificates.crt")  # the same file on Debian and Ubuntu
_PULL_S = 60.0
_BUILD_S = 600.0


@dataclass(frozen=True)
class Images:
    """The names under which an engine has the images of compose.yaml."""

    application: str
    haproxy: str
    redis: str


MADE = Images(APPLICATION, DEBIAN, DEBIAN)


def require() -> None:
    """Raise ``BadInput`` where images must be made and the program for it is missing."""
    if (
        not _has_registry()
        and not debian_archive().exists()
        and shutil.which("debootstrap") is None
    ):
        raise BadInput("debootstrap is missing, which makes an image: apt-get install debootstrap")


def provide(engine: Engine) -> Images:
    """See to it that ``engine`` has all images, and return their names.

    They are loaded from the archive where nothing that goes into them has changed since. Raises
    ``BadInput`` where a program for it is missing, and ``EngineFailed``.
    """
    if _has_registry():
        return _pulled(engine)
    archive = ARCHIVES / f"images-{fingerprint()}.tar"
    if archive.exists():
        engine.docker("load", "--quiet", "--input", str(archive))
        return MADE
    _debian(engine)
    _build(engine, "--build-arg", f"BASE={DEBIAN}")
    _save(engine, archive, "images-*.tar", (APPLICATION, DEBIAN))
    return MADE


def _has_registry() -> bool:
    return os.environ.get("SWARM_IMAGES") == "registry"


def fingerprint() -> str:
    """Return a name for the content of all that goes into the images."""
    digest = hashlib.sha256(repr((_RELEASE, _PACKAGES)).encode())
    for path in sources():
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def sources() -> list[Path]:
    """Return the Dockerfile and the files that .dockerignore lets into an image, in order."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = [ROOT / line[1:] for line in lines if line.startswith("!")]
    found = [ROOT / "Dockerfile", ROOT / ".dockerignore", *_files(let_in)]
    return sorted(path for path in found if "__pycache__" not in path.parts)


def _files(paths: Iterable[Path]) -> list[Path]:
    return [
        file
        for path in paths
        for file in (path.rglob("*") if path.is_dir() else (path,))
        if file.is_file()
    ]


def _pulled(engine: Engine) -> Images:
    """Pull what compose.yaml and the Dockerfile name, and build the application's image."""
    compose = (ROOT / "compose.yaml").read_text()
    haproxy, redis = (_default(compose, name) for name in ("HAPROXY", "REDIS"))
    for image in (haproxy, redis):
        engine.docker("pull", "--quiet", image, timeout_s=_PULL_S)
    _build(engine)
    return Images(APPLICATION, haproxy, redis)


def _default(compose: str, name: str) -> str:
    match = re.search(rf"\$\{{SWARM_{name}_IMAGE:-([^}}]+)\}}", compose)
    assert match, f"compose.yaml has a default for SWARM_{name}_IMAGE"
    return match[1]


def debian_archive() -> Path:
    """Return where the archive of the small Debian is, or will be."""
    name = hashlib.sha256(repr((_RELEASE, _PACKAGES)).encode()).hexdigest()[:16]
    return ARCHIVES / f"debian-{name}.tar"


def _debian(engine: Engine) -> None:
    """Give the engine an image of a small Debian; made by debootstrap, once."""
    archive = debian_archive()
    if not archive.exists():
        require()
        ARCHIVES.mkdir(parents=True, exist_ok=True)
        _bootstrap(archive)
    engine.docker("import", str(archive), DEBIAN)


def _bootstrap(archive: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="channels-debian-") as name:
        root = Path(name) / "root"
        include = f"--include={','.join(_PACKAGES)}"
        _run("debootstrap", "--variant=minbase", include, _RELEASE, str(root), _MIRROR)
        # pip in the image shall trust whom pip trusts here: there may be a proxy in between.
        if (Path("/") / _CERTIFICATES).exists():
            shutil.copyfile(Path("/") / _CERTIFICATES, root / _CERTIFICATES)
        left_out = ("./proc/*", "./sys/*", "./var/cache/apt/*", "./var/lib/apt/lists/*")
        partial = archive.with_suffix(".partial")
        excluded = (f"--exclude={pattern}" for pattern in left_out)
        _run("tar", "--create", "--file", str(partial), *excluded, "--directory", str(root), ".")
        partial.rename(archive)


def _run(*command: str) -> None:
    done = subprocess.run(
        ("nice", "-n", "10", *command), capture_output=True, text=True, timeout=_BUILD_S
    )
    if done.returncode:
        raise EngineFailed(f"{command[0]}: {(done.stderr or done.stdout)[-2000:].strip()}")


def _build(engine: Engine, *options: str) -> None:
    """Build the application's image: with the host's network, for the engine has none."""
    given = [part for pair in _index().items() for part in ("--build-arg", "=".join(pair))]
    engine.docker(
        *("build", "--quiet", "--network", "host", "--tag", APPLICATION),
        *(*options, *given, "."),
        timeout_s=_BUILD_S,
    )


def _index() -> dict[str, str]:
    """Return how pip reaches its index here, as build arguments."""
    names = ("PIP_INDEX_URL", "PIP_CERT", "http_proxy", "https_proxy", "no_proxy")
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def _save(engine: Engine, archive: Path, others: str, names: tuple[str, ...]) -> None:
    """Save images as ``archive``, in the place of ``others``."""
    for old in ARCHIVES.glob(others):
        old.unlink()
    partial = archive.with_suffix(".partial")
    engine.docker("save", "--output", str(partial), *names)
    partial.rename(archive)
