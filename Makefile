# `make demo` and `make test` need Python 3.11 or newer and make; the rest they bring along into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SDK := $(VENV)-sdk
PROJECTS := pyproject.toml rlm/pyproject.toml
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

HOSTS ?=
RUNNER ?= subprocess

.PHONY: demo demo-local test test-slow test-hosts test-sdk test-tools lint types contracts check bench clean

demo: $(VENV)/.demo  ## a question answered from a real text behind the S3 protocol; RUNNER=local where nothing can confine code
	@echo "== rlm demo: start an S3 server, upload a text, answer a question about it"
	$(BIN)/rlm demo --runner $(RUNNER)

demo-local: $(VENV)/.dev  ## the same loop with a real small model on this machine; downloads some 530 MB once
	@echo "== a small model (Qwen2.5-Coder-0.5B) behind an endpoint here; optional, skips when the weights cannot be had"
	$(PIP) install --only-binary :all: "xllamacpp==2026.10.11549"
	$(BIN)/python -m benchmarks.local_model

test: $(VENV)/.dev  ## the quick suites
	@echo "== the quick suites (a few minutes)"
	$(BIN)/python -m pytest -n 2 -m "not slow and not local_llm"

test-slow: $(VENV)/.dev  ## what takes minutes: memory at 1 GB, kills in the middle, long fuzzing
	@echo "== the slow suites"
	$(BIN)/python -m pytest -m slow --timeout=1800

test-sdk: $(VENV)/.dev $(VENV)/.sdk  ## the conformance suite of the Claude Agent SDK (435 MB, in an environment of its own)
	@echo "== claude-agent-sdk's conformance suite over our SessionStore"
	for kind in memory directory moto seaweedfs; do \
	  PYTHONPATH=. $(SDK)/bin/python tests/sessions/sdk_conformance.py $$kind || exit 1; done

test-hosts: $(VENV)/.dev  ## the real RLM libraries from PyPI, each in an environment of its own; HOSTS="rlms dspy" for some
	@echo "== building environments of hosts in .venv-hosts (up to 2 GB for all of them)"
	$(BIN)/python -m tests.hosts.environments $(HOSTS)
	$(BIN)/python -m pytest tests/hosts -m slow --timeout=400

test-tools: $(VENV)/.dev  ## MCP by both majors of its SDK and by the Inspector, DSPy; environments in .venv-tools (1 GB)
	@echo "== building environments in .venv-tools"
	for it in "mcp1 mcp>=1.14,<2" "mcp2 mcp>=2,<3" "dspy dspy>=3.3"; do \
	  set -- $$it && $(PYTHON) -m venv .venv-tools/$$1 && \
	  .venv-tools/$$1/bin/python -m pip --disable-pip-version-check --quiet install "$$2" -e . -e ./rlm || exit 1; \
	done
	! command -v npm || npm install --silent --no-audit --no-fund --prefix .venv-tools @modelcontextprotocol/inspector@2
	PATH="$(CURDIR)/.venv-tools/node_modules/.bin:$$PATH" \
	  MONOCONTEXT_MCP_PYTHONS=.venv-tools/mcp1/bin/python:.venv-tools/mcp2/bin/python \
	  MONOCONTEXT_DSPY_PYTHON=.venv-tools/dspy/bin/python \
	  $(BIN)/python -m pytest tests/mcp tests/dspy

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports

check: test lint types contracts  ## what CI runs first

bench: $(VENV)/.dev  ## what reading ahead hides, on a virtual clock, and one slice in nine ways
	$(BIN)/python -m benchmarks virtual
	$(BIN)/python -m benchmarks latency

clean:
	rm -rf $(VENV) .venv-hosts .venv-tools $(SDK) build rlm/build *.egg-info rlm/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "This needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Say: make PYTHON=python3.12 ..."; exit 1; }
	@echo "== making a virtual environment in $(VENV)"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(BIN)/python $(PROJECTS)
	@echo "== installing monocontext, rlm and SeaweedFS into $(VENV) (about 150 MB the first time)"
	$(PIP) install -e ".[demo]" -e ./rlm
	@touch $@

$(VENV)/.dev: $(BIN)/python $(PROJECTS)
	@echo "== installing monocontext, rlm and what the tests need into $(VENV)"
	$(PIP) install -e ".[dev]" -e ./rlm
	@touch $@

$(VENV)/.sdk: pyproject.toml
	@echo "== installing the Claude Agent SDK into $(SDK)"
	$(PYTHON) -m venv $(SDK)
	$(SDK)/bin/python -m pip --disable-pip-version-check --quiet install -e ".[demo]" "moto[s3]>=5.0.20" "claude-agent-sdk==0.2.187"
	@touch $@
