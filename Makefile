# Two commands do everything, set-up included: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test fuzz lint clean
.DEFAULT_GOAL := test

demo: .venv/.ready
	$(BIN)/memohop demo

test: lint
	$(BIN)/pytest

fuzz: .venv/.ready  # thousands of damaged and odd files for everything that reads files
	$(BIN)/pytest -m fuzz --hypothesis-profile=fuzz

lint: .venv/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache build dist memohop-demo.html
