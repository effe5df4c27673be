# Everything is put into .venv/ of the checkout; all state lives under $(SLUICE_HOME).
export SLUICE_HOME ?= $(CURDIR)/.sluice
VENV := $(CURDIR)/.venv
PYTHON := $(VENV)/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup setup-run as-root demo demo-down dev check test bench

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: ## Install what is missing and put everything into .venv/
	@contrib/setup/setup.sh

setup-run:
	@contrib/setup/setup.sh --run

as-root:
	@[ "$$(id -u)" = 0 ] || { echo "This needs root: it starts a real Slurm in namespaces of its own."; \
	echo "Without root: make dev (pages with a pretended Slurm), make check, or"; \
	echo "make setup && .venv/bin/python contrib/rings.py static fast store"; exit 1; } >&2

demo: as-root setup-run ## Cluster, portal and sample people; submits a DDP job and follows it (root)
	@$(PYTHON) -m contrib.demo up

demo-down: as-root ## End everything that `make demo` started
	@$(or $(wildcard $(PYTHON)),python3) -m contrib.demo down

dev: setup-run ## Web pages with a pretended Slurm and sample jobs, reloading (no root)
	@$(PYTHON) contrib/devserver.py

check: setup ## Formatting, lint, types, import contracts
	@$(PYTHON) contrib/rings.py static

test: as-root setup ## Everything CI runs, in rings with their times (root)
	@$(PYTHON) contrib/rings.py

bench: setup ## Measure the figures of docs/benchmarks.md, one JSON line each (root)
	@$(PYTHON) tests/bench
