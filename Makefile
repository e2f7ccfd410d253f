# What a newcomer can do here: `make help`.  Continuous integration calls these targets.

.DEFAULT_GOAL := help
.PHONY: help setup run demo
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8000

# The first Python that is new enough, the one called python3 preferred.
PYTHON ?= $(shell for each in python3 python3.13 python3.12 python3.11; do \
	if $$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then echo $$each; break; fi; done)
# npm tells of its own new version on each call, where nobody asked.
export npm_config_update_notifier := false
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python

help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.run-installed $(VENV)/.bubblewrap-found node_modules/.installed ## Install what running needs, inside this folder

run: setup panel ## Run a fleet of this one machine, until Ctrl-C (PORT=8000)
	@$(BIN)/jupyter-fleet run --port $(PORT)

demo: setup ## Show a pretended fleet of Macs and GPU machines, until Ctrl-C (PORT=8000)
	@$(BIN)/jupyter-fleet demo --port $(PORT)

$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed, and none was found. Install one, or name it: make run PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than Python 3.11. Name another: make run PYTHON=/path/to/python3"; exit 1; }
	@test -x $(BIN)/python || { echo "Creating $(VENV) …"; $(PYTHON) -m venv $(VENV) || { echo "Debian and Ubuntu: apt-get install python3-venv"; rm -rf $(VENV); exit 1; }; }
	@touch $@

# Everything is pinned by hash, the build of this package included.
$(VENV)/.run-installed: $(VENV)/.created requirements/bootstrap.lock requirements/run.lock pyproject.toml
	@echo "Installing JupyterHub and the fleet into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.lock
	@$(UV) --require-hashes -r requirements/run.lock
	@$(UV) --no-deps --no-build-isolation -e .
	@touch $@

# The system's own where there is one: it gets the system's security updates.
$(VENV)/.bubblewrap-found: $(VENV)/.run-installed requirements/bubblewrap.lock
	@if [ "$$(uname)" = Linux ] && ! command -v bwrap >/dev/null; then \
		echo "Installing bubblewrap into $(VENV) …"; \
		$(UV) --require-hashes -r requirements/bubblewrap.lock; \
	fi
	@touch $@

node_modules/.installed: package-lock.json
	@node -e 'process.exit(+(process.versions.node.split(".")[0] < 20))' 2>/dev/null || { echo "Node 20 or later is needed for JupyterHub's proxy; found: $$(node --version 2>/dev/null || echo none)"; exit 1; }
	@command -v npm >/dev/null || { echo "npm is needed for JupyterHub's proxy, and was not found"; exit 1; }
	@echo "Installing JupyterHub's proxy into node_modules …"
	@npm ci --omit=dev --loglevel=error --no-fund >/dev/null
	@touch $@

# ------------------------------------------------------------------ development
.PHONY: setup-dev panel wheel pages words test test-front test-pure test-long test-real test-hub test-lab test-e2e test-hardware lint format layers types generate docs lock

DEV := $(VENV)/.dev-installed
PYTEST := $(BIN)/python -m pytest
# Sessions of computing tests take a worker for each core; those that mostly wait, for
# processes to start and engines to answer, take more.
WORKERS ?= 2
WAITING_WORKERS ?= 4

setup-dev: setup $(DEV) ## Install what developing needs, inside this folder

$(DEV): $(VENV)/.run-installed requirements/dev.lock
	@echo "Installing the development tools into $(VENV) …"
	@$(UV) --require-hashes -r requirements/dev.lock
	@touch $@

PANEL := server_ext/fleet_lab/labextension/package.json

panel: $(PANEL) ## Build the timeline panel for JupyterLab

$(PANEL): $(VENV)/.run-installed node_modules/.installed $(wildcard server_ext/package*.json server_ext/tsconfig.json) $(shell find server_ext/src server_ext/style server_ext/schema -type f)
	@echo "Building the panel for JupyterLab …"
	@cd server_ext && npm ci --loglevel=error --no-fund >/dev/null
	@cd server_ext && PATH="$(CURDIR)/$(BIN):$$PATH" npm run --silent build >build.log 2>&1 || { cat build.log; exit 1; }
	@touch $@

wheel: setup panel ## Build the package for a server and its machines into dist/, panel included
	@$(BIN)/uv build --quiet --wheel --no-build-isolation --python $(BIN)/python --out-dir dist .
	@ls dist/*.whl

pages: panel ## Build the script of the Hub's pages from the panel's sources; it is kept
	cd server_ext && npm run --silent build:pages

words: setup-dev ## Collect the words for translators, and compile the languages that are kept
	$(BIN)/python server_ext/scripts/generate_phrases.py
	$(BIN)/python server_ext/scripts/generate_words.py

test-front: panel ## The front end's own tests
	cd server_ext && npm test --silent && npm run --silent check

test: setup-dev test-front test-pure test-hub test-lab test-real test-e2e ## Run all tests; what the system lacks is skipped with the reason

test-pure: setup-dev ## Unit, property, contract and documentation tests; pure modules wholly
	@rm -f .coverage.*
	$(BIN)/python -m coverage run -m pytest -p no:jupyter_server -n $(WORKERS) tests/unit tests/properties tests/contract tests/docs
	@$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=100 --include='contracts/*,hub_spawner/fleet_hub/scheduling/*'

test-long: setup-dev ## 100,000 steps of each state machine; some minutes (FLEET_PROPERTY_STEPS=…)
	FLEET_PROPERTY_STEPS=$${FLEET_PROPERTY_STEPS:-100000} $(PYTEST) -p no:jupyter_server -n $(WORKERS) \
		tests/properties/test_planner_machine.py tests/properties/test_controller_machine.py \
		tests/properties/test_device_machine.py

test-hub: setup-dev ## The Spawner inside a real Hub
	$(PYTEST) -p no:jupyter_server -o asyncio_mode=auto -n $(WORKERS) --dist loadscope tests/hub

test-lab: setup-dev ## The server extension inside a real notebook server
	$(PYTEST) tests/lab

test-real: setup-dev ## Real processes: services, agents, sandboxes, kill -9
	$(PYTEST) -p no:jupyter_server -n $(WAITING_WORKERS) --dist loadscope tests/integration

test-e2e: setup-dev panel ## A browser on the whole product; screenshots in artefacts/
	$(PYTEST) -p no:jupyter_server -n $(WORKERS) --dist loadscope tests/e2e

test-hardware: setup-dev ## What needs an NVIDIA GPU or a Mac
	$(PYTEST) -p no:jupyter_server tests/hardware

lint: setup-dev ## Style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup-dev ## Put everything into the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

layers: setup-dev ## Who may import whom
	$(BIN)/lint-imports

types: setup-dev ## mypy, strict
	$(BIN)/mypy

generate: setup-dev ## Write the parts of the reference that come from the code
	$(BIN)/python docs/generate.py

docs: setup-dev ## Build the documentation into docs/_build
	@$(UV) --require-hashes -r requirements/docs.lock
	$(BIN)/python -m sphinx -n -W -q docs docs/_build

COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate pyproject.toml
lock: ## Pin the newest versions that fit, in all lock files alike
	$(COMPILE) --upgrade --extra dev -o requirements/dev.lock
	$(COMPILE) requirements/build.in --extra hub --extra agent --extra lab --extra panel -c requirements/dev.lock -o requirements/run.lock
	$(COMPILE) --extra docs -c requirements/dev.lock -o requirements/docs.lock
