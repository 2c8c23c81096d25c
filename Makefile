# `make bench` and `make test` set up all they need.

VENV    ?= .venv
# The distribution's Python, where it is new enough: it is compiled with profile-guided optimisation,
# which others often are not, and the servers' figures are its figures (bench/interpreter.py).
ifndef PYTHON
PYTHON := $(shell /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo /usr/bin/python3 || echo python3)
endif
BIN      = $(VENV)/bin
PYTEST_ARGS ?=
PYTHON311 ?= $(firstword $(wildcard /usr/bin/python3.11) python3.11)
PYTHON36  ?= python3.6

.PHONY: bench bench-full test environments coverage swarm-test front-page lint system env tools baselines-env channels1-env channels017-env clean

export PYTHON PYTHON311

bench: env
	$(BIN)/python -m bench run --quick

bench-full: env
	$(BIN)/python -m bench run --full

test: environments
	$(BIN)/python -m pytest $(PYTEST_ARGS)

# All that the tests need: make -j3 environments.
environments: env baselines-env $(if $(shell command -v $(PYTHON311)),channels1-env) \
	$(if $(shell command -v npm),tools)

# In containers, in a Docker engine that is started for it and leaves nothing behind.
swarm-test: env
	@$(BIN)/python -m bench.swarm
	$(BIN)/python -m pytest -m swarm tests/swarm $(PYTEST_ARGS)

# Fills in what README.md and three pages of docs/ take from the code and the newest published
# campaigns.
front-page: env
	$(BIN)/python -m bench.front_page

# Of what is pure: pyproject.toml lists it.
coverage: env
	$(BIN)/python -m pytest $(PYTEST_ARGS) --cov --cov-report=term -m "not server and not browser and not timing" $(PURE)

PURE = tests/bench tests/channels_hub/test_*.py tests/channels_ipc/test_messages.py \
	tests/channels_ipc/test_names.py tests/channels_ipc/test_wire.py tests/locustfiles/test_bisection.py \
	tests/locustfiles/test_division.py tests/locustfiles/test_vegas.py

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

env: $(VENV)/.installed

# First the Debian packages: without python3-venv there is no environment.
$(VENV)/.installed: requirements.txt constraints.txt | system
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

# The frameworks that a Django request is compared with.
baselines-env: .venv-baselines/.installed

.venv-baselines/.installed: baselines/requirements.txt constraints.txt | system
	$(PYTHON) -m venv .venv-baselines
	.venv-baselines/bin/pip install --quiet --disable-pip-version-check -r baselines/requirements.txt
	touch $@

# The software of 2016, each in an environment of its own: docs/2016-stack.md.
channels1-env: .venv-channels1/.installed

.venv-channels1/.installed: channels1/install channels1/requirements.txt | system
	channels1/install .venv-channels1 $(PYTHON311)

channels017-env: .venv-channels017/.installed

.venv-channels017/.installed: channels1/requirements-2016.txt
	$(PYTHON36) -m venv .venv-channels017
	.venv-channels017/bin/pip install --quiet --requirement channels1/requirements-2016.txt
	touch $@

# The load generator that comes from npm, for `python -m bench http`.
tools: tools/node_modules/.package-lock.json

tools/node_modules/.package-lock.json: tools/package.json tools/package-lock.json
	@command -v npm >/dev/null || { echo "npm is missing: apt-get install npm" >&2; exit 1; }
	cd tools && npm ci --no-progress

system:
	@bin/install-system-packages

clean:
	rm -rf $(VENV) .venv-baselines run build
