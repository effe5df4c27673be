# Everything is put into .venv/ of the checkout; all state lives under $(SLUICE_HOME).
export SLUICE_HOME ?= $(CURDIR)/.sluice
VENV := $(CURDIR)/.venv
PYTHON := $(VENV)/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-down dev check test bench

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

setup: ## Install what is missing and put everything into .venv/
	@contrib/setup/setup.sh

demo: setup ## Cluster, portal and sample people; submits a DDP job and follows it (root)
	@$(PYTHON) -m contrib.demo up

demo-down: ## End everything that `make demo` started
	@$(PYTHON) -m contrib.demo down

dev: setup ## Web pages with a pretended Slurm and sample jobs, reloading (no root)
	@$(PYTHON) contrib/devserver.py

check: setup ## Formatting, lint, types, import contracts
	@$(PYTHON) contrib/rings.py static

test: setup ## Everything CI runs, in rings with their times (root)
	@$(PYTHON) contrib/rings.py

bench: setup ## Measure the figures of docs/benchmarks.md, one JSON line each (root)
	@$(PYTHON) tests/bench
