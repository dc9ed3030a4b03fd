# Two commands set everything up on a machine with Python 3.11+, pip and make: `make demo`, `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help demo test test-long browser chaos bench bench-quick lint schema lock clean

help:
	@echo "make demo    a whole rehearsal campaign on this machine, in under four minutes"
	@echo "make test    the test suite, with branch coverage of core/"
	@echo "make test-long  the slow tests: pilots and budgets, a Prefect outage, packages"
	@echo "make browser pages opened in Chromium (Debian: apt install chromium)"
	@echo "make chaos   100 rehearsal campaigns with a random fault each; about an hour"
	@echo "make bench   what orchestration costs, measured; under 40 minutes, better on an idle machine"
	@echo "make bench-quick  the same in under 6 minutes, with fewer repetitions"
	@echo "make lint    ruff, mypy strict, import floors"
	@echo "make schema  write what is generated from the campaign model: JSON schema and docs/campaign.md"
	@echo "make lock    resolve requirements.lock anew (needs uv)"

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $(READY)

demo: $(READY)
	$(BIN)/pareto demo

test: $(READY)
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder \
	  -m "not browser" --cov --cov-report=term --cov-fail-under=95

test-long: $(READY)
	PARETO_TEST_LONG=1 $(BIN)/python -m pytest -n 2 --dist worksteal tests/long

browser: $(READY)
	$(BIN)/python -m pytest -m browser tests/browser

chaos: $(READY)
	$(BIN)/python -m tests.faults.chaos --campaigns 100 --seed 1

bench: $(READY)
	$(BIN)/python -m bench

bench-quick: $(READY)
	$(BIN)/python -m bench --quick

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

schema: $(READY)
	$(BIN)/python -m core.campaign_schema > campaigns/campaign.schema.json
	$(BIN)/python -m core.campaign_reference > docs/campaign.md

lock:
	uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
	  --no-emit-index-url --no-header --no-annotate --upgrade -o requirements.lock

clean:
	rm -rf $(VENV) .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
