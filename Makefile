# Two commands do everything, set-up included: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)

.PHONY: demo test table1 docs fuzz coverage matrix oldest newest package lint clean
.DEFAULT_GOAL := test

demo: .venv/.ready
	$(BIN)/memohop demo

test: lint
	$(BIN)/pytest -n auto --dist worksteal

table1: .venv/.ready  # the paper's Table 1: what is missing is trained, which takes hours on a CPU
	$(BIN)/python -m study run table1 --protocol paper
	mkdir -p build
	$(BIN)/python -m study store export memohop-runs.sqlite table1 --output build/table1.json
	$(BIN)/python -m study table table1 --results build/table1.json

# The site, in build/docs/html. GALLERY=0 leaves out running the examples, which takes most of the time.
GALLERY ?= 1

docs: .venv/.docs-ready
	MEMOHOP_GALLERY=$(GALLERY) OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -q -W --keep-going docs build/docs/html
	$(BIN)/python docs/check_site.py build/docs/html

fuzz: .venv/.ready  # thousands of damaged and odd files for everything that reads files
	$(BIN)/pytest -m fuzz --hypothesis-profile=fuzz

coverage: .venv/.ready  # do the intervals of fit hold what they promise? A quarter of an hour
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/intervals.py

# The numerical tests as other processors, numbers of threads and seeds would have them: one thing
# changed at a time, then several at once.
MATRIX := MEMOHOP_TEST_SEED=0 MEMOHOP_TEST_SEED=1 MEMOHOP_TEST_SEED=2 \
	ATEN_CPU_CAPABILITY=default ATEN_CPU_CAPABILITY=avx2 \
	MEMOHOP_TEST_THREADS=2 MEMOHOP_TEST_THREADS=4 \
	ATEN_CPU_CAPABILITY=avx2,MEMOHOP_TEST_THREADS=2,MEMOHOP_TEST_SEED=1 \
	ATEN_CPU_CAPABILITY=default,MEMOHOP_TEST_THREADS=4,MEMOHOP_TEST_SEED=2

matrix: .venv/.ready
	set -e; for setting in $(MATRIX); do echo "$$setting"; \
		env $$(echo $$setting | tr , ' ') $(BIN)/pytest -x --durations=0 --durations-min=60 \
		tests/nn tests/networks tests/training tests/fit tests/explain; done

# The oldest and the newest versions that pyproject.toml admits, each in an environment of its own, and
# a part of the tests. torch stays at its version in constraints.txt: other builds are gigabytes.
# TORCH=2.11.0 overrides.
TORCH ?= $(shell sed -n 's/^torch==//p' constraints.txt)
QUICK := tests/test_quiet.py tests/nn/test_mmp.py tests/nn/test_graph.py tests/networks/test_registry.py \
	tests/training/test_choice.py tests/fit/test_tree_candidates.py tests/fit/test_linear_candidates.py \
	tests/data/tables tests/data/prepared tests/parts/test_partition.py tests/parts/test_ray.py \
	tests/report/test_chart.py tests/cli/test_cli.py

oldest newest: %: .%/.ready  # older versions of Ray forget processes that they have ended
	OMP_NUM_THREADS=1 .$@/bin/pytest -p no:cacheprovider -W ignore::ResourceWarning $(QUICK)

.oldest/.ready: pyproject.toml
	$(PYTHON) -m venv .oldest
	.oldest/bin/python -c 'import tomllib; \
		project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
		extras = project["optional-dependencies"]; \
		wanted = sum((extras[name] for name in ("metis", "ray")), project["dependencies"]); \
		print(*(one.replace(">=", "==") for one in wanted if not one.startswith("torch>")), \
			"torch==$(TORCH)", "pytest", "hypothesis", sep="\n")' > .oldest/wanted.txt
	.oldest/bin/python -m pip install --quiet --disable-pip-version-check --requirement .oldest/wanted.txt --editable .
	@touch $@

.newest/.ready: pyproject.toml
	$(PYTHON) -m venv .newest
	.newest/bin/python -m pip install --quiet --disable-pip-version-check --upgrade torch==$(TORCH) \
		pytest hypothesis --editable '.[metis,ray]'
	@touch $@

package: .venv/.ready  # the wheel and the source archive, each extra in an environment of its own
	$(BIN)/python tests/installed.py

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

.venv/.docs-ready: .venv/.ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[docs]'
	@touch $@

clean:
	rm -rf .newest .oldest .venv .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist docs/gallery docs/reference/commands.md memohop-demo.html
