# The two commands of the README, and what they are made of. Each does its own set-up.
SHELL := /bin/bash
RINGFENCE := $(or $(CARGO_TARGET_DIR),target)/release/ringfence
export CARGO_TERM_COLOR ?= auto

.PHONY: demo test test-all check bench build install deb rpm test-packages ansible monitoring web lint docs book soak fuzz clean

demo:
	scripts/install build
	scripts/demo

# on this machine's kernel, and in one virtual machine with systemd
test:
	scripts/install build test
	scripts/test

# what CI runs: the same, in each virtual machine, with other kernels and systemds, attackers and examples
test-all:
	scripts/install build test
	scripts/test all

# what needs neither root nor a VM: format, lints, and the crates that touch no machine, with few seeds of the simulation
PURE := units settings topology layout plan doctor schemas studies simulation tui
check: lint
	RF_SEEDS=100 cargo test --workspace --locked --quiet $(PURE:%=--test %)

bench: build
	scripts/install bench
	scripts/bench

build:
	scripts/install build
	scripts/build

# installs the built program with all that packaging/files names: make install PREFIX=/usr DESTDIR=/tmp/tree
PREFIX ?= /usr/local
install: $(RINGFENCE)
	scripts/stage "$(DESTDIR)" "$(PREFIX)" ringfence other

$(RINGFENCE):
	@echo "nothing is built: make build" >&2; false

# packages of the built program, in target/debian and target/generate-rpm
deb rpm: export CARGO_PROFILE_RELEASE_LTO = fat
deb: build
	scripts/install deb
	scripts/package deb
	lintian --allow-root --fail-on error target/debian/*.deb

rpm: build
	scripts/install rpm
	scripts/package rpm

# installs, upgrades, removes and purges the packages in a VM with systemd
test-packages: deb
	scripts/test-packages

# the Ansible collection: sanity, units, lint, galaxy-importer, molecule, 20 hosts on this machine; its tools go into target/ansible
ansible: build
	scripts/install ansible
	scripts/ansible

# alert rules, dashboards, and the example for alertmanager, with a real Prometheus
monitoring: build
	scripts/install monitoring
	scripts/monitoring

# the live page: its committed files are those of a fresh build, and its tests pass in a browser, with a server of their own and with
# ringfence on this machine (as root); needs node 20 and npm
web: build
	scripts/install web
	scripts/web check
	scripts/web test
	scripts/web real $(RINGFENCE)

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

# writes what of docs/ is made of tables: settings, knobs, layout (with its schema), experiment, fields, metrics, why, openapi.json,
# troubleshooting
docs:
	RF_BLESS=1 cargo test --locked --quiet -p ringfence-settings
	RF_BLESS=1 cargo test --locked --quiet -p ringfence-layout pages
	RF_BLESS=1 cargo test --locked --quiet -p ringfence-experiment --test schemas page
	RF_BLESS=1 cargo test --locked --quiet -p ringfence-exporters docs
	monitoring/make-dashboards
	RF_BLESS=1 cargo test --locked --quiet -p ringfence-daemon --test socket -- docs/openapi.json
	RF_BLESS=1 cargo test --locked --quiet -p ringfence-web --lib document
	RF_BLESS=1 cargo test --locked --quiet -p ringfence-cli --test cli -- "documents: docs/troubleshooting.md"

# docs/ as a book: target/book/index.html
book:
	scripts/install book
	target/tools/bin/mdbook build docs

# many more seeds of the simulation than the tests run: make soak SEEDS=100000 FIRST=0
SEEDS ?= 100000
FIRST ?= 0
soak:
	RF_FIRST=$(FIRST) RF_SEEDS=$(SEEDS) RF_JOBS=$$(nproc) cargo test --locked --quiet --profile soak \
		-p ringfence-apply --test simulation after_any_way -- --nocapture

# searches longer than the tests for bytes that break a parser's promise: make fuzz FOR=600 TARGETS="journal log"
FOR ?= 60
fuzz:
	scripts/fuzz $(FOR) $(TARGETS)

clean:
	cargo clean
