# Everything one does to this repository day to day. `make` alone lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# The folder that `make demo` catalogues; empty for a large one that is there anyway.
DATA ?=

.PHONY: help set-up set-up-build test demo tool format lint clean

help: ## List what there is to make.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

set-up: ## Check for Swift, and install what the tests need beside it.
	@Scripts/set-up

set-up-build:
	@Scripts/set-up build

test: set-up ## Run every test, those of the nested packages too, and prove what dependants are promised.
	swift test
	swift test --package-path Tools
	swift test --package-path Examples
	Scripts/prove-isolation

demo: set-up-build ## Catalogue a tree of real files; DATA=/some/folder for another one.
	swift build --package-path Examples --configuration release --product FileCatalog
	@"$$(swift build --package-path Examples --configuration release --show-bin-path)/FileCatalog" $(if $(DATA),-- "$(DATA)")

tool: set-up-build ## Build the command-line tool for release; the last line printed is its path.
	swift build --package-path Tools --configuration release --product larder
	@printf '%s/larder\n' "$$(swift build --package-path Tools --configuration release --show-bin-path)"

format: ## Format every Swift file.
	@Scripts/swift-files | xargs -0 swift format format --in-place --parallel

lint: ## Check every Swift file against .swift-format.
	@Scripts/swift-files | xargs -0 swift format lint --strict --parallel

clean: ## Remove everything that was built.
	rm -rf .build Tools/.build Examples/.build Benchmarks/.build
