# Two targets do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
STAMP := $(VENV)/.installed
MEANT := Failed items above, if any, are the scenarios that the agent 'paranoid' damages on purpose (README, 'The demo').

.PHONY: demo test validate lint lock clean

demo: $(STAMP)  ## set up, then let the three scripted agents run on all items; gates make the exit status the aggregate's
	@set -x; $(BIN)/python -m pytest --paranoia -n $(JOBS) --paranoia-min-tsr 100 $(ARGS) && { set +x; } 2>/dev/null \
	  && echo "Done. $(MEANT)" \
	  || { { status=$$?; set +x; } 2>/dev/null; echo "The demo ended with exit status $$status. $(MEANT) What else is wrong stands in the section" \
	  "'paranoia' above, or before it where there is none; trials without a result have another chance with the command that it names." >&2; \
	  exit $$status; }

test: lint  ## set up, check style and types, run all tests; what the machine lacks is skipped with the reason
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

validate: $(STAMP)  ## prove every item: oracles, reference runs, judge, wording, reach
	$(BIN)/python -m pytest --paranoia-validate -n $(JOBS) -q $(ARGS)

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

$(STAMP): requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { echo "the venv module is missing; on Debian: apt-get install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

lock: $(STAMP)  ## renew requirements/dev.txt from pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --group dev --all-extras --generate-hashes --universal --python-version 3.11 \
	  --no-emit-index-url --no-header --no-annotate --upgrade --output-file requirements/dev.txt

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache
