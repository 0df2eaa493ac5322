# `make test` is what CI runs: on the debug build, which has the checks of arithmetic
# and the assertions that a release leaves out, and is made in a fraction of the time.

BUILT = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)/debug

.PHONY: test lint unit of-libraries of-binary doc release interop bench mutants deny

test: lint unit doc
	REPERTOIRE_BIN=$(BUILT)/repertoire tests/interop/run

lint:
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings

# The packages that tests need, where they can be had, and a real model for the search.
# Unit tests and the tests of the binary run beside each other: many of either wait, for
# a disk, a database, a kill.
unit:
	tests/packages
	cargo test --workspace --no-run
	if tests/model target/minilm; then \
		export REPERTOIRE_TEST_MODEL=$(CURDIR)/target/minilm; \
	else \
		echo '*** unit: the model of the search cannot be had ***' >&2; \
	fi; \
	$(MAKE) -j2 --output-sync=line of-libraries of-binary

of-libraries:
	cargo test --workspace --lib
	cargo test --workspace --doc

of-binary:
	cargo test --workspace --bins --test '*' --examples

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

release:
	cargo build --release

# The server from outside, with clients that others wrote: see tests/interop/run.
interop: release
	tests/interop/run

bench:
	cargo bench

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
