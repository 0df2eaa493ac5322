# `make check test` is what CI runs: on the debug build, where the crates of this project have
# the checks of arithmetic and the assertions that a release leaves out, and which is made in
# a fraction of the time.

BUILT = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/debug

# On a clean clone nothing is compiled twice, and what is kept for that fills the disk.
ifeq ($(CI),true)
export CARGO_INCREMENTAL = 0
endif

.PHONY: check test unit lint tools programs slim build of-libraries of-binary of-machines outside doc release dist deb image site interop bench grading mutants deny

# What is installed is said first, and what was skipped last: a skipped test in `SKIPPED`.
SKIPPED = $(CURDIR)/target/skipped
SUMMED = tests/packages --plan; mkdir -p target; rm -f $(SKIPPED); export REPERTOIRE_SKIPPED=$(SKIPPED); \
	status=0; $(MAKE) $(1) || status=$$?; tests/skipped $(SKIPPED); exit $$status

# Two cores are used throughout: what comes from elsewhere is fetched while the compiler is
# at work, and tests run beside each other, as many of them wait.
BESIDE = -j4 --output-sync=line

# After `check` where that is asked for too, also with MAKEFLAGS=-j2: both build the program.
test: $(filter check,$(MAKECMDGOALS))
	+@$(call SUMMED,$(BESIDE) of-libraries of-binary of-machines outside)

unit:
	+@$(call SUMMED,$(BESIDE) of-libraries of-binary of-machines)

# What the compiler alone knows: the form, the lints, the documentation, and that the program
# works without its features.
check: lint doc slim

lint:
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

# The program without its features. It takes the place of the other one in target/debug until
# `build` puts that back, so nothing runs beside it.
slim:
	cargo clippy --workspace --no-default-features --lib --bins --test slim -- -D warnings
	cargo test --workspace --no-default-features --test slim

build:
	cargo test --workspace --no-run

# The packages that tests need, where they can be had, a real model for the search, and what
# writes the SBOM of a release.
programs:
	tests/packages
	tests/model $(MODEL) || echo '*** tools: the model of the search cannot be had ***' >&2
	deploy/sbom --install || echo '*** tools: cargo-cyclonedx cannot be had ***' >&2

# These, and the clients of others.
tools: programs
	tests/interop/run --install

MODEL = $(CURDIR)/target/minilm
WITH_MODEL = if [ -e $(MODEL)/model.safetensors ]; then export REPERTOIRE_TEST_MODEL=$(MODEL); fi;

# These wait for a disk, a database, a kill.
MACHINES = durability sql_servers
SUITES = $(basename $(notdir $(patsubst %/main.rs,%,$(wildcard tests/*.rs tests/*/main.rs crates/*/tests/*.rs))))
OTHERS = $(filter-out $(MACHINES) slim, $(sort $(SUITES)))

of-libraries: build programs
	$(WITH_MODEL) cargo test --workspace --lib

of-binary: build programs
	$(WITH_MODEL) cargo test --workspace --bins $(OTHERS:%=--test %)

of-machines: build programs
	$(WITH_MODEL) cargo test --workspace $(MACHINES:%=--test %)

outside: build tools
	$(WITH_MODEL) REPERTOIRE_BIN=$(BUILT)/repertoire tests/interop/run

release:
	cargo build --release

# The archive of a release, in target/dist: see docs/setup.md.
dist:
	deploy/sbom --install || echo '*** dist: cargo-cyclonedx cannot be had: the archive has no SBOM ***' >&2
	deploy/dist

# The package for Debian and Ubuntu, in target/dist.
deb:
	deploy/deb --install
	deploy/deb

# An image of the server, by podman: `make image TAG=registry.example/repertoire:1`, and
# `ENGINE=docker make image`.
TAG =

image:
	deploy/image $(TAG)

# The pages as a site, in target/site.
site:
	deploy/site --install
	deploy/site

# The server from outside, with clients that others wrote: see tests/interop/run.
interop: release
	tests/interop/run

bench:
	cargo bench

# All known solutions of all exercises, in another order each time: what `make test` does
# once. `make grading ROUNDS=10` for a shorter look.
ROUNDS = 100

grading:
	REPERTOIRE_GRADING_ROUNDS=$(ROUNDS) cargo test -p repertoire-courses --test corpus
	REPERTOIRE_GRADING_ROUNDS=$(ROUNDS) cargo test --lib known_solutions_about_configs

# Does a test notice when the code is wrong? What differs from BASE is changed in many
# small ways; with `MUTANTS='--package repertoire-store'` all of that. See CONTRIBUTING.md.
BASE = main
MUTANTS = --in-diff target/mutants.diff

mutants:
	@command -v cargo-mutants >/dev/null || { \
		echo '*** mutants: cargo-mutants is not installed (cargo install --locked cargo-mutants) ***' >&2; \
		exit 1; \
	}
	mkdir -p target
	git diff $(BASE) -- '*.rs' >target/mutants.diff
	nice cargo mutants --workspace --output target $(MUTANTS)

# Advisories are a list on the network: without it they are left out, loudly.
deny:
	@if ! command -v cargo-deny >/dev/null; then \
		echo '*** deny: cargo-deny is not installed (cargo install cargo-deny): SKIPPED ***' >&2; \
		exit 0; \
	fi; \
	set -e; \
	cargo deny check bans licenses sources; \
	if cargo deny fetch db 2>/dev/null; then \
		cargo deny check --disable-fetch advisories; \
	else \
		echo '*** deny: the list of advisories cannot be reached: advisories SKIPPED ***' >&2; \
	fi
