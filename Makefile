# One command for each thing one does here. The first `make` of a target sets up what it needs:
# a virtual environment in .venv and, as root on Debian, the system packages of the tests.
# A Python that is named has an environment of its own: `make test PYTHON=python3.13` in .venv-3.13.

PYTHON ?= python3
PYTHONS := 3.11 3.12 3.13
WORKERS ?= 3
ARGS ?=

VENV := .venv
ifneq ($(origin PYTHON),file)
FOUND := $(shell sh scripts/find_python.sh '$(PYTHON)')
$(if $(FOUND),,$(error $(PYTHON) does not run here; name another: make PYTHON=python3.12 ...))
override PYTHON := $(word 1,$(FOUND))
VENV := .venv-$(word 2,$(FOUND))
endif

BIN := $(VENV)/bin
BASE := $(VENV)/.base-installed
DEV := $(VENV)/.dev-installed
BENCH := $(VENV)/.bench-installed
IDS := 3_MCP-TAS-041,3_MCP-TAS-090,UNKNOWN-802,5_SECURITY_DESIGN-REQ-SEC-SD-083

# Tests write many small files: in memory where 6 GB are free there, else on the disk.
IN_MEMORY = $(if $(shell df --output=avail /dev/shm 2>/dev/null | awk '$$1 > 6000000'),TMPDIR=/dev/shm)

# Agents have their starter's network: as root that is one with nothing but loopback, elsewhere the
# tests that need it are skipped.
NETLESS = $(if $(filter 0,$(shell id -u)),unshare -n -- sh -c 'ip link set lo up && exec "$$@"' sh)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Make's own variables must not reach a make that a test starts. Where Python may not keep what it has
# compiled, each of the thousands of programs that the tests start compiles everything again.
unexport MAKEFLAGS MFLAGS MAKELEVEL PYTHON PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
ifndef AT_ONCE
.NOTPARALLEL:
endif
.PHONY: help demo test test-agents test-runners suite pythons check static lint types mypy pyright compiled layers sizes stale soak simulate crash home-soak fleet docs bench format system github clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(BASE) ## the whole story on a throw-away repository
	@$(BIN)/lockgate demo $(ARGS)

test: $(DEV) system github ## all tests, the coverage floors, the requirements
	@mkdir -p build && rm -f build/.coverage build/.coverage.* build/coverage.json build/req-results.json
	$(IN_MEMORY) $(BIN)/pytest -n $(WORKERS) --cov --cov-report= --req-results=build/req-results.json $(ARGS)
	$(BIN)/coverage json -q -o build/coverage.json
	$(BIN)/python scripts/check_coverage.py build/coverage.json
	$(BIN)/python scripts/verify_req_coverage.py --ids $(IDS)

test-agents: $(DEV) system ## the real agents' programs, installed at their versions, without a key
	PYTHON=$(BIN)/python sh scripts/install_agents.sh
	$(NETLESS) $(BIN)/pytest -n $(WORKERS) -m agents tests/e2e/agents $(ARGS)

RUNNERS ?= $(or $(LOCKGATE_RUNNERS),/opt/lockgate-runners)
test-runners: $(DEV) system ## the cheats of jest, vitest and go with the runners themselves, installed at their versions
	sh scripts/install_runners.sh $(RUNNERS)
	PATH=$(RUNNERS)/node_modules/.bin:$$PATH $(BIN)/pytest -n $(WORKERS) -m slow tests/e2e/cheats -k runner_itself $(ARGS)

check: static test ## everything CI asks for

# What reads the files and runs nothing of them, two at a time; the longest begins first.
static: $(DEV)
	@make -j2 --no-print-directory --output-sync AT_ONCE=1 $(if $(filter-out .venv,$(VENV)),PYTHON='$(PYTHON)') \
		lint pyright mypy compiled github sizes stale layers

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: mypy pyright

mypy: $(DEV)
	$(BIN)/mypy

pyright: $(DEV)
	$(BIN)/pyright --project pyproject.toml --pythonpath $(BIN)/python

# The test files, which each worker of pytest would compile for itself.
compiled: $(DEV)
	@$(BIN)/pytest --collect-only -qq > /dev/null 2>&1 || true

layers: $(DEV)
	$(BIN)/lint-imports --no-logo

sizes: $(DEV)
	$(BIN)/python scripts/check_sizes.py

stale: $(DEV)
	$(BIN)/python scripts/make_docs.py --check
	$(BIN)/python scripts/verify_req_coverage.py --check

suite: $(DEV) system github ## all tests, and nothing measured
	$(BIN)/pytest -n $(WORKERS) $(ARGS)

# `make` by its name: `$(MAKE)` would really run under `make -n`, as its variables are not exported.
pythons: ## the suite on 3.11, 3.12 and 3.13, as far as they are here
	@for version in $(PYTHONS); do \
		sh scripts/find_python.sh python$$version || { echo "no python$$version here"; continue; }; \
		make suite PYTHON=python$$version WORKERS=$(WORKERS) ARGS='$(ARGS)' || exit 1; \
	done

soak: $(DEV) system github ## the property, kill and state-machine tests at length; the suite on every Python
	HYPOTHESIS_PROFILE=soak $(BIN)/pytest -n $(WORKERS) -m "not agents" $(ARGS)
	make crash WORKERS=$(WORKERS)
	make home-soak
	make pythons WORKERS=$(WORKERS) ARGS='$(ARGS)'

# SEED=k plays one seed and prints its trace, SEEDS=n so many from the first on.
SEEDS ?= 20
simulate: $(DEV) ## homes full of faults on a clock of their own, SEEDS of them; SEED=k prints one
	PYTHONHASHSEED=0 $(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(SEEDS)) $(ARGS)

# Every point where the programs touch the world, TOGETHER of them in one home, then random pairs.
PAIRS ?= 200
TOGETHER ?= 14
crash: $(DEV) system ## the real programs killed at every point, then at PAIRS random pairs
	$(BIN)/python -m tests.crash --all --together $(TOGETHER) --jobs $(WORKERS) $(ARGS)
	$(BIN)/python -m tests.crash --pairs $(PAIRS) --jobs $(WORKERS) $(ARGS)

# Real programs in one home with four projects; kills, full disks, restarts and the user's git between.
TASKS ?= 500
home-soak: $(DEV) system ## TASKS scripted tasks in a home full of faults, checked at the end
	$(BIN)/python -m tests.soak --tasks $(TASKS) $(ARGS)

# What several hosts rely on: rows and claims, the hub, who leads, laptops; then the hosts themselves.
FLEET = tests/core/test_fleet.py tests/core/test_hub.py $(addprefix tests/store/test_,fence.py lanes.py lead.py postgres.py) \
	tests/adapters/engine tests/adapters/hub $(addprefix tests/scenarios/,test_leader.py test_hub.py train/test_frozen.py) \
	$(addprefix tests/faces/,test_hosts.py cli/test_fleet.py cli/test_fleet_check.py cli/test_budgets.py web/test_calls.py \
	laptop) tests/fleet

fleet: $(DEV) system ## several hosts on a real Temporal, PostgreSQL and hub
	$(BIN)/pytest -n 0 -m "not agents" $(FLEET) $(ARGS)

docs: $(DEV) ## write the generated pages
	$(BIN)/python scripts/make_docs.py
	$(BIN)/python scripts/verify_req_coverage.py --write

bench: $(BENCH) system ## speed, beside peers and the disk, in one table
	$(BIN)/python -m bench $(ARGS)

format: $(DEV) ## put every file into shape
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean: ## remove what make made, the environment too
	rm -rf .venv .venv-* build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

system:
	@sh scripts/system_packages.sh

github: $(DEV)
	@PYTHON=$(BIN)/python sh scripts/github_descriptions.sh

# The stamps are older than pyproject.toml when it has changed: then pip runs again.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Lockgate needs Python 3.11 or later; say which: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(BASE): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

# uv does in seconds what pip does in half a minute, but does not read pip's settings: where it fails,
# pip does it.
$(DEV): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet 'uv>=0.13,<1' \
		&& $(BIN)/uv pip install --quiet --python $(BIN)/python --editable '.[dev,postgres]' \
		|| $(BIN)/python -m pip install --quiet --editable '.[dev,postgres]'
	@touch $(BASE) $@

# Where a peer cannot be installed, the benches run without it, and the next `make bench` tries again.
$(BENCH): $(DEV)
	$(BIN)/python -m pip install --quiet --editable '.[bench]' && touch $@ || true
