# One command each. `make help` lists them; every one sets up what it needs first.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
.SHELLFLAGS := -euc
.DEFAULT_GOAL := help

# Setting up again is needed exactly when one of these files has changed
INPUTS := pyproject.toml requirements/dev.lock requirements/uv.lock
STAMP  := $(VENV)/.ready-$(shell cat $(INPUTS) | git hash-object --stdin)

# Spark's workers must be the Python that has semistream, whatever `python3` is on PATH
export PYSPARK_PYTHON := $(abspath $(BIN)/python)
export UV_LINK_MODE ?= copy

# Compiled kernels are kept per mode: a cache filled without bounds checks would be reused, and check nothing
KERNELS      := $(abspath .cache/kernels)
AS_SHIPPED   := SEMISTREAM_KERNEL_CACHE=$(KERNELS)/shipped
BOUNDS_CHECK := SEMISTREAM_KERNEL_CACHE=$(KERNELS)/bounds NUMBA_BOUNDSCHECK=1
NO_JIT       := SEMISTREAM_KERNEL_CACHE=$(KERNELS)/nojit NUMBA_DISABLE_JIT=1

PYTEST  := $(BIN)/python -m pytest
WORKERS ?= 2
SPREAD  := -n $(WORKERS) --dist loadgroup
# planted faults test the tests, and saving and shedding have no kernels: once, as shipped, is enough
KERNEL_TESTS := tests/parts tests/contract $(patsubst %,--ignore tests/contract/test_%.py,planted_faults save overload)

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ------------------------------------------------------------------------------------------------------------ set-up
.PHONY: setup
setup: $(STAMP) ## a locked environment in .venv, with Java for Spark if the system has none
	@echo "ready: $(BIN)/semistream --help"

$(STAMP): $(INPUTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "error: need Python 3.11 or newer, $(PYTHON) is older; name another with PYTHON=..." >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.lock
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --require-hashes -r requirements/dev.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@echo "Java for Spark: $$($(BIN)/python -c 'from semistream.spark.java import find_java; print(find_java())')"
	@rm -f $(VENV)/.ready-*
	@touch $@

.PHONY: lock
lock: $(STAMP) ## resolve the newest allowed versions again (UPGRADE= keeps those that still fit)
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $(UPGRADE) \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	    --all-extras --group dev --group docs pyproject.toml -o requirements/dev.lock
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes $(UPGRADE) \
	    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	    requirements/uv.in -o requirements/uv.lock

UPGRADE ?= --upgrade

# ------------------------------------------------------------------------------------------------------------ checks
.PHONY: check
check: $(STAMP) ## lint, format, types, layers: seconds
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --cache-dir .cache/import_linter

.PHONY: format
format: $(STAMP) ## put imports and layout in order
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

.PHONY: test
test: check test-nojit test-bounds test-shipped ## everything: checks, then all tests, kernels run in all three ways

.PHONY: test-nojit
test-nojit: $(STAMP) ## parts and contract with the kernels as plain Python
	@$(NO_JIT) $(PYTEST) $(SPREAD) -q --hypothesis-profile=quick $(KERNEL_TESTS)

.PHONY: test-bounds
test-bounds: $(STAMP) ## parts and contract with every array access checked
	@$(BOUNDS_CHECK) $(PYTEST) $(SPREAD) -q --hypothesis-profile=quick $(KERNEL_TESTS)

.PHONY: test-shipped
test-shipped: $(STAMP) ## all tests with the kernels as users run them
	@$(AS_SHIPPED) $(PYTEST) $(SPREAD) $(TESTS)

.PHONY: soak
soak: $(STAMP) ## the long tests: many random cases, big masters (hours; narrow with TESTS=tests/contract)
	@$(AS_SHIPPED) $(PYTEST) $(SPREAD) -m "soak or not soak" --hypothesis-profile=soak $(TESTS)

# --------------------------------------------------------------------------------------------------------------- use
.PHONY: demo
demo: $(STAMP) ## enrich a stream on Spark from a master on disk, and prove the result
	@$(BIN)/semistream demo

.PHONY: bench
bench: $(STAMP) ## the core measured against DuckDB and Polars (<= 10 minutes)
	@$(BIN)/semistream bench core --preset quick

.PHONY: docs
docs: $(STAMP) ## the documentation as a site in .cache/site; any broken link fails
	@$(BIN)/sphinx-build --fail-on-warning --nitpicky --quiet -d .cache/doctrees -c docs . .cache/site
	@echo "open .cache/site/docs/index.html"

.PHONY: clean
clean: ## remove what can be made again, the environment too
	@rm -rf $(VENV) .cache .hypothesis dist
