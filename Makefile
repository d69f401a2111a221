# `make demo` and `make test` need Python 3.11 or newer and make; the rest they bring along into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SDK := $(VENV)-sdk
LOWEST := $(VENV)-lowest
NEWEST := $(VENV)-newest
LIBRARIES := $(VENV)-libraries
PROJECTS := pyproject.toml rlm/pyproject.toml
PIP := PYTHONWARNINGS=ignore $(BIN)/python -m pip --disable-pip-version-check
UV := $(BIN)/uv
# uv does not read where pip takes packages from.
INDEX = $(shell $(PIP) config list 2>/dev/null | sed -n "s/.*\.index-url='\(.*\)'/\1/p" | tail -n 1)
UV_INSTALL = $(if $(INDEX),UV_DEFAULT_INDEX='$(INDEX)' )$(UV) pip install --quiet

HOSTS ?=
RUNNER ?= confined
ENGINE ?= podman
SUITES ?= tests
FUZZ ?= 20
QUICK := "not slow and not fuzz and not local_llm"
BOUNDS := tests/stores tests/text/search tests/cli tests/rlm/calls tests/rlm/cli tests/rlm/models

# Compiled files spare a minute of each run: without them each process of a test compiles the product.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help dist demo demo-local test test-slow test-all fuzz test-wheels test-lowest test-newest test-hosts test-libraries test-clouds test-docker test-sdk test-agents test-tools test-wasm lint types contracts check coverage mutants bench docs site clean

help:  ## print this list
	@sed -n 's/^\([a-z][a-z0-9-]*\):.*  ## \(.*\)/\1 \2/p' Makefile | while read -r name text; do printf '%-16s%s\n' "$$name" "$$text"; done

demo: $(VENV)/.demo  ## a question answered from a real text behind the S3 protocol; RUNNER=local where nothing can confine code
	@echo "== rlm demo: start an S3 server, upload a text, answer a question about it"
	$(if $(wildcard .venv-wasm),MONOCONTEXT_PYODIDE=.venv-wasm/node_modules/pyodide )$(BIN)/rlm demo --runner $(RUNNER)

demo-local: $(VENV)/.all  ## the same loop with a real small model on this machine; downloads some 530 MB once
	@echo "== a small model (Qwen2.5-Coder) behind an endpoint here; optional, skips when the weights cannot be had"
	$(PIP) install --quiet --only-binary :all: "xllamacpp==2026.10.11549"
	$(BIN)/python examples/local_model.py

test: $(VENV)/.test  ## the quick suites: two minutes on two cores, SUITES=tests/text for some
	@echo "== the quick suites: some two minutes on two idle cores"
	$(BIN)/python -m pytest -n 3 -m $(QUICK) $(SUITES)

test-slow: $(VENV)/.all  ## real servers, sandboxes, kills, memory, the documentation's code: a quarter of an hour
	@echo "== the slow suites: a quarter of an hour on two idle cores"
	$(BIN)/python -m pytest -n 2 -m "slow and not fuzz" --timeout=1800 $(SUITES)

test-all: test test-slow  ## the quick and the slow suites

fuzz: $(VENV)/.all  ## campaigns, and what only a quiet machine can promise: each property test at random, FUZZ=20 times its examples
	@echo "== campaigns at random: an hour or more"
	MONOCONTEXT_FUZZ=$(FUZZ) $(BIN)/python -m pytest -n 2 -m "fuzz or hypothesis" --timeout=14400 $(SUITES)

test-wheels: $(VENV)/.all  ## both wheels and sdists: what is in them, what they say, and what they do in an empty environment
	$(BIN)/python -m pytest tests/packaging/test_wheels.py -m slow -rs

dist:  ## both distributions in dist/, checked as PyPI checks them
	@$(PYTHON) -m venv .venv-dist
	@.venv-dist/bin/python -m pip --disable-pip-version-check --quiet install build twine
	rm -rf dist
	.venv-dist/bin/python -m build --outdir dist .
	.venv-dist/bin/python -m build --outdir dist rlm
	.venv-dist/bin/python -m twine check --strict dist/*

test-lowest: $(LOWEST)/.ready  ## stores, texts and commands with the oldest dependencies that pyproject.toml admits
	$(LOWEST)/bin/python -m pytest -n 2 -m $(QUICK) $(BOUNDS)

test-newest: $(NEWEST)/.ready  ## the same with the newest, which users get; aioboto3 holds back the boto3 of the other suites
	@echo "== $$($(NEWEST)/bin/python -c 'import boto3; print("boto3", boto3.__version__)')"
	$(NEWEST)/bin/python -m pytest -n 2 -m $(QUICK) $(BOUNDS) tests/mcp

test-sdk: $(VENV)/.all $(VENV)/.sdk  ## the conformance suite of the Claude Agent SDK (435 MB, in an environment of its own)
	@echo "== claude-agent-sdk's conformance suite over examples/agent_sdk_sessions.py"
	for kind in directory seaweedfs; do \
	  PYTHONPATH=. $(SDK)/bin/python tests/sessions/sdk_conformance.py $$kind || exit 1; done

test-agents: $(VENV)/.all $(NEWEST)/.ready  ## Claude Code and Codex from npm, newest (700 MB), each against a stand-in model
	npm install --silent --no-audit --no-fund --prefix .venv-agents \
	  @anthropic-ai/claude-code@latest @openai/codex@latest
	MONOCONTEXT_AGENTS="$(CURDIR)/.venv-agents/node_modules" MONOCONTEXT_MCP_PYTHONS="$(CURDIR)/$(NEWEST)/bin/python" \
	  $(BIN)/python -m pytest tests/agents -rs --timeout=900

test-hosts: $(VENV)/.all  ## the real RLM libraries from PyPI, each in an environment of its own; HOSTS="rlms dspy" for some
	@echo "== building environments of hosts in .venv-hosts (up to 2 GB for all of them)"
	$(BIN)/python -m tests.hosts.environments $(HOSTS)
	$(BIN)/python -m pytest tests/hosts -m "slow and not fuzz" --timeout=400

test-libraries: $(LIBRARIES)/.ready  ## six libraries from PyPI that read a text over fsspec, in an environment of their own (1 GB)
	MONOCONTEXT_REQUIRE_LIBRARIES=1 $(LIBRARIES)/bin/python -m pytest tests/test_readers.py -q

test-clouds: $(VENV)/.all  ## gs:// and az:// against emulators; Azurite from npm (190 MB)
	npm install --silent --no-audit --no-fund --prefix .venv-clouds azurite@3
	PATH="$(CURDIR)/.venv-clouds/node_modules/.bin:$$PATH" $(BIN)/python -m pytest tests/stores/test_clouds.py tests/faults/test_clouds_matrix.py

test-wasm: $(VENV)/.all  ## the runner wasm, attacked; needs Node 20 and npm, brings Pyodide (14 MB) into .venv-wasm
	npm install --silent --no-audit --no-fund --prefix .venv-wasm pyodide@314
	MONOCONTEXT_PYODIDE="$(CURDIR)/.venv-wasm/node_modules/pyodide" $(BIN)/python -m pytest tests/rlm/runners/confine/test_wasm.py -rs

test-docker: $(VENV)/.all  ## the runner `docker` with a real engine (ENGINE=docker for that one): the claims of docs/security.md
	MONOCONTEXT_CONTAINERS=$(ENGINE) $(BIN)/python -m pytest tests/rlm/runners/confine/test_sandbox_claims.py tests/rlm/runners/confine/test_sandbox_docker.py

test-tools: $(VENV)/.all  ## MCP by its SDK and by the Inspector, DSPy, any-llm; environments in .venv-tools (1 GB)
	@echo "== building environments in .venv-tools"
	for it in "mcp mcp>=2" "dspy dspy>=3.4"; do \
	  set -- $$it && $(PYTHON) -m venv .venv-tools/$$1 && \
	  .venv-tools/$$1/bin/python -m pip --disable-pip-version-check --quiet install "$$2" -e . -e ./rlm || exit 1; \
	done
	! command -v npm || npm install --silent --no-audit --no-fund --prefix .venv-tools @modelcontextprotocol/inspector@2
	PATH="$(CURDIR)/.venv-tools/node_modules/.bin:$$PATH" \
	  MONOCONTEXT_MCP_PYTHONS=.venv-tools/mcp/bin/python \
	  MONOCONTEXT_DSPY_PYTHON=.venv-tools/dspy/bin/python \
	  $(BIN)/python -m pytest tests/mcp tests/memory/test_bridges.py
	$(PYTHON) -m venv .venv-tools/models  # any-llm holds anthropic below 1.0, which the tests of our own backend are above
	.venv-tools/models/bin/python -m pip install --quiet "pip>=25.1"
	.venv-tools/models/bin/python -m pip --disable-pip-version-check --quiet install --group all -e . -e "./rlm[models]"
	.venv-tools/models/bin/python -m pytest tests/rlm/models

lint: $(VENV)/.check  ## style of the code, by ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.check  ## types, by mypy --strict
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

contracts: $(VENV)/.check  ## which package may import which, by import-linter, and how many lines a room may have
	$(BIN)/lint-imports
	$(BIN)/python docs/house.py --weigh

check: test lint types contracts  ## what CI runs first

coverage: $(VENV)/.all  ## lines of code that the quick suites run, in percent; SUITES="tests/format tests/cli" for some
	$(BIN)/python -m pytest $(SUITES) -n 2 -m $(QUICK) --cov --cov-report=term:skip-covered

mutants: $(VENV)/.all  ## break 200 single lines of the product, in a clone, and see whether a quick test fails
	$(BIN)/python -m pytest $(SUITES) -q -n 2 -m $(QUICK) --cov --cov-context=test --cov-report=
	$(BIN)/python -m tests.mutation

bench: $(VENV)/.all  ## what reading ahead hides, on a virtual clock
	$(BIN)/python -m benchmarks virtual

docs: $(VENV)/.docs  ## the documentation as a site, served at http://127.0.0.1:8000
	$(BIN)/mkdocs serve

site: $(VENV)/.docs  ## the same, built into build/site; a broken link, or a page that no menu has, is an error
	$(BIN)/mkdocs build --strict

clean:  ## remove environments, caches and build folders
	rm -rf $(VENV) .venv-dist dist .venv-hosts .venv-tools .venv-wasm $(SDK) $(LOWEST) $(NEWEST) $(LIBRARIES) build rlm/build *.egg-info rlm/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "This needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Say: make PYTHON=python3.12 ..."; exit 1; }
	@echo "== making a virtual environment in $(VENV)"
	$(PYTHON) -m venv $(VENV)

$(UV): $(BIN)/python
	@$(PIP) install --quiet uv  # installs in a fifth of the time

$(VENV)/.demo: $(UV) $(PROJECTS)
	@echo "== installing monocontext, rlm and SeaweedFS into $(VENV) (about 150 MB the first time)"
	$(UV_INSTALL) --python $(BIN)/python -e ".[demo]" -e ./rlm
	@touch $@

$(VENV)/.test: GROUP := test
$(VENV)/.check: GROUP := check
$(VENV)/.docs: GROUP := docs
$(VENV)/.all: GROUP := all
$(VENV)/.test $(VENV)/.check $(VENV)/.docs $(VENV)/.all: $(UV) $(PROJECTS)
	@echo "== installing monocontext, rlm and the group '$(GROUP)' of pyproject.toml into $(VENV)"
	$(UV_INSTALL) --python $(BIN)/python -e . -e ./rlm --group $(GROUP)
	@touch $@

$(LOWEST)/.ready: RESOLUTION := lowest-direct
$(LOWEST)/.ready: EXTRAS := dask,demo,fsspec,langgraph,mcp,obstore
$(NEWEST)/.ready: RESOLUTION := highest
$(NEWEST)/.ready: EXTRAS := dask,demo,fsspec,langgraph,mcp,obstore
$(LOWEST)/.ready $(NEWEST)/.ready: $(UV) $(PROJECTS)
	@echo "== installing dependencies into $(@D), versions: $(RESOLUTION)"
	$(UV) venv --quiet --clear --python $(BIN)/python $(@D)
	$(UV_INSTALL) --python $(@D)/bin/python --resolution $(RESOLUTION) \
	  -e ".[$(EXTRAS)]" -e "./rlm[anthropic]" \
	  --group test
	@touch $@

$(VENV)/.sdk: pyproject.toml
	@echo "== installing the Claude Agent SDK into $(SDK)"
	$(PYTHON) -m venv $(SDK)
	$(SDK)/bin/python -m pip --disable-pip-version-check --quiet install -e ".[demo]" "moto[s3]>=5.1.18" "claude-agent-sdk==0.2.187"
	@touch $@

$(LIBRARIES)/.ready: $(UV) pyproject.toml
	@echo "== installing libraries into $(LIBRARIES)"
	$(UV) venv --quiet --clear --python $(BIN)/python $(LIBRARIES)
	$(UV_INSTALL) --python $(LIBRARIES)/bin/python -e . pytest pytest-timeout hypothesis fsspec \
	  "dask[dataframe]" datasets duckdb pandas polars pyarrow
	@touch $@
