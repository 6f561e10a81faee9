"""The two examples at the end of each verb's help; tests run or parse every one."""

from typing import NamedTuple

from tsctl.extension import extensions


class Example(NamedTuple):
    """A command line for a shell, and a text about its effect."""

    text: str
    line: str


EXAMPLES: dict[str, tuple[Example, Example]] = {
    "start": (
        Example("Start the daemon, with the models of the last run", "tsctl start --model-store models"),
        Example("Listen at port 8081, and load an archive", "tsctl start --models scorer.mar --port 8081"),
    ),
    "run": (
        Example("Serve every archive of a directory, in a container", "tsctl run --model-store models --models ALL"),
        Example("Log for a debugging session", "tsctl run --model-store models --log-level debug"),
    ),
    "stop": (
        Example("Stop the daemon after its running requests", "tsctl stop"),
        Example("Restart the daemon; its models come back", "tsctl stop && tsctl start"),
    ),
    "upgrade": (
        Example("Load new code or a changed environment", "tsctl upgrade"),
        Example("Allow ten minutes for large models to load", "tsctl upgrade --timeout 600"),
    ),
    "install-service": (
        Example("See the units, and write nothing", "tsctl install-service --user --model-store models --print"),
        Example("Write them for your own systemd", "tsctl install-service --user --model-store models"),
    ),
    "status": (
        Example("See whether the daemon runs, and where", "tsctl status"),
        Example("Read the same in a script", "tsctl status --json"),
    ),
    "config": (
        Example("Show the settings of the daemon", "tsctl config"),
        Example("Show the settings of a model", "tsctl config scorer"),
    ),
    "logs": (
        Example("See what was logged in the last ten minutes", "tsctl logs --since 10m"),
        Example("Follow the output of a model's workers", "tsctl logs -f scorer"),
    ),
    "events": (
        Example("See what went wrong in the last hour", "tsctl events --level warning --since 1h"),
        Example("Follow the events of a model", "tsctl events -f scorer"),
    ),
    "doctor": (
        Example("See what would break serving, and the remedy", "tsctl doctor"),
        Example("Read the same in a script", "tsctl doctor --json"),
    ),
    "serve": (
        Example("Serve a handler, and anew whenever it is saved", "tsctl serve handler.py --watch"),
        Example("Serve a function of a file, in batches of up to 16", "tsctl serve handler.py:predict --batch-size 16"),
    ),
    "archive": (
        Example("Pack a handler and the modules it imports", "tsctl archive handler.py"),
        Example(
            "Name everything, as for torch-model-archiver",
            "tsctl archive --name ranker --version 2.0 --handler handler.py",
        ),
    ),
    "new": (
        Example("Begin a handler of rows of numbers", "tsctl new scorer"),
        Example("Begin a handler of texts", "tsctl new captions --text"),
    ),
    "check": (
        Example("See whether a handler loads", "tsctl check handler.py"),
        Example("Run a request, too", "tsctl check handler.py sample.json"),
    ),
    "register": (
        Example("Serve an archive in batches of up to 8", "tsctl register scorer.mar --batch-size 8"),
        Example("Replace it without a failed request", "tsctl register scorer.mar --replace"),
    ),
    "unregister": (
        Example("Unregister a model with one version", "tsctl unregister scorer"),
        Example("Unregister one version of several", "tsctl unregister scorer/1.0"),
    ),
    "ls": (
        Example("List the models, their states and errors", "tsctl ls"),
        Example("Read the same in a script", "tsctl ls --json"),
    ),
    "describe": (
        Example("Show how a model is batched, and why it failed", "tsctl describe scorer"),
        Example("Read all versions in a script", "tsctl describe scorer/all --json"),
    ),
    "scale": (
        Example("Run two workers", "tsctl scale scorer 2"),
        Example("Stop the workers of one version, which stays registered", "tsctl scale scorer/1.0 0"),
    ),
    "load": (
        Example("Load a model before its first request", "tsctl load scorer"),
        Example("Do not wait for its workers", "tsctl load scorer/1.0 --no-wait"),
    ),
    "unload": (
        Example("Free a model's memory, and keep the model registered", "tsctl unload scorer"),
        Example("Unload one version", "tsctl unload scorer/1.0"),
    ),
    "restart": (
        Example("Load a changed handler, or new files beside it", "tsctl restart scorer"),
        Example("Restart the workers of one version", "tsctl restart scorer/1.0"),
    ),
    "retry": (
        Example("Load a failed model again", "tsctl retry scorer"),
        Example("Do not wait for its workers", "tsctl retry scorer/1.0 --no-wait"),
    ),
    "set": (
        Example("Send larger batches", "tsctl set scorer --batch-size 8 --max-delay 5"),
        Example("Refuse requests that waited for two seconds", "tsctl set scorer/1.0 --queue-timeout 2"),
    ),
    "default": (
        Example("Let version 2.0 answer", "tsctl default scorer/2.0"),
        Example("Go back to version 1.0", "tsctl default scorer/1.0"),
    ),
    "predict": (
        Example("Send a file", "tsctl predict scorer sample.json"),
        Example("Send JSON", "tsctl predict scorer --json '[5.1, 3.5, 1.4, 0.2]'"),
    ),
    "bench": (
        Example("Measure the capacity, with 16 clients", "tsctl bench scorer sample.json -c 16 -n 500"),
        Example("Measure the latency at 50 requests a second", "tsctl bench scorer sample.json --rate 50 -t 2"),
    ),
    "tune": (
        Example("Find settings with a p99 latency of at most 50 ms", "tsctl tune scorer --slo-p99 50"),
        Example(
            "Measure for 32 clients, and apply the result", "tsctl tune scorer sample.json -c 32 --apply"
        ),
    ),
    "demo": (
        Example("Watch the demonstration", "tsctl demo"),
        Example("Watch it without colours", "NO_COLOR=1 tsctl demo"),
    ),
    "help": (
        Example("Show every verb", "tsctl help all"),
        Example("Show every option of the daemon, torchserve's too", "tsctl help start all"),
    ),
    "version": (
        Example("Show the version that is installed", "tsctl version"),
        Example("Show that of the daemon, too", "tsctl version && tsctl status"),
    ),
    "completion": (
        Example("Complete in this bash from now on", "source <(tsctl completion bash)"),
        Example("Write the script for zsh", "tsctl completion zsh > _tsctl"),
    ),
}  # fmt: skip


def all_examples() -> dict[str, tuple[Example, ...]]:
    """Return the examples of all verbs, those of extensions, too."""
    added = {verb: pairs for each in extensions() for verb, pairs in each.examples.items()}
    return EXAMPLES | {verb: tuple(Example(*pair) for pair in pairs) for verb, pairs in added.items()}


def examples_of(verb: str) -> tuple[Example, ...]:
    return EXAMPLES.get(verb) or all_examples().get(verb, ())
