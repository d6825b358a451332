# Everything starts here. `make help` lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
# What this command line sets is for these targets: another makefile has a BASE of its own.
MAKEOVERRIDES :=

PREFIX  ?= /usr/local
DESTDIR ?=
CARGO   ?= cargo

TARGET  := $(abspath $(or $(CARGO_TARGET_DIR),target))
RELEASE := $(TARGET)/release
BUILD   := $(CURDIR)/build

export RINGFENCE := $(RELEASE)/ringfence

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what is missing to build (Debian 12; needs root or sudo only if something is missing)
	@scripts/setup.sh build

.PHONY: command
command: setup
	@$(CARGO) build --release --workspace --quiet

.PHONY: build
build: command ## Build the command, the libraries and what modules are linked with (a libc among it)
	@sysroot/build.sh

.PHONY: demo
demo: build ## Fence zlib, compress a real file, then let a hostile module try everything
	@apps/demo/run.sh

.PHONY: test
test: ## Everything that has to pass before a change lands (half an hour on two cores)
	@scripts/setup.sh test || scripts/setup.sh build
	@scripts/test.sh

.PHONY: check
check: build ## What to run before each commit: format, lints, pages, unit tests, a smoke run (under 2 minutes)
	@scripts/setup.sh test || scripts/setup.sh build
	@scripts/test.sh --quick

.PHONY: soak
soak: ## The long tests: all torture programs at all levels, and more; hours
	@scripts/setup.sh test
	@scripts/setup.sh farm
	@scripts/test.sh --soak

.PHONY: farm
farm: build ## Build Debian's packages natively and fenced, unmodified, with their own tests (FARM="--only A,B"; docs/farm.md)
	@scripts/setup.sh farm
	@tests/farm/farm.py $(FARM)

.PHONY: bench
bench: build ## Measure fenced code against native code, wasm2c and Wasmtime, and calls (BENCH="--quick": minutes)
	@scripts/setup.sh bench
	@bench/run.sh $(BENCH)

.PHONY: bench-report
bench-report: ## Render docs/performance.md and its plots from the figures of `make bench`
	@bench/run.sh report

.PHONY: bench-bounds
bench-bounds: build ## Measure the bounds: memory, time, limits, reports (JSON=FILE; BASE=REVISION: speeds beside that one's)
	@tests/hostile/table.sh $(if $(BASE),--base $(BASE)) $(if $(JSON),--json $(JSON))

.PHONY: evidence
evidence: build ## Run the commands of docs/evidence.md that can run here (ROWS=PREFIX: only rows that begin so)
	@scripts/evidence.py $(ROWS)

.PHONY: docs
docs: ## Build the book of all pages, with search, into build/book, and check its links
	@scripts/setup.sh docs
	@scripts/book.sh

.PHONY: lab
lab: build ## Put faults into libraries, one at a time, natively, fenced, with rights to words (LAB="--mutants 1000 …"; docs/lab.md)
	@lab/run.sh run $(LAB)

.PHONY: demo-words
demo-words: build ## Rights to single words: 32 of 144 bytes of a host's structure, the 33rd, a run that writes its policy, fifty faults in libraries (docs/words.md)
	@$(CARGO) build --release --quiet -p ringfence --example words
	@examples/words/demo.sh "$(RELEASE)"
	@echo; echo "Fifty faults in libraries, natively, fenced and with rights to words (docs/lab.md):"
	@lab/run.sh run --mutants 50 --again --results build/lab/demo.jsonl \
		--subject zlib,libpng,sqlite,sqlite-in-place,libext2fs,threads

.PHONY: demo-functions
demo-functions: build ## Functions from text, typed in, called, replaced, deleted; filters beside libpcap; the image server (docs/functions.md)
	@scripts/setup.sh functions
	@$(CARGO) build --release --quiet -p ringfence-packet-filter --examples
	@integrations/packet-filter/demo.sh "$(RELEASE)"
	@apps/transcode/demo.sh "$(RELEASE)"

.PHONY: bench-functions
bench-functions: build ## What functions from text, packet filters and small pictures cost, drawn into docs/functions-figures.md (FUNCTIONS="--quick")
	@scripts/setup.sh functions
	@scripts/setup.sh transcode
	@$(CARGO) run --release --quiet -p ringfence-functions --example plugs -- --json build/bench/plugs.json
	@$(CARGO) run --release --quiet -p ringfence-functions --example functions -- --json build/bench/texts.json
	@$(CARGO) run --release --quiet -p ringfence-packet-filter --example filters -- --json build/bench/filters.json
	@apps/transcode/bench.py --only sizes --charts build/bench/pictures.json $(FUNCTIONS)
	@bench/run.sh charts build/bench/plugs.json build/bench/texts.json build/bench/filters.json build/bench/pictures.json

.PHONY: demo-transcode
demo-transcode: build ## The image server: a picture before and after, a function typed in, pictures that are damaged (docs/transcode.md)
	@apps/transcode/demo.sh "$(RELEASE)"

.PHONY: test-transcode
test-transcode: build ## The tests of the image server, over its sockets and in a browser
	@scripts/setup.sh transcode
	@apps/transcode/test/run.sh

.PHONY: bench-transcode
bench-transcode: build ## What a picture costs: fenced beside plain, a process and Wasmtime, and with damaged ones among them (BENCH="--quick")
	@scripts/setup.sh transcode
	@apps/transcode/bench.py $(BENCH)

.PHONY: demo-postgresql
demo-postgresql: build ## Functions of PostgreSQL in a temporary cluster: a call, a crash, an endless loop (docs/postgresql.md)
	@scripts/setup.sh postgresql
	@integrations/postgresql/demo.sh

.PHONY: test-postgresql
test-postgresql: build ## The tests of the language plfenced, in a private copy of the installed server
	@scripts/setup.sh postgresql
	@integrations/postgresql/test/run.sh
	@integrations/postgresql/test/interrupts.sh
	@integrations/postgresql/test/clusters.sh
	@integrations/postgresql/test/contrib.sh check

.PHONY: bench-postgresql
bench-postgresql: build ## What a call in a query costs: plfenced beside C and the other languages; queries over polygons
	@scripts/setup.sh postgresql
	@integrations/postgresql/bench.py
	@integrations/postgresql/latency.py
	@integrations/postgresql/sequoia.py

.PHONY: install-postgresql
install-postgresql: ## Install the language plfenced into the PostgreSQL of pg_config (after `make install`)
	@scripts/setup.sh postgresql
	@integrations/postgresql/install.sh "$(DESTDIR)" "$(PREFIX)"

.PHONY: demo-httpd
demo-httpd: build ## Pages of Apache in fenced native code, on a private server: a page, a crash, the status page (docs/httpd.md)
	@scripts/setup.sh httpd
	@integrations/httpd/demo.sh

.PHONY: test-httpd
test-httpd: build ## The tests of Apache's module mod_fenced, on private servers
	@scripts/setup.sh httpd
	@integrations/httpd/test/run.sh
	@integrations/httpd/test/stock.sh
	@integrations/httpd/test/framework.sh --quick
	@integrations/httpd/test/page.sh

.PHONY: bench-httpd
bench-httpd: build ## What a page costs: fenced beside static files, plain modules, FastCGI, uWSGI and CGI; what faults cost others; stock modules, drawn
	@scripts/setup.sh httpd
	@integrations/httpd/bench.py --json build/bench/httpd-pages.json $(BENCH)
	@integrations/httpd/bench_stock.py --json build/bench/httpd.json $(BENCH_STOCK)
	@bench/run.sh charts build/bench/httpd-pages.json build/bench/httpd.json

.PHONY: install-httpd
install-httpd: ## Install mod_fenced into the Apache of apxs (after `make install`)
	@scripts/setup.sh httpd
	@integrations/httpd/install.sh "$(DESTDIR)" "$(PREFIX)"

.PHONY: install-transcode
install-transcode: build ## Install the image server with its module below PREFIX; DESTDIR is respected
	@apps/transcode/build.sh
	@$(CARGO) build --release --quiet -p ringfence-transcode -p ringfence-process
	@apps/transcode/install.sh "$(RELEASE)" "$(DESTDIR)" "$(PREFIX)"

.PHONY: deb-postgresql
deb-postgresql: build ## Make a Debian package of the language plfenced: build/deb/postgresql-15-plfenced_VERSION_amd64.deb
	@scripts/setup.sh postgresql
	@integrations/postgresql/deb.sh "$(RELEASE)"

.PHONY: deb-httpd
deb-httpd: build ## Make a Debian package of mod_fenced: build/deb/libapache2-mod-fenced_VERSION_amd64.deb
	@scripts/setup.sh httpd
	@integrations/httpd/deb.sh "$(RELEASE)"

.PHONY: fmt
fmt: ## Format the Rust sources
	@$(CARGO) fmt --all

.PHONY: lint
lint: ## rustfmt, clippy and shellcheck without the tests
	@scripts/test.sh --only format,clippy,shell

.PHONY: install
install: build ## Install below PREFIX (default /usr/local); DESTDIR is respected
	@scripts/install.sh "$(RELEASE)" "$(DESTDIR)" "$(PREFIX)"

.PHONY: deb
deb: build ## Make a Debian package of what `make install` installs: build/deb/ringfence_VERSION_amd64.deb
	@scripts/deb.sh "$(RELEASE)"

.PHONY: wheel
wheel: command ## Make the Python wheel: build/wheel/ringfence-VERSION-py3-none-linux_x86_64.whl
	@scripts/wheel.sh "$(RELEASE)"

.PHONY: clean
clean: ## Remove what was built
	@$(CARGO) clean --quiet
	@rm -rf "$(BUILD)"
