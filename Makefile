# Two commands do everything, set-up included: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test fuzz matrix lint clean
.DEFAULT_GOAL := test

demo: .venv/.ready
	$(BIN)/memohop demo

test: lint
	$(BIN)/pytest -n auto --dist worksteal

fuzz: .venv/.ready  # thousands of damaged and odd files for everything that reads files
	$(BIN)/pytest -m fuzz --hypothesis-profile=fuzz

# The numerical tests as other processors, numbers of threads and seeds would have them: one thing
# changed at a time, then several at once.
MATRIX := MEMOHOP_TEST_SEED=0 MEMOHOP_TEST_SEED=1 MEMOHOP_TEST_SEED=2 \
	ATEN_CPU_CAPABILITY=default ATEN_CPU_CAPABILITY=avx2 \
	MEMOHOP_TEST_THREADS=2 MEMOHOP_TEST_THREADS=4 MEMOHOP_TEST_NUMBA=0 \
	ATEN_CPU_CAPABILITY=avx2,MEMOHOP_TEST_THREADS=2,MEMOHOP_TEST_SEED=1 \
	ATEN_CPU_CAPABILITY=default,MEMOHOP_TEST_THREADS=4,MEMOHOP_TEST_NUMBA=0,MEMOHOP_TEST_SEED=2

matrix: .venv/.ready
	set -e; for setting in $(MATRIX); do echo "$$setting"; \
		env $$(echo $$setting | tr , ' ') $(BIN)/pytest -x --durations=0 --durations-min=60 \
		tests/nn tests/networks tests/training tests/inference tests/own; done

lint: .venv/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

.venv/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable '.[dev]'
	@$(BIN)/python -W ignore -m compileall -qq -j 0 .venv/lib || true  # pip would use one core
	@touch $@

clean:
	rm -rf .venv .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist memohop-demo.html
