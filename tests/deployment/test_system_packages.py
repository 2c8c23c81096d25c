"""bin/install-system-packages, with a package manager that only writes down what it was told."""

import shutil
import subprocess

import pytest

from bench.environment import ROOT

SCRIPT = ROOT / "bin" / "install-system-packages"
TOOLS = ("sh", "grep", "cat", "tr", "env", "tee", "chmod", "rm", "mv")
PROXIES = ("nginx", "haproxy", "apache2")
PROGRAMS = (
    "redis-server",
    *PROXIES,
    "chromium",
    "wrk",
    "ab",
    "hey",
    "ss",
    "node",
    "go",
    "g++",
    "python3",
)


class Machine:
    """A machine whose PATH is one folder of programs."""

    def __init__(self, folder):
        self.folder = folder
        self.policy = folder / "policy-rc.d"
        self.log = folder / "log"
        self.environ = {}
        for tool in TOOLS:
            (folder / tool).symlink_to(shutil.which(tool))
        for program in PROGRAMS:
            self.add(program)

    def add(self, name, script="exit 0"):
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def remove(self, name):
        (self.folder / name).unlink()

    def install(self):
        environ = {"PATH": str(self.folder), "POLICY_RC_D": str(self.policy)} | self.environ
        return subprocess.run(
            [str(SCRIPT)], env=environ, capture_output=True, text=True, timeout=20
        )


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def root(machine):
    """The same machine as its root, with an apt-get that notes whether services may start."""
    machine.add("id", "echo 0")
    machine.add(
        "apt-get", f'echo "$@; policy: $(cat {machine.policy} | tr "\\n" " ")" >> {machine.log}'
    )
    return machine


def test_machine_that_has_everything_is_left_alone_without_a_word(machine):
    result = machine.install()
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_missing_packages_are_named_in_one_line_where_nobody_may_install(machine):
    machine.add("id", "echo 1000")
    machine.add("apt-get")
    machine.add("sudo", "exit 1")
    machine.remove("redis-server")
    machine.remove("ab")
    result = machine.install()
    assert result.returncode == 0
    assert result.stderr.splitlines() == [
        "not installed, and some things need them: apt-get install redis-server apache2-utils"
    ]


def test_missing_part_of_python_is_a_package_too(machine):
    machine.add("python3", "exit 1")
    assert machine.install().stderr.endswith("apt-get install python3-venv python3-dev\n")


def test_headers_of_python_are_looked_for_by_themselves(machine):
    machine.add("python3", 'case "$*" in *Python.h*) exit 1 ;; esac')
    assert machine.install().stderr.endswith("apt-get install python3-dev\n")


def test_python_that_make_chose_is_the_one_that_is_looked_at(machine):
    machine.add("python3", "exit 1")
    machine.add("chosen")
    machine.environ = {"PYTHON": "chosen", "PYTHON311": "chosen"}
    assert machine.install().stderr == ""


def test_headers_are_of_no_use_without_the_python_they_belong_to(machine):
    machine.environ = {"PYTHON311": "python3.11"}
    assert machine.install().stderr == ""


@pytest.mark.parametrize(("program", "package"), [("node", "nodejs"), ("go", "golang-go")])
def test_toolchain_is_installed_only_where_the_machine_has_none_of_its_own(
    machine, program, package
):
    assert package not in machine.install().stderr
    machine.remove(program)
    assert machine.install().stderr.endswith(f"apt-get install {package}\n")


def test_missing_packages_are_installed_while_no_service_may_start(root):
    root.remove("redis-server")
    result = root.install()
    assert result.returncode == 0, result.stderr
    install = root.log.read_text().splitlines()[-1]
    assert install.startswith("install -qq --no-install-recommends redis-server; ")
    assert install.endswith("policy: #!/bin/sh exit 101 ")
    assert not root.policy.exists()


@pytest.mark.parametrize("code", [0, 100])
def test_policy_that_was_there_comes_back_even_if_the_installation_fails(root, code):
    root.remove("wrk")
    root.policy.write_text("mine")
    root.add("apt-get", f"exit {code}")
    assert root.install().returncode == code
    assert root.policy.read_text() == "mine"


def test_make_tools_without_npm_says_how_to_get_it(tmp_path):
    """Debian's nodejs does not bring it, and nothing else here needs it."""
    for name in ("make", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name))
    told = subprocess.run(
        ("make", "--always-make", "tools"),
        cwd=ROOT,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert told.returncode != 0
    assert told.stderr.splitlines()[0] == "npm is missing: apt-get install npm"
