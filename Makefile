# make demo       see passages found for questions, with nothing but Python and pip on the machine
# make page       the same passages in a browser: serves the page at http://127.0.0.1:8000
# make test       the tests, except those marked slow
# make test-slow  the slow tests: processes, training, kills and damage
# make check      lint, types, and the order of the rooms
# make docs       the site, into site/; needs no network once installed
# make clean      remove the virtual environment
#
# EXTRAS chooses what the tests install; EXTRAS=dev leaves PyTorch out, and the tests that need it are skipped.

PYTHON ?= python3
EXTRAS ?= dev-hub
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# A worker per core, at most four: each loads the encoder. The tests of a file share what they make, so they stay together.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

.PHONY: demo page test test-slow check docs clean

demo: $(VENV)/core.installed
	@$(BIN)/colbert-prf demo

page: $(VENV)/server.installed
	@$(BIN)/colbert-prf serve --demo

test: $(VENV)/$(EXTRAS).installed
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-slow: $(VENV)/$(EXTRAS).installed
	$(PYTEST) -m slow $(PYTEST_ARGS)

check: $(VENV)/$(EXTRAS).installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --quiet tests/test_rooms.py

docs: $(VENV)/docs.installed
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) site

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/core.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing colbert-prf into $(VENV) ..."
	@$(PIP) --editable .
	@touch $@

$(VENV)/server.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing colbert-prf with [server] into $(VENV) ..."
	@$(PIP) --editable ".[server]"
	@touch $@

$(VENV)/docs.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing colbert-prf with [docs] into $(VENV) ..."
	@$(PIP) --editable ".[docs]"
	@touch $@

$(VENV)/$(EXTRAS).installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing colbert-prf with [$(EXTRAS)] into $(VENV) ..."
	@$(PIP) --editable ".[$(EXTRAS)]"
	@touch $@
