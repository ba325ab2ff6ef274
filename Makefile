# The two that matter on a fresh machine: make demo, make test.
#   PG_CONFIG=/path/to/pg_config   builds for, and runs, another PostgreSQL (15 to 18)

SHELL := /bin/bash
.DEFAULT_GOAL := help
export PG_CONFIG

.PHONY: help setup build demo psql stop clean test test-crash test-engine bench bench-full install

help: ## what can be made
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

setup: ## install what is missing: packages, cargo-pgrx, a private PostgreSQL
	@scripts/setup.sh

build: setup ## build the extension and install it into the private PostgreSQL
	@scripts/install.sh

demo: build ## start a private cluster and watch schedules fire
	@scripts/demo.sh

psql: ## open psql on the demo's cluster
	@scripts/cluster.sh psql

stop: ## stop the demo's cluster
	@scripts/cluster.sh stop

clean: ## stop and remove everything that make has made here, but for cargo's target folder
	@scripts/cluster.sh clean

test: setup ## everything: formatting, clippy, engine, in-server and external tests
	@scripts/test.sh

test-crash: build ## the long form: fifty rounds of crashes, a backlog of a million
	@scripts/test-crash.sh

test-engine: ## the inner loop: the recurrence engine alone, no server
	@cargo test -p recurrence

bench: build ## measure everything on private clusters, in about a quarter of an hour: bench/RESULTS.md (SECTION=lateness: one)
	@scripts/bench.sh $(SECTION)

bench-full: build ## the same with the large sizes, in an hour or so
	@scripts/bench.sh --full $(SECTION)

install: setup ## install into the PostgreSQL that PG_CONFIG names
	@scripts/install.sh --system
