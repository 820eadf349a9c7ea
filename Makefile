# What a person types. Whatever needs more than a line or two lives in scripts/.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup build demo plans check check-all test test-full bench validate docs install release clean

PREFIX ?= /usr/local
DEST = $(DESTDIR)$(PREFIX)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: ## install what is missing for any of the targets below, and only that
	@scripts/setup test

# What `--version` names; `cargo build` alone does not know it.
build demo plans: export PGSTRATA_COMMIT = $(shell GIT_OPTIONAL_LOCKS=0 git -c safe.directory='*' describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null)

build: ## build target/release/pgstrata
	@scripts/setup build
	cargo build --release --locked

demo: ## compare ext4, xfs, btrfs and tmpfs under PostgreSQL and write a report (root; 10 minutes after the build)
	@scripts/setup demo
	cargo build --release --locked
	target/release/pgstrata run --quick demo/which-filesystem.toml || [ $$? -eq 1 ] # 1: a stack could not be built here; it says which

plans: ## run every shipped plan that this host can run with --quick, and say how long each took (root; 90 minutes)
	@scripts/setup demo
	@scripts/setup postgresql
	cargo build --release --locked
	scripts/plans

check: ## formatting, lints, rules of the house, licences of the dependencies
	@scripts/setup check
	scripts/check

check-all: check ## check, types on other systems, advisories of the dependencies
	@scripts/setup check-all
	scripts/check --all

test: check ## check, then the tests; lists at its end what could not run here and why (15 minutes after the build)
	@scripts/setup test
	scripts/test

test-full: check ## the same with all combinations, layers in guests of every tried suite, Slurm (root; hours; SHARE=5/12 for a part)
	@PGSTRATA_TEST_GUEST="trixie bookworm" scripts/setup test
	PGSTRATA_TEST_FULL=1 PGSTRATA_TEST_GUEST="trixie bookworm" scripts/test $(if $(SHARE),--partition slice:$(SHARE))

bench: ## what the instrument costs: prints ratios and their goals (root; 45 minutes)
	@scripts/setup test
	cargo bench --locked --bench instrument
	cargo bench --locked --bench report_scale
	cargo bench --locked --bench fleet_scale
	cargo bench --locked --bench probe_cost
	cargo bench --locked --bench probe
	cargo bench --locked --bench import
	cargo bench --locked --bench image_cost
	cargo bench --locked --bench cut

validate: ## run plans whose outcome is known, judge them, write docs/validation.md (root; 5 hours)
	@scripts/setup demo
	cargo bench --locked --bench validate
	cargo bench --locked --bench cut -- acquit

docs: ## build the documentation as a site in target/site/book, with a page for each layer, workload, sampler and plan
	@scripts/setup docs
	scripts/docs

install: build ## install the program, manual pages and shell completions below PREFIX (/usr/local)
	install -D -m 755 target/release/pgstrata $(DEST)/bin/pgstrata
	target/release/pgstrata man --out $(DEST)/share/man
	install -d $(DEST)/share/bash-completion/completions $(DEST)/share/zsh/site-functions $(DEST)/share/fish/vendor_completions.d
	target/release/pgstrata completions bash > $(DEST)/share/bash-completion/completions/pgstrata
	target/release/pgstrata completions zsh > $(DEST)/share/zsh/site-functions/_pgstrata
	target/release/pgstrata completions fish > $(DEST)/share/fish/vendor_completions.d/pgstrata.fish

release: ## make package, static tarball, SBOM and sums in target/dist and check them (Debian bookworm, root for all checks; 20 minutes)
	@scripts/setup release
	scripts/release

clean: ## remove what was built (what a run left on the machine is undone by `pgstrata clean`)
	cargo clean
