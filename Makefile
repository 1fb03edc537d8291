# Everything runs in its own virtual environment, made on first use.
# A Python of your choice: make PYTHON=/path/to/python3.12 test

VENV := .venv
BIN := $(VENV)/bin
# The first of these that is Python 3.11 or later.
PYTHON ?= $(shell for p in python3 python3.12 python3.11 python3.13 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$p && break; done)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test lint types check browser bench docs clean

DEMO := runs/demo-$(shell date +%Y%m%d-%H%M%S)

demo: $(VENV)/.installed  ## train PLATO on 3x3 S3 and compare it with the heuristics
	@begin=$$(date +%s) && \
	$(BIN)/plato train --setup wildfire-3x3-S3 --out $(DEMO) --updates 150 && \
	$(BIN)/plato evaluate --setup wildfire-3x3-S3 --out $(DEMO)/evaluation.json \
		--policy noop --policy random --policy weakest --policy strongest \
		--policy $(DEMO) && \
	echo "The demo took $$(($$(date +%s) - begin)) s; the run is in $(DEMO)."

test: lint types check  ## lint, types and all tests

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.installed-dev
	$(BIN)/pyright

check: $(VENV)/.installed-dev browser
	$(BIN)/pytest -n auto --dist loadfile

# Pages are tested in a real browser. Where it is missing and cannot be installed, their
# tests fail and say so; PLATO_WITHOUT_BROWSER=1 skips them instead.
BROWSERS := chromium chromium-browser google-chrome google-chrome-stable

browser:  ## a Chromium for the tests of web pages
	@test -n "$$PLATO_BROWSER$$PLATO_WITHOUT_BROWSER" || \
	test -n "$$(for b in $(BROWSERS); do command -v $$b; done)" || { \
		test "$$(id -u)" = 0 && command -v apt-get > /dev/null && \
		echo "Installing Chromium, for the tests of web pages." && \
		apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			chromium fonts-dejavu-core > /dev/null; } || \
	echo "*** No Chromium, and none could be installed: the tests of web pages will fail. ***"

bench: $(VENV)/.installed-dev  ## how fast it runs on this machine
	$(BIN)/python benchmarks/environment.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/complexity.py
	$(BIN)/python benchmarks/adapters.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/replay_page.py

docs: $(VENV)/.installed-dev  ## the documentation as a site, in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The documentation: site/index.html"

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis site

$(VENV)/.installed: pyproject.toml requirements.lock
	$(call environment)
	$(PIP) install --constraint requirements.lock --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml requirements.lock
	$(call environment)
	$(PIP) install --constraint requirements.lock --editable '.[dev]'
	touch $@ $(VENV)/.installed

define environment
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed; install it, or say where it is: make PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { echo "Python's venv module is needed (on Debian: apt install python3-venv)."; exit 1; }
endef
