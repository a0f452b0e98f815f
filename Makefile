# podlife: `make` alone lists what there is to make.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
# That of deploy/Containerfile.
UV_VERSION := 0.13.7
DIST   ?= dist
# Options of the command that a target starts: make up ARGS="--port 7443"
ARGS   ?=
VENV   := .venv
BIN    := $(VENV)/bin
UV     := $(BIN)/uv
# The lock decides every version; a changed lock or project file reinstalls.
STAMP  := $(VENV)/.installed
REAL   := $(VENV)/.installed-real
PYTEST := $(BIN)/python -m pytest

# Compiled once, when it is installed: compiling at every start would take twice as long.
export UV_COMPILE_BYTECODE := 1
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help up test check lint types test-real real-parts bench chaos crash soak-ui extremes fuzz conformance-api conformance-apps ecosystem cover dist lock schema cri-table clean

help: ## list these targets
	@if [ -t 1 ]; then on='\033[1m' off='\033[0m'; fi; \
	  awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  '"$$on"'%-11s'"$$off"' %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit("podlife needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": name another with make PYTHON=...") if sys.version_info < (3, 11) else None'
	@echo "installing into $(VENV), once: it takes about half a minute"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)

# What was installed for the real parts stays installed.
$(STAMP): pyproject.toml uv.lock | $(UV)
	$(UV) sync --quiet --frozen $(if $(wildcard $(REAL)),--group real)
	@touch $@

$(REAL): pyproject.toml uv.lock | $(UV)
	$(UV) sync --quiet --frozen --group real
	@touch $@ $(STAMP)

up: $(STAMP) ## install, and run a cluster on this machine (ARGS="--port 7443" for options)
	@$(BIN)/podlife up $(ARGS)

test: $(STAMP) ## the tests that need nothing but Python, a few minutes
	# What hostile requests cost others takes long: `make fuzz` measures it.
	$(PYTEST) -q -n auto --maxprocesses 4 --dist worksteal --ignore tests/fuzz/test_hostile.py \
	  tests/unit tests/component tests/conformance tests/property tests/crash tests/fuzz

check: $(STAMP) lint types ## lint, types, unit and conformance tests: what a developer runs before a commit
	$(PYTEST) -q -n auto --maxprocesses 4 --dist worksteal tests/unit tests/conformance

lint: $(STAMP) ## formatting, lint, import contracts, and phrases to avoid
	$(BIN)/ruff format --check src tests bench tools examples
	$(BIN)/ruff check src tests bench tools examples
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/check_prose.py

types: $(STAMP) ## mypy, strict
	$(BIN)/mypy

real-parts: ## etcd, kube-apiserver, kubectl, Kubernetes' own suite and the like, once per machine, in the user's cache
	$(PYTHON) tools/real_parts.py

test-real: $(REAL) real-parts ## the tests against real parts; with CI=true a missing part is a failure
	# With the unit tests that need a library of the real group. Half of the time is waiting for programs, so two files
	# run at once; more would be slower, because each worker starts its own etcd and kube-apiserver.
	$(PYTEST) -q -n 2 --dist loadfile tests/real tests/unit/client/test_credentials.py tests/unit/kubelet/runtimes/containerd

conformance-api: $(REAL) ## the chapter sig-api-machinery of Kubernetes' conformance suite (ARGS="--focus Namespaces" for a part)
	$(BIN)/python -m tests.real.conformance $(ARGS)

conformance-apps: $(REAL) ## the chapters sig-apps, sig-cli, sig-auth, sig-scheduling, sig-instrumentation, sig-architecture and ResourceQuota of it
	$(BIN)/python -m tests.real.conformance --chapter apps $(ARGS)

ecosystem: $(REAL) real-parts ## software of others: Helm, cert-manager, descheduler, kopf, operators in pods, all of controller-runtime's suites (an hour, with what it builds)
	PODLIFE_ECOSYSTEM=all $(PYTEST) -q tests/real/ecosystem $(ARGS)

chaos: $(STAMP) ## a thousand seeds of disturbances in a whole cluster, under virtual time
	PODLIFE_CHAOS_SEEDS=$${PODLIFE_CHAOS_SEEDS:-1000} $(PYTEST) -q -n auto --maxprocesses 4 tests/component/chaos

extremes: $(STAMP) ## every field of every kind at the ends of its range, under virtual time
	PODLIFE_EXTREMES=$${PODLIFE_EXTREMES:-20} PODLIFE_EXTREMES_SEED=$${PODLIFE_EXTREMES_SEED:-$$(date +%s)} \
		$(PYTEST) -q -n auto --maxprocesses 4 tests/property/test_stored_extremes.py

crash: $(STAMP) ## a hundred rounds of kill -9 of each part, and 500 kinds of damage to the store's files
	PODLIFE_CRASH_ROUNDS=$${PODLIFE_CRASH_ROUNDS:-100} PODLIFE_DAMAGE_ROUNDS=$${PODLIFE_DAMAGE_ROUNDS:-500} $(PYTEST) -q -s tests/crash

soak-ui: $(REAL) ## an hour of the page in a browser, with a disturbance every minute
	PODLIFE_SOAK_SECONDS=$${PODLIFE_SOAK_SECONDS:-3600} $(PYTEST) -q -s tests/soak/test_ui.py

fuzz: $(REAL) ## more than 10,000 requests that no client should send, and what they cost others (an hour)
	PODLIFE_FUZZ_REQUESTS=$${PODLIFE_FUZZ_REQUESTS:-10000} PODLIFE_OPENAPI_EXAMPLES=$${PODLIFE_OPENAPI_EXAMPLES:-4} PODLIFE_HOSTILE=$${PODLIFE_HOSTILE:-all} \
	  $(PYTEST) -q -s tests/fuzz tests/real/test_openapi_fuzz.py

bench: $(REAL) real-parts ## measure against the peers, side by side; `make bench ui` the page alone
	$(BIN)/python -m bench $(filter ui,$(MAKECMDGOALS)) $(ARGS)

# The second word of `make bench ui`.
ifneq ($(filter bench,$(MAKECMDGOALS)),)
.PHONY: ui
ui: ; @:
endif

cover: $(STAMP) ## the tests with branch coverage
	$(BIN)/coverage run -m pytest -q tests/unit tests/component tests/conformance tests/property
	$(BIN)/coverage combine --quiet && $(BIN)/coverage report

dist: $(STAMP) ## the package, as wheel and source archive: the same bytes at every build of a commit (DIST=FOLDER)
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 1577836800) $(UV) build --quiet --out-dir $(DIST)

lock: | $(UV) ## resolve the dependencies again
	$(UV) lock

schema: $(REAL) real-parts ## generate the field table from a running kube-apiserver
	$(BIN)/python tools/generate_schema.py

cri-table: ## generate the containerd runtime's table of messages from CRI's own definition
	$(PYTHON) tools/generate_cri_table.py

clean: ## remove what was installed here
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .hypothesis .coverage*
