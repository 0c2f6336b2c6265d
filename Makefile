# The two commands of the README, and what they are made of. Each does its own set-up.
SHELL := /bin/bash
RINGFENCE := $(or $(CARGO_TARGET_DIR),target)/release/ringfence
export CARGO_TERM_COLOR ?= auto

.PHONY: demo test bench build lint docs clean

demo: build
	$(RINGFENCE) lab run tour

test:
	scripts/install build test
	scripts/test

bench: build
	scripts/install bench
	scripts/bench

build:
	scripts/install build
	scripts/build

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked --quiet -- -D warnings

# writes docs/settings.md, docs/layout.md, docs/layout.schema.json, docs/fields.md and docs/metrics.md anew from their tables
docs:
	RF_BLESS=1 cargo test --locked --quiet -p ringfence-settings
	RF_BLESS=1 cargo test --locked --quiet -p ringfence-layout pages
	RF_BLESS=1 cargo test --locked --quiet -p ringfence-watch docs

clean:
	cargo clean
