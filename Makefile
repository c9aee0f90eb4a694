# Everything one does to this repository day to day. `make` alone lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# How many simulated power cuts, steps of every short history, random histories of each case and killed processes `make soak`
# runs.
CUTS ?= 1000000
STEPS ?= 3
ROUNDS ?= 1000
KILLS ?= 200

# How many images of a disk that lost power between two block writes `make soak` checks for each kind of store, durability
# and file system.
BLOCK_CUTS ?= 200

# The folder that `make demo` catalogues; empty for a large one that is there anyway.
DATA ?=

# The store that it keeps the catalogue in, like json:catalog.json; empty for an LMDB store in the user's caches.
STORE ?=

# What the lines of `make bench-ratios` must have in their names; empty for all of them.
ONLY ?=

# The modules that need other packages or C libraries are tested too.
TRAITS := --enable-all-traits

# What `make hit-ratio`, `make feed`, `make uploader` and `make image-cache` are to do; `--help` for what there is.
ARGUMENTS ?=

# How many seconds `make fuzz` looks for inputs that do harm.
DURATION ?= 300

FUZZ_FLAGS := -Xswiftc -sanitize=fuzzer,address -Xswiftc -use-ld=lld

.PHONY: help set-up set-up-build set-up-bench test test-thread soak fuzz demo feed uploader image-cache tool bench bench-ratios hit-ratio format lint clean

help: ## List what there is to make.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

set-up: ## Check for Swift, and install what the tests need beside it.
	@Scripts/set-up

set-up-build:
	@Scripts/set-up build

test: set-up ## Run every test, those of the nested packages too, and prove what dependants are promised.
	LARDER_CBOR2_PYTHON="$$(Scripts/set-up-cbor2)" Scripts/run-tests $(TRAITS)
	Scripts/run-tests --package-path Tools
	Scripts/run-tests --package-path Examples
	Scripts/prove-no-escape
	Scripts/prove-isolation
	Scripts/prove-static-archive

test-thread: set-up ## Run the tests with the thread sanitizer, which finds data races.
	LARDER_CUTS=500 LARDER_STEPS=1 Scripts/run-tests $(TRAITS) --sanitize=thread --scratch-path .build-tsan

# Half of the cuts for each of the two durabilities. Release builds, with what `@testable` needs.
soak: ## Look for broken promises for long; LARDER_SEED=…, CUTS=…, STEPS=…, ROUNDS=…, KILLS=…, BLOCK_CUTS=… to choose.
	@Scripts/set-up soak
	LARDER_CUTS=$$(($(CUTS) / 2)) LARDER_STEPS=$(STEPS) LARDER_ROUNDS=$(ROUNDS) LARDER_KILL_ROUNDS=$(KILLS) \
	  Scripts/run-tests $(TRAITS) --configuration release -Xswiftc -enable-testing \
	  --filter 'Conformance|DiskTests|PageTests|WholeFileStoreTests|QueueHistoryTests|QueueFullDiskTests|QueueProcessTests|DifferentialTests|DepthTests|BusyKeysModelTests|CachedStoreHistoryTests'
	LARDER_KILL_ROUNDS=$(KILLS) Scripts/run-tests --package-path Tools --filter KillTests
	LARDER_KILL_ROUNDS=$(KILLS) Scripts/run-tests --package-path Examples --filter KillTests
	Scripts/prove-static-archive release
	swift build --package-path Tools --product PowerCutWorker
	Scripts/power-cuts "$$(swift build --package-path Tools --show-bin-path)/PowerCutWorker" --cuts $(BLOCK_CUTS)

# What is found is written to Fuzzing/.build; the inputs that reached something new stay there for the next run.
fuzz: set-up-build ## Give the CBOR decoder whatever libFuzzer thinks of; DURATION=… for how long.
	@ln -sfn ../../../Tests/LarderCBORTests/DecoderProbe.swift Fuzzing/Sources/FuzzCBOR/DecoderProbe.swift
	swift build --package-path Fuzzing --configuration release $(FUZZ_FLAGS)
	@mkdir -p Fuzzing/.build/corpus
	"$$(swift build --package-path Fuzzing --configuration release $(FUZZ_FLAGS) --show-bin-path)/FuzzCBOR" \
	  -max_total_time=$(DURATION) -max_len=4096 -malloc_limit_mb=16 -timeout=5 -print_final_stats=1 \
	  -artifact_prefix=Fuzzing/.build/ Fuzzing/.build/corpus

demo: set-up-build ## Catalogue a tree of real files; DATA=/some/folder for another one, STORE=json:… for another store.
	swift build --package-path Examples --configuration release --product FileCatalog
	@"$$(swift build --package-path Examples --configuration release --show-bin-path)/FileCatalog" \
	  $(if $(STORE),--store="$(STORE)") $(if $(DATA),-- "$(DATA)")

feed: set-up-build ## Page through a million transactions while more come in; ARGUMENTS=--compare to compare with the naive way.
	swift build --package-path Examples --configuration release --product TransactionFeed
	@"$$(swift build --package-path Examples --configuration release --show-bin-path)/TransactionFeed" $(ARGUMENTS)

uploader: set-up-build ## Send 20,000 events through an outbox to a server that fails, killing the client; ARGUMENTS=--help.
	swift build --package-path Examples --configuration release --product EventUploader
	@"$$(swift build --package-path Examples --configuration release --show-bin-path)/EventUploader" $(ARGUMENTS)

image-cache: set-up-build ## Test every store as a cache of images; ARGUMENTS=--json for the results as JSON.
	swift build --package-path Examples --configuration release --product ImageCacheTest
	@"$$(swift build --package-path Examples --configuration release --show-bin-path)/ImageCacheTest" $(ARGUMENTS)

tool: set-up-build ## Build the command-line tool for release; the last line printed is its path.
	swift build --package-path Tools --configuration release --product larder
	@printf '%s/larder\n' "$$(swift build --package-path Tools --configuration release --show-bin-path)"

bench: bench-ratios ## Measure Larder beside its yardsticks: the ratios, then the times of each workload.
	swift package --package-path Benchmarks benchmark --no-progress

set-up-bench:
	@Scripts/set-up bench

bench-ratios: set-up-bench ## Measure only the ratios, in one table; ONLY=words for the lines whose names have one of them.
	swift build --package-path Benchmarks --configuration release --product OpenDocument
	swift build --package-path Benchmarks --configuration release --product FillCache
	swift build --package-path Benchmarks --configuration release --product FillQueue
	swift build --package-path Benchmarks --configuration release --product Ratios
	@"$$(swift build --package-path Benchmarks --configuration release --show-bin-path)/Ratios" $(ONLY)

hit-ratio: ## Show the hit ratios of the caches' policies; ARGUMENTS="--trace FILE --entries 1000" for a trace of yours.
	swift build --package-path Benchmarks --configuration release --product hit-ratio
	@"$$(swift build --package-path Benchmarks --configuration release --show-bin-path)/hit-ratio" $(ARGUMENTS)

format: ## Format every Swift file.
	@Scripts/swift-files | xargs -0 swift format format --in-place --parallel

lint: ## Check every Swift file against .swift-format.
	@Scripts/swift-files | xargs -0 swift format lint --strict --parallel

clean: ## Remove everything that was built.
	rm -rf .build .build-tsan Tools/.build Examples/.build Benchmarks/.build Fuzzing/.build
