# `make check test` is what CI runs: on the debug build, where the crates of this project have
# the checks of arithmetic and the assertions that a release leaves out, and which is made in
# a fraction of the time.

TARGET = $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
BUILT = $(TARGET)/debug
TOOLS = $(TARGET)/tools/tests/bin
NEXTEST = $(LINTED) $(TOOLS)/cargo-nextest nextest

# Clippy compiles what the tests run, and refuses what it warns of. `cargo clippy` would check
# each crate and dependency once more, for a third of the time of a build. A `cargo` without
# this keeps its own builds of the crates of this project, in the same folder.
LINTED = RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings

# On a clean clone nothing is compiled twice, and what is kept for that fills the disk. A panic
# names its line without debug info, which is a part of each of some sixty programs.
ifeq ($(CI),true)
export CARGO_INCREMENTAL = 0
export CARGO_PROFILE_DEV_DEBUG = 0
endif

.PHONY: quick programs form rendered check test unit nightly doc slim build ready rust outside packages tools model sbom \
	nightly-tools nightly-rust nightly-outside release dist deb image site interop bench grading mutants deny advisories

# A run leaves here what it was: reports in the form of JUnit, the pace of the machine, and
# what was skipped.
RUN = $(TARGET)/tests
RUST = $(TARGET)/nextest/$(1)/junit.xml
export REPERTOIRE_SKIPPED = $(RUN)/skipped
export REPERTOIRE_PACE = $(RUN)/pace

# Builds and fetches beside each other, then runs one kind of tests after the other, so that
# their times are their own: `$(call SUMMED,PREPARED,TESTS,REPORTS,NIGHTLY)`. What is installed is
# said first; what was skipped, the slowest tests and how many passed come last.
SUMMED = tests/packages --plan $(4); mkdir -p $(RUN); rm -f $(RUN)/* $(3); status=0; \
	$(MAKE) -j4 --output-sync=line $(1) || status=1; tests/times --pace >$(RUN)/pace; \
	for tests in $(2); do $(MAKE) $$tests || status=1; done; \
	tests/times --pace >>$(RUN)/pace; tests/skipped $(RUN)/skipped; tests/times $(3) || status=1; exit $$status

# After `check` where that is asked for too, also with MAKEFLAGS=-j2: both build the program.
test: $(filter check,$(MAKECMDGOALS))
	+@$(call SUMMED,build tools,rust outside,$(call RUST,default) $(RUN)/outside.xml)

unit:
	+@$(call SUMMED,build packages,rust,$(call RUST,default))

# What a minute can find, once all is built: form, licenses, spelling, dead links, pages and golden files
# that were not rendered, files and crates that are too long.
quick: form rendered

# What these targets run, installed once, also with -j.
programs:
	@tests/programs

form: programs deny
	cargo fmt --check
	$(TOOLS)/typos
	$(TOOLS)/rumdl check --silent --no-cache --enable MD042,MD051,MD052,MD057 *.md docs clients examples deploy

rendered: programs
	$(NEXTEST) run --workspace -E 'binary(quick) + test(golden)' --status-level fail

# And what the compiler alone knows. All is built at once, since the server, which the tests of
# `rendered` need, compiles on one processor at the end of what it is made of.
check: form $(if $(filter test,$(MAKECMDGOALS)),ready) build rendered

# Where the tests are asked for as well, what they need is installed while all is built.
ready: form
	@tests/packages --plan; mkdir -p $(RUN)
	+@$(MAKE) -j4 --output-sync=line build tools

# What changes seldom or takes long; CONTRIBUTING.md has the table of who runs which part of it
# by hand. The numbers are those of a night: more of the same than every run does. ONLY is an
# expression of cargo-nextest for some of it: `make nightly-rust ONLY='binary(durability)'`.
nightly: export REPERTOIRE_NIGHTLY = true
nightly:
	+@$(call SUMMED,build nightly-tools,nightly-rust nightly-outside,$(call RUST,nightly) $(RUN)/outside.xml,--nightly)
	$(MAKE) doc slim

doc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items

# The program without its features. It takes the place of the other one in target/debug until
# `build` puts that back, so nothing runs beside it.
slim: programs
	cargo clippy --workspace --no-default-features --lib --bins --test slim -- -D warnings
	$(NEXTEST) run --workspace --no-default-features --test slim

# The programs of the tests, the binary, the benchmarks, and the fixtures of the conformance suite.
build: programs
	$(LINTED) cargo test --workspace --all-targets --no-run

packages:
	tests/packages

# The clients of others.
tools: packages
	tests/interop/run --install

# Tests wait for disks, servers and children, so more of them run than there are processors.
THREADS = $(shell echo $$((2 * $$(nproc))))

rust: build
	$(NEXTEST) run --workspace --test-threads $(THREADS)

INTEROP = REPERTOIRE_BIN=$(BUILT)/repertoire REPERTOIRE_CONFORMANCE=$(BUILT)/examples/conformance tests/interop/run

outside: build
	$(INTEROP) --junit-xml=$(RUN)/outside.xml

# A real model for the search.
MODEL = $(TARGET)/minilm

model:
	tests/model $(MODEL) || echo '*** tools: the model of the search cannot be had ***' >&2

# What writes the SBOM of a release.
sbom:
	deploy/sbom --install || echo '*** tools: cargo-cyclonedx cannot be had ***' >&2

nightly-tools: model sbom
	tests/packages --nightly
	tests/interop/run --nightly --install

nightly-rust: export REPERTOIRE_NIGHTLY = true
nightly-rust: build model
	REPERTOIRE_TEST_MODEL=$(MODEL) REPERTOIRE_FUZZ_SECONDS=20 \
		$(NEXTEST) run --workspace --profile nightly --test-threads $(THREADS) --run-ignored all $(if $(ONLY),-E '$(ONLY)')

nightly-outside: build
	$(INTEROP) --nightly --junit-xml=$(RUN)/outside.xml

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

# All known solutions of all exercises, in another order each time: `make test` grades one for
# each verdict of an exercise, `make nightly` all of them three times. `make grading ROUNDS=10` for a shorter look.
ROUNDS = 100

grading:
	REPERTOIRE_GRADING_ROUNDS=$(ROUNDS) cargo test -p repertoire-courses --test graders corpus::
	REPERTOIRE_GRADING_ROUNDS=$(ROUNDS) cargo test -p repertoire-server --lib known_solutions_about_configs

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

# Licenses and sources of all that is built, and crates that are banned (deny.toml).
deny: programs
	@$(TOOLS)/cargo-deny --locked check --hide-inclusion-graph -A no-license-field bans licenses sources

# The list of advisories is on the network: the scheduled workflow asks for it. With CI=true it
# fails where it cannot be had.
advisories: programs
	@if $(TOOLS)/cargo-deny fetch db; then \
		$(TOOLS)/cargo-deny --locked check --disable-fetch --hide-inclusion-graph advisories; \
	else \
		echo '*** advisories: the list cannot be reached: SKIPPED ***' >&2; [ "$(CI)" != true ]; \
	fi
