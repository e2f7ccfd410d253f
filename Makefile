# What a newcomer can do here: `make help`.  Continuous integration calls these targets.

.DEFAULT_GOAL := help
.PHONY: help setup run
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8000

# The first Python that is new enough, the one called python3 preferred.
PYTHON ?= $(shell for each in python3 python3.13 python3.12 python3.11; do \
	if $$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then echo $$each; break; fi; done)
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python

help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.run-installed $(VENV)/.bubblewrap-found node_modules/.installed ## Install what running needs, inside this folder

run: setup ## Run a fleet of this one machine, until Ctrl-C (PORT=8000)
	@$(BIN)/jupyter-fleet run --port $(PORT)

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
	@npm ci --omit=dev --loglevel=error
	@touch $@
