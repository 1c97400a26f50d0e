# The short way in; CMakePresets.json has the long one. Options: JOBS=N, PREFIX=DIR, DESTDIR=DIR, STRIP=, SECONDS=N,
# PROGRAMS=N.
PREFIX ?= /usr/local
STRIP  ?= --strip
SECONDS ?= 60
PROGRAMS ?= 1000
DEMO    ?= --temperature 0.6 --seed 1 --prompt 'And the king said'
BUILD   = cmake --build $(1) $(if $(JOBS),-j $(JOBS))
# Most tests count as two; those of the simulator, which mostly wait, as one.
CTEST   = ctest --test-dir $(1) --output-on-failure -j $(or $(JOBS),4)
SOURCES = find include src compat tools tests examples \( -name '*.[ch]' -o -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0

.DEFAULT_GOAL := build
.PHONY: build demo test test-hosts test-testbed test-each-operation test-ucx test-mpi test-mlx test-gpu soak soak-tcp soak-long repeat race-check takedown bench bench-check dev clang asan ubsan sanitize tsan fuzz format format-check install uninstall deb test-deb clean help

build: ## the library, the tools and the examples, into build/
	@scripts/need-packages build
	@test -f build/build.ninja || cmake --preset release
	@$(call BUILD,build)

demo: build ## four ranks pass their numbers around a ring, then share a language model in three ways
	build/bin/cohort run -n 4 build/bin/ring
	@for layout in '4 1' '2 2' '1 4'; do set -- $$layout; echo; \
	    build/bin/cohort run -n 4 build/bin/llama --tensor $$1 --pipeline $$2 $(DEMO) || exit 1; done
	@echo "demo: four ranks, one symmetric memory, all done. Next: build/bin/cohort --help, examples/llama/README.md"

test: build ## all tests of the release build
	@$(call CTEST,build)

test-hosts: build ## the suites over engine tcp, with 2 to 5 ranks that play two hosts
	for ranks in 2 3 4 5; do build/bin/conform --engine tcp --ranks $$ranks --hosts 2 || exit 1; done
	build/bin/faults --engine tcp --hosts 2

test-testbed: build ## the suites over ENGINE (tcp) on network namespaces, as root: RANKS (1 to 7) over HOSTS (2, 4); an hour in all
	@scripts/need-packages testbed
	tests/tools/testbed_suites_test.sh build/bin whole

test-each-operation: build ## kills, and then stops, a rank of another host in each operation, TIMES (50) times: all ranks must be told
	@scripts/need-packages testbed
	tests/tools/each_operation_test.sh build/bin/cohort build/bin/tools-strike kill $(or $(TIMES),50)
	tests/tools/each_operation_test.sh build/bin/cohort build/bin/tools-strike stop $(or $(TIMES),50)

test-ucx: build ## the suites over engine ucx, with 2 to 5 ranks that play two hosts
	for ranks in 2 3 4 5; do build/bin/conform --engine ucx --ranks $$ranks --hosts 2 || exit 1; done
	build/bin/faults --engine ucx --hosts 2

test-mpi: ## the suites over engine mpi with both libraries, 2 to 5 ranks that play two hosts
	@scripts/need-packages mpi
	@$(MAKE) --no-print-directory build
	for mpi in mpi:openmpi mpi:mpich; do for ranks in 2 3 4 5; do \
	    build/bin/conform --engine $$mpi --ranks $$ranks --hosts 2 || exit 1; done; \
	    build/bin/faults --engine $$mpi --hosts 2 || exit 1; done

test-mlx: ## the suites over engine mlx:ring with 2 to 4 ranks, all ways to start it, and Cohort as a back end of MLX
	@scripts/need-packages mlx
	@cmake --preset release
	@$(MAKE) --no-print-directory build
	for ranks in 2 3 4; do build/bin/conform --engine mlx:ring --ranks $$ranks || exit 1; done
	build/bin/faults --engine mlx:ring
	build/bin/soak --engine mlx:ring --ranks 4 --seconds 20
	ctest --test-dir build --output-on-failure -R '^mlx[.]'

test-gpu: build ## all that needs a card: heaps on it, streams, MPS, faults; REPEAT=20 DELAYED=100 STAGES='threads mps ...'
	@tests/gpu/test_gpu.sh build || [ $$? = 77 ]

soak: build ## random operations against an oracle, for SECONDS (60); SOAK='--engine shm --seed 7' to replay
	build/bin/soak --seconds $(SECONDS) $(SOAK)

soak-tcp: build ## ten minutes of engine tcp: through a proxy that makes trouble, and against the oracle; SOAK_SEED=7 to replay the first
	SOAK_SECONDS=300 build/bin/tcp_proxy_test
	build/bin/soak --engine tcp --ranks 5 --seconds 300 $(SOAK)

soak-long: soak ## the same, then PROGRAMS (1000) random programs that are right and as many with a fault; SEARCH='--load 2' for more
	build/bin/search --right $(PROGRAMS) --faulty $(PROGRAMS) --jobs $(or $(JOBS),12) $(SEARCH)

repeat: build ## the suites over and over with new seeds, many at a time, for SECONDS (60): failures that come seldom; REPEAT='--only faults'
	scripts/repeat-suites --seconds $(SECONDS) $(if $(JOBS),--jobs $(JOBS)) $(REPEAT)

race-check: build ## every omission of tests/race under the race check, 50 times on each engine: all must be found
	tests/race/race_test.sh build/bin/cohort build/bin/race 50

takedown: build ## kills launchers, agents and shells of jobs on several hosts, 50 times each: nothing may be left
	COHORT_PROFILE=described LIMIT_MS=2000 tests/tools/run_hosts_takedown_test.sh build/bin/cohort - - 50

bench: build ## collectives beside the machine's limit and the MPI libraries that are installed; build/report.html
	build/bin/cohort bench collectives -n 2,4,8 --against installed --rounds 3 --html build/report.html
	@echo "bench: the page is build/report.html. Everything else: build/bin/cohort bench"

bench-check: build ## everything once, a minute; fails with the rows that are below half of the limit, or slower than an MPI
	build/bin/cohort bench --check

dev: ## a debug build with assertions, into build-dev/
	@scripts/need-packages build
	@test -f build-$@/build.ninja || cmake --preset $@
	@$(call BUILD,build-$@)

clang: ## a build with clang, into build-clang/
	@scripts/need-packages build clang
	@test -f build-$@/build.ninja || cmake --preset $@
	@$(call BUILD,build-$@)

asan ubsan sanitize tsan: ## a build with that sanitizer, into build-NAME/, and its tests
	@scripts/need-packages build
	@test -f build-$@/build.ninja || cmake --preset $@
	@$(call BUILD,build-$@)
	@$(call CTEST,build-$@)

fuzz: ## each decoder for FUZZ_SECONDS (10), from the inputs in tests/fuzz/corpus
	@scripts/need-packages build clang fuzz
	@test -f build-$@/build.ninja || cmake --preset $@
	@$(call BUILD,build-$@)
	@for name in texts links frames rendezvous seal wire hosts graphs tensors; do \
	    mkdir -p build-$@/found/$$name; \
	    if ! build-$@/bin/$${name}_fuzz -max_total_time=$(or $(FUZZ_SECONDS),10) -artifact_prefix=build-$@/ \
	        build-$@/found/$$name tests/fuzz/corpus/$$name >build-$@/$$name.log 2>&1; then \
	        tail -n 60 build-$@/$$name.log; exit 1; \
	    fi; \
	    echo "fuzz: $$name: nothing found, $$(sed -n 's/^Done \([0-9]*\) runs.*/\1 inputs/p' build-$@/$$name.log)"; \
	done

format: ## clang-format over the tree
	@scripts/need-packages format
	@$(SOURCES) | xargs -0 clang-format -i

format-check: ## fails where clang-format would change something
	@scripts/need-packages format
	@$(SOURCES) | xargs -0 clang-format --dry-run --Werror

# The tests install from build/ too, which writes the manifest again: hence the copy.
install: build ## into PREFIX (/usr/local), below DESTDIR when that is set; STRIP= keeps debug information
	DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)" $(STRIP)
	@cp build/install_manifest.txt build/installed.txt
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

uninstall: ## removes what the last make install from here put in place, below DESTDIR when that is set
	@DESTDIR="$(DESTDIR)" scripts/uninstall build/installed.txt
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

deb: ## Debian packages, into build-deb/
	@scripts/need-packages build deb
	@scripts/build-deb

test-deb: ## installs the packages of make deb in a Debian of its own, tries them and removes them; as root
	@scripts/need-packages deb clean
	@scripts/test-deb

clean: ## removes every build folder
	rm -rf build build-dev build-clang build-asan build-ubsan build-sanitize build-tsan build-fuzz build-deb build-cross

help: ## this list
	@sed -n 's/^\([a-z][a-z -]*\):[^#]*## /\1\t/p' Makefile | awk -F '\t' '{printf "  make %-18s %s\n", $$1, $$2}'
