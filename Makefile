# `make bench` and `make test` set up all they need.

VENV    ?= .venv
PYTHON  ?= python3
BIN      = $(VENV)/bin
PYTEST_ARGS ?=

.PHONY: bench bench-full test lint system env clean

bench: env system
	$(BIN)/python -m bench run --quick

bench-full: env system
	$(BIN)/python -m bench run --full

test: env system
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

env: $(VENV)/.installed

$(VENV)/.installed: requirements.txt constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

system:
	@bin/install-system-packages

clean:
	rm -rf $(VENV) run build
