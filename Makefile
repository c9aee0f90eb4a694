# The everyday tasks of this repository. `make` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c

# The amounts of work for `make soak`: the simulated power cuts, the steps of the short histories, the random histories of
# each case, the killed processes, and the operations after which resources are as at first.
CUTS ?= 1000000
STEPS ?= 3
ROUNDS ?= 1000
KILLS ?= 200
OPERATIONS ?= 1000000

# The number of images of a disk that lost power between two block writes, which `make soak` checks for each kind of store,
# durability and file system.
BLOCK_CUTS ?= 200

# The folder that `make demo` catalogs. If empty, a large folder of the system.
DATA ?=

# The store for its catalog, such as json:catalog.json. If empty, an LMDB store in the user's caches.
STORE ?=

# The words that select the lines of `make bench-ratios` by their names. If empty, all lines.
ONLY ?=

# Evaluated where it is used, because it needs Swift and jq.
TRAITS = $$(Scripts/tested-traits)

# One build folder for the root and the nested packages, so that each module is compiled once. SwiftPM passes the traits to
# the compiler in the order of a set, which must be the same in each build.
SWIFT_BUILD := SWIFT_DETERMINISTIC_HASHING=1 swift build --scratch-path "$(CURDIR)/.build"

# The folder below which `make install` puts the tool, and the folder in which that one is created, for packagers.
PREFIX ?= /usr/local
DESTDIR ?=

# The arguments of `make instructions`, `make dependants`, `make hit-ratio`, `make feed`, `make uploader`, `make image-cache`,
# `make image-cache-test`, `make inspect`, `make notes`, `make orders` and `make proxy`. `--help` lists them.
ARGUMENTS ?=

# The duration of `make fuzz` for each target, in seconds, and the targets. If empty, all.
DURATION ?= 300
export TARGETS ?=

FUZZ_FLAGS := -Xswiftc -sanitize=fuzzer,address -Xswiftc -use-ld=lld

.PHONY: help set-up set-up-build set-up-bench test test-postgres test-thread soak soak-runs fuzz fuzz-build schedules demo feed uploader image-cache image-cache-test notes orders payments scheduler shop proxy http-cache tool install bench bench-ratios instructions hit-ratio docs format lint api-check clean coordination-costs feed-costs dependants growth inspect

help: ## List all targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

set-up: ## Check for Swift, and install the tools and libraries that the tests need.
	@Scripts/set-up

set-up-build:
	@Scripts/set-up build

# The proofs that use modules of the root follow it directly, because the nested packages compile them with other options. The
# samples of doc comments are checked after the examples, which compile the modules with all traits.
test: set-up ## Run every test, including those of the nested packages, and verify the promises to dependants.
	Scripts/prove-open
	LARDER_ROUNDS=4 LARDER_PYTHON="$$(Scripts/set-up-python)" LARDER_LMDB_1="$$(Scripts/set-up-lmdb)" \
	  Scripts/run-tests $(TRAITS)
	folder="$$(Scripts/set-up-lmdb)"; [ -z "$$folder" ] || LARDER_ROUNDS=2 LARDER_LMDB_1="$$folder" \
	  LD_LIBRARY_PATH="$$folder" Scripts/run-tests $(TRAITS) --filter 'LarderLMDBTests|LMDBStoreConformance'
	Scripts/prove-no-stale-threads
	Scripts/prove-no-escape
	Scripts/prove-warnings
	Scripts/prove-static-archive
	Scripts/prove-keychain
	LARDER_ROUNDS=4 Scripts/run-tests --package-path Tools
	Scripts/run-tests --package-path Examples
	Scripts/check-samples .build/debug
	Scripts/prove-isolation

test-postgres: set-up ## Run the tests of LarderPostgres; LARDER_POSTGRES="host=… dbname=…" for a server of yours.
	LARDER_ROUNDS=4 Scripts/run-tests $(TRAITS) --filter LarderPostgresTests

test-thread: set-up ## Run the tests with the thread sanitizer, which detects data races.
	LARDER_ROUNDS=4 LARDER_TEST_LIMIT=10800 LARDER_CUTS=500 LARDER_STEPS=1 TSAN_OPTIONS="suppressions=$(CURDIR)/Scripts/thread-sanitizer-suppressions" \
	  Scripts/run-tests $(TRAITS) --sanitize=thread --scratch-path .build-tsan

schedules: set-up ## Run decorators and stacks in one order of events after another, until it is stopped or one fails.
	while :; do \
	  LARDER_SEED=$${LARDER_SEED:-$$(od -An -N7 -tu8 /dev/urandom | tr -d ' ')} \
	  LARDER_SCHEDULES=10000 LARDER_TEST_LIMIT=86400 Scripts/run-tests $(TRAITS) --filter 'Schedules/' || exit 1; \
	done

# The depth of every test that reads one of these variables. Each of the two durabilities gets half of the cuts, and the program of the
# tests is taken for hanging only after a day; the time limits of suites remain.
DEEP = LARDER_CUTS=$$(($(CUTS) / 2)) LARDER_STEPS=$(STEPS) LARDER_ROUNDS=$(ROUNDS) LARDER_KILL_ROUNDS=$(KILLS) LARDER_OPERATIONS=$(OPERATIONS) \
  LARDER_TEST_LIMIT=86400

# The first run, with little depth, finds plain faults early. `-enable-testing` is for `@testable` in release builds. The table at the
# end counts the deep runs; it is also printed if one of them fails.
soak: ## Search for broken promises for hours, and print what was found; set LARDER_SEED, CUTS, STEPS, ROUNDS, KILLS, OPERATIONS or BLOCK_CUTS.
	@Scripts/set-up soak
	LARDER_ROUNDS=4 Scripts/run-tests $(TRAITS) --configuration release -Xswiftc -enable-testing
	find .build/release/ -path '*/Larder*.build/*.o' -not -path '*Tests.build/*' -print0 | xargs -0 Scripts/scan-stale-threads
	rm -rf .build/events
	status=0; $(MAKE) soak-runs || status=$$?; $(DEEP) Scripts/soak-table .build/events --json .build/events/table.json; exit $$status

soak-runs:
	$(DEEP) LARDER_EVENTS=.build/events LARDER_LMDB_1="$$(Scripts/set-up-lmdb)" \
	  Scripts/run-tests $(TRAITS) --configuration release -Xswiftc -enable-testing
	folder="$$(Scripts/set-up-lmdb)"; [ -z "$$folder" ] || $(DEEP) LARDER_LMDB_1="$$folder" \
	  LD_LIBRARY_PATH="$$folder" Scripts/run-tests $(TRAITS) --configuration release -Xswiftc -enable-testing --filter 'LarderLMDBTests|LMDBStoreConformance'
	$(DEEP) Scripts/run-tests --package-path Tools
	$(DEEP) Scripts/run-tests --package-path Examples
	Scripts/prove-static-archive release
	$(SWIFT_BUILD) --package-path Tools --product PowerCutWorker
	Scripts/power-cuts "$$($(SWIFT_BUILD) --package-path Tools --show-bin-path)/PowerCutWorker" --cuts $(BLOCK_CUTS) | tee .build/events/cuts.txt
	folder="$$(Scripts/set-up-lmdb)"; [ -z "$$folder" ] || LD_LIBRARY_PATH="$$folder" Scripts/power-cuts \
	  "$$($(SWIFT_BUILD) --package-path Tools --show-bin-path)/PowerCutWorker" --cuts $(BLOCK_CUTS) --kinds lmdb

fuzz-build: set-up-build
	@mkdir -p Fuzzing/Sources/FuzzLarder/Linked
	@ln -sfn $(CURDIR)/Tests/LarderCBORTests/DecoderProbe.swift $(CURDIR)/Tests/FormatTests/Fuzz/*.swift Fuzzing/Sources/FuzzLarder/Linked/
	swift build --package-path Fuzzing --configuration release $(FUZZ_FLAGS)

# Findings are written to Fuzzing/.build. The inputs that reached new code stay there for the next run. Leaks are not searched for,
# because Swift refers to the memory of a weak reference by a shifted address, which the search takes for none.
fuzz: fuzz-build ## Feed decoders and recoveries with inputs from libFuzzer; TARGETS=… chooses them, DURATION=… sets the seconds of each.
	@program="$$(swift build --package-path Fuzzing --configuration release $(FUZZ_FLAGS) --show-bin-path)/FuzzLarder"; \
	  for target in $${TARGETS:-$$("$$program")}; do \
	    mkdir -p "Fuzzing/.build/corpus/$$target" "Tests/FormatTests/Inputs/$$target"; \
	    SWIFT_BACKTRACE=enable=no "$$program" "$$target" -max_total_time=$(DURATION) -max_len=4096 -malloc_limit_mb=64 -detect_leaks=0 \
	      -timeout=10 -print_final_stats=1 -artifact_prefix="Fuzzing/.build/$$target-" "Fuzzing/.build/corpus/$$target" \
	      "Tests/FormatTests/Inputs/$$target" || exit 1; \
	  done

demo: set-up-build ## Catalog a tree of real files; DATA=/some/folder for another folder, STORE=json:… for another store.
	$(SWIFT_BUILD) --package-path Examples --configuration release --product FileCatalog
	@"$$($(SWIFT_BUILD) --package-path Examples --configuration release --show-bin-path)/FileCatalog" \
	  $(if $(STORE),--store="$(STORE)") $(if $(DATA),-- "$(DATA)")

feed: set-up-build ## Page through a million transactions while others arrive; ARGUMENTS=--compare compares with the naive approach.
	$(SWIFT_BUILD) --package-path Examples --configuration release --product TransactionFeed
	@"$$($(SWIFT_BUILD) --package-path Examples --configuration release --show-bin-path)/TransactionFeed" $(ARGUMENTS)

uploader: set-up-build ## Send 20,000 events through an outbox to an unreliable server, killing the client; ARGUMENTS=--help.
	$(SWIFT_BUILD) --package-path Examples --configuration release --product EventUploader
	@"$$($(SWIFT_BUILD) --package-path Examples --configuration release --show-bin-path)/EventUploader" $(ARGUMENTS)

image-cache: set-up-build ## Load images through a cache in memory and on disk; ARGUMENTS="https://…/image.png …".
	$(SWIFT_BUILD) --package-path Examples --configuration release --product ImageCache
	@"$$($(SWIFT_BUILD) --package-path Examples --configuration release --show-bin-path)/ImageCache" $(ARGUMENTS)

image-cache-test: set-up-build ## Test every store as a cache of images; ARGUMENTS=--json for the results as JSON.
	$(SWIFT_BUILD) --package-path Examples --configuration release --product ImageCacheTest
	@"$$($(SWIFT_BUILD) --package-path Examples --configuration release --show-bin-path)/ImageCacheTest" $(ARGUMENTS)

notes: set-up-build ## Keep notes with tags and folders; ARGUMENTS="add 'Buy milk' --tag home", or list, move, watch, verify.
	$(SWIFT_BUILD) --package-path Examples --configuration release --product Notes
	@"$$($(SWIFT_BUILD) --package-path Examples --configuration release --show-bin-path)/Notes" $(ARGUMENTS)

orders: set-up-build ## Take orders of a shop in an SQLite database; ARGUMENTS="stock tea 5", "place tea 2", or send.
	$(SWIFT_BUILD) --package-path Examples --configuration release --product Orders
	@"$$($(SWIFT_BUILD) --package-path Examples --configuration release --show-bin-path)/Orders" $(ARGUMENTS)

payments: set-up-build ## Book payments once in a PostgreSQL database; ARGUMENTS="pay Ada 500 --id 17", work, or balance.
	$(SWIFT_BUILD) --package-path Examples --configuration release --product Payments
	@"$$($(SWIFT_BUILD) --package-path Examples --configuration release --show-bin-path)/Payments" $(ARGUMENTS)

scheduler: set-up-build ## Plan jobs in several processes, of which one leads; ARGUMENTS="FOLDER NAME".
	$(SWIFT_BUILD) --package-path Examples --configuration release --product Scheduler
	@"$$($(SWIFT_BUILD) --package-path Examples --configuration release --show-bin-path)/Scheduler" $(ARGUMENTS)

shop: set-up-build ## Run a shop on Hummingbird over SQLite; STORE="postgres:host=… dbname=…#shop" for PostgreSQL, ARGUMENTS=--help.
	$(SWIFT_BUILD) --package-path Examples --configuration release --product Shop
	@$(if $(STORE),STORES_SHOP_URL="$(STORE)",$(if $(findstring --config,$(ARGUMENTS)),,STORES_SHOP_URL=sqlite:.build/shop.sqlite)) \
	  "$$($(SWIFT_BUILD) --package-path Examples --configuration release --show-bin-path)/Shop" $(ARGUMENTS)

proxy: set-up-build ## Run a caching proxy; ARGUMENTS="--origin http://127.0.0.1:8000 --listen 8080 --store lmdb:…".
	$(SWIFT_BUILD) --package-path Examples --configuration release --product CachingProxy
	@"$$($(SWIFT_BUILD) --package-path Examples --configuration release --show-bin-path)/CachingProxy" $(ARGUMENTS)

http-cache: set-up-build ## Show how an HTTP cache answers requests: reused, validated, shared or stale, and why.
	@$(SWIFT_BUILD) --package-path Examples --configuration release --product CachingProxy --quiet
	@$(SWIFT_BUILD) --package-path Examples --configuration release --product HTTPCacheDemo --quiet
	@"$$($(SWIFT_BUILD) --package-path Examples --configuration release --show-bin-path)/HTTPCacheDemo"

tool: set-up-build ## Build the command-line tool for release; the last line printed is its path.
	$(SWIFT_BUILD) --package-path Tools --configuration release --product larder
	@printf '%s/larder\n' "$$($(SWIFT_BUILD) --package-path Tools --configuration release --show-bin-path)"

inspect: set-up-build ## Show stores in a browser; ARGUMENTS="json:users.json lmdb:sessions --write", or --help.
	$(SWIFT_BUILD) --package-path Tools --configuration release --product larder-inspect
	@program="$$($(SWIFT_BUILD) --package-path Tools --configuration release --show-bin-path)/larder-inspect"; \
	  printf '%s\n' "$$program"; $(if $(ARGUMENTS),"$$program" $(ARGUMENTS))

install: tool ## Install the tool, its manual page and completions for bash, zsh and fish; PREFIX=… for another folder.
	$(SWIFT_BUILD) --package-path Tools --configuration release --product generate-manual
	Scripts/install-tool "$$($(SWIFT_BUILD) --package-path Tools --configuration release --show-bin-path)" "$(DESTDIR)$(PREFIX)"

bench: bench-ratios ## Measure Larder and its yardsticks: the ratios, then the times of each workload.
	swift package --package-path Benchmarks benchmark --no-progress

set-up-bench:
	@Scripts/set-up bench

bench-ratios: set-up-bench ## Measure only the ratios, in one table, and draw the charts; ONLY=words for some of the lines, without charts.
	swift build --package-path Benchmarks --configuration release --product OpenDocument
	swift build --package-path Benchmarks --configuration release --product FillCache
	swift build --package-path Benchmarks --configuration release --product FillQueue
	swift build --package-path Benchmarks --configuration release --product Ratios
	@"$$(swift build --package-path Benchmarks --configuration release --show-bin-path)/Ratios" $(ONLY) \
	  $(if $(ONLY),,--json Benchmarks/Results/ratios.json); \
	  status=$$?; $(if $(ONLY),,Scripts/draw-charts;) exit $$status

# Callgrind, which counts them, does not exist for macOS on Apple processors.
instructions: set-up-bench ## Count the instructions and allocations of hot paths, and compare them; ARGUMENTS=--record for new counts.
	swift build --package-path Benchmarks --configuration release --product InstructionCounts
	@find "$$(swift build --package-path Benchmarks --configuration release --show-bin-path)/" -path '*.build/*.o' -print0 | \
	  xargs -0 Scripts/scan-stale-threads
	@Scripts/check-instructions "$$(swift build --package-path Benchmarks --configuration release --show-bin-path)/InstructionCounts" $(ARGUMENTS)

dependants: set-up-build ## Measure what programs pay for Larder with one store and for other packages, and write Docs/Dependants.md.
	Scripts/dependants $(ARGUMENTS)

growth: set-up-bench ## Measure how costs grow with the number of entries, write Docs/Growth.md, and draw the chart; ARGUMENTS="--only lmdb --largest 1000000".
	swift build --package-path Benchmarks --configuration release --product Growth
	Scripts/growth "$$(swift build --package-path Benchmarks --configuration release --show-bin-path)/Growth" $(ARGUMENTS)
	Scripts/draw-charts

coordination-costs: set-up-bench ## Measure a free lock and a rate decision over several stores, beside Redis and PostgreSQL's advisory locks.
	swift build --package-path Benchmarks --configuration release --product CoordinationCosts
	@"$$(swift build --package-path Benchmarks --configuration release --show-bin-path)/CoordinationCosts"

feed-costs: set-up-bench ## Measure writes to PostgreSQL that other hosts are told of, beside others, and the delays of the reports.
	swift build --package-path Benchmarks --configuration release --product FeedCosts
	@"$$(swift build --package-path Benchmarks --configuration release --show-bin-path)/FeedCosts"

hit-ratio: ## Show the hit ratios of the cache policies; ARGUMENTS="--trace FILE --entries 1000" for your own trace.
	swift build --package-path Benchmarks --configuration release --product hit-ratio
	@"$$(swift build --package-path Benchmarks --configuration release --show-bin-path)/hit-ratio" $(ARGUMENTS)

docs: set-up-build ## Build the reference documentation of all modules, with warnings as errors, in .build/docs; check all links and samples.
	@Scripts/build-docs
	@Scripts/check-samples "$$(swift build --enable-all-traits --show-bin-path)"
	@Scripts/check-site

format: ## Format every Swift file.
	@Scripts/swift-files | xargs -0 swift format format --in-place --parallel

api-check: ## Compare the public API with that of the latest tag.
	@Scripts/check-api

lint: ## Check every Swift file against .swift-format, and the text of code, guides and commits.
	@Scripts/swift-files | xargs -0 swift format lint --strict --parallel
	@Scripts/lint-prose
	@Scripts/guide-code --check
	@Scripts/soak-table
	@Scripts/draw-charts --check
	@Scripts/lint-commits

clean: ## Remove all build products.
	rm -rf .build .build-tsan Tools/.build Examples/.build Benchmarks/.build Fuzzing/.build Mutation/.build
