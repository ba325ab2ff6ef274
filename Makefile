# On a fresh machine: make demo, make test.
#   PG_CONFIG=/path/to/pg_config   builds for, and runs, another PostgreSQL (15 to 18)

SHELL := /bin/bash
.DEFAULT_GOAL := help
export PG_CONFIG

.PHONY: help setup build demo psql stop clean check deny test test-16 test-17 test-18 test-matrix test-crash chaos fuzz \
	test-engine test-one bench bench-full compare install

help: ## what can be made
	@grep -E '^[a-z0-9 -]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9 -]+):.*## (.*)/  make \1\t\2/' | expand -t 34

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

clean: ## stop and remove everything made here, except cargo's target folder
	@scripts/cluster.sh clean

check: ## the house rules: layers, lengths, SQL in Rust, repeated lists, words
	@cargo run --quiet -p pg_recur-checks

deny: ## licences, sources and banned crates of all dependencies
	@scripts/deny.sh

test: setup ## everything: formatting, clippy, engine, in-server and external tests
	@scripts/test.sh

test-16 test-17 test-18: setup ## the tests that depend on the server, on that PostgreSQL
	@scripts/test-on.sh $(subst test-,,$@)

test-matrix: test ## make test, then 16, 17 and 18
	@scripts/test-on.sh 16 17 18

test-crash: build ## the long form: fifty rounds of chaos, fifty of crashes, a backlog of a million
	@scripts/test-crash.sh

chaos: build ## faults at random under load, about half an hour: docs/reliability.md (ROUNDS=1000 SEED=1 UPDATE_DOCS=1)
	@ROUNDS=$(ROUNDS) SEED=$(SEED) scripts/chaos.sh

fuzz: ## parsers, searches, decisions and encoders against slow models: 10^8 inputs, a few minutes (EXECUTIONS=2000000)
	@scripts/fuzz.sh $(EXECUTIONS)

test-engine: ## the inner loop of the engine: no server
	@cargo test -p recurrence

test-one: setup ## the inner loop of the extension: some external tests on a debug build (ARGS="--test consuming claim")
	@scripts/test-one.sh $(ARGS)

bench: build ## every benchmark, about 15 minutes: bench/RESULTS.md (SECTION=lateness: one of them)
	@scripts/bench.sh $(SECTION)

bench-full: build ## the same with the large sizes, about an hour
	@scripts/bench.sh --full $(SECTION)

compare: setup ## this build beside another revision, in pairs, about 10 minutes (REVISION=main~1 ROUNDS=15)
	@scripts/compare.sh $(REVISION) $(ROUNDS)

install: setup ## install into the PostgreSQL that PG_CONFIG names
	@scripts/install.sh --system
