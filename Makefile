# make demo   see passages found for questions, with nothing but Python and pip on the machine
# make test   every test
# make check  lint, types, and the order of the rooms
# make docs   the site, into site/; needs no network once installed
# make clean  remove the virtual environment
#
# EXTRAS chooses what `make test` installs; EXTRAS=dev leaves PyTorch out, and the tests that need it are skipped.

PYTHON ?= python3
EXTRAS ?= dev,hub
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test check docs clean

demo: $(VENV)/core.installed
	@$(BIN)/colbert-prf demo

test: $(VENV)/$(EXTRAS).installed
	$(BIN)/python -m pytest $(PYTEST_ARGS)

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

$(VENV)/docs.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing colbert-prf with [docs] into $(VENV) ..."
	@$(PIP) --editable ".[docs]"
	@touch $@

$(VENV)/$(EXTRAS).installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing colbert-prf with [$(EXTRAS)] into $(VENV) ..."
	@$(PIP) --editable ".[$(EXTRAS)]"
	@touch $@
