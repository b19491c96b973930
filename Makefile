# What one types here; `make help` lists it. A fresh machine needs only Python 3.11 or later, make and git.
# ARGS goes to the command: make up ARGS="--workers 2", make test ARGS="tests/pure -x".

VENV ?= .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.9
LOCK := $(BIN)/uv pip compile --universal --python-version 3.11 --no-emit-index-url --no-header --no-annotate --quiet
# Where it is installed without a compiler; `lock` asks whether all that it pins has wheels there.
PLATFORMS := x86_64-manylinux_2_28 aarch64-manylinux_2_28 aarch64-apple-darwin
# What builds the project itself, here without an isolated environment: pyproject.toml's, and what editing it asks for.
BUILD := hatchling==1.33.0 editables
ARGS ?=
# Test files at a time: most of them wait for leases.
JOBS ?= 4

# A .venv that was moved, or whose Python is gone, is made anew.
USABLE := $(shell grep -qsF "$(abspath $(VENV))" $(BIN)/activate \
	&& $(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo yes)
ifneq ($(USABLE),yes)
$(shell rm -f $(VENV)/.made $(VENV)/.run $(VENV)/.dev)
endif

.PHONY: up dev test chaos check lint format types imports wheel bench lock help
.DELETE_ON_ERROR:

up: $(VENV)/.run  ## run everything on this machine; DUALLOOP_PORT and DUALLOOP_STATE_DIR choose port and folder
	@exec $(BIN)/dualloop up $(ARGS)

dev: $(VENV)/.dev  ## install what tests and checks need

test: $(VENV)/.dev  ## run all tests, on real Redis servers, in random order
	$(BIN)/python -m pytest -m 'not long' -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

chaos: $(VENV)/.dev  ## the random suites of which `make test` runs a sample, in full length
	$(BIN)/python -m pytest -m long --timeout 1800 $(ARGS)

check: lint types imports  ## all that can be said without running anything

lint: $(VENV)/.dev  ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev  ## put the style right
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev  ## strict types, tests included
	$(BIN)/mypy

imports: $(VENV)/.dev  ## who may import whom
	$(BIN)/lint-imports

wheel: $(VENV)/.dev  ## build the wheel, and try it in an empty environment outside the checkout
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist
	.ci/try-wheel dist/*.whl

bench: $(VENV)/.dev  ## measure, beside arq as it comes
	$(BIN)/python -m tests.benchmarks $(ARGS)

lock: $(VENV)/.made  ## pin what pyproject.toml asks for; ARGS=--upgrade for the newest
	printf '%s\n' $(BUILD) | $(LOCK) $(ARGS) --output-file requirements.lock pyproject.toml -
	$(LOCK) $(ARGS) --output-file requirements-dev.lock --constraint requirements.lock --group dev pyproject.toml
	@for python in 3.11 3.12 3.13 3.14; do for platform in $(PLATFORMS); do \
		$(BIN)/uv pip install --quiet --dry-run --target $(VENV)/none --no-build --no-deps --requirement requirements.lock \
			--python-version $$python --python-platform $$platform \
		|| { echo "On $$platform, Python $$python would need a compiler: leave out what has no wheel in pyproject.toml." >&2; exit 1; }; \
	done; done

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# uv installs in a quarter of pip's time; pip is asked where uv fails, since it alone knows the mirrors of a pip.conf.
define install
	@echo "Installing what $(1) pins ..."
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --requirement $(1) \
		|| $(BIN)/python -m pip install --quiet --requirement $(1)
endef

$(VENV)/.run: $(VENV)/.made requirements.lock pyproject.toml
	$(call install,requirements.lock)
	@$(BIN)/uv pip install --quiet --offline --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements-dev.lock
	$(call install,requirements-dev.lock)
	@touch $@

$(VENV)/.made:
	@if [ "$(USABLE)" = yes ]; then exit; fi; \
	for python in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.14; do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "Python 3.11 or later is needed: none was found. Name one with make PYTHON=/path/to/python3." >&2; exit 1; \
	fi; \
	if ! "$$found" -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "$$found cannot make virtual environments: install its venv package first" \
			"(on Debian and Ubuntu: apt-get install $${found##*/}-venv)." >&2; exit 1; \
	fi; \
	echo "Making $(VENV) with $$("$$found" --version), once ..."; \
	rm -rf $(VENV) && "$$found" -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@
