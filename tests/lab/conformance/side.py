"""Our daemon, as the cases see it; and how cases are put to it."""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from tests.e2e.served import Served
from tests.lab.conformance.case import Group, Step, Variant
from tests.lab.conformance.compare import Judgement, judge
from tests.lab.conformance.models import pack, registrar
from tests.lab.conformance.scrub import scrub
from tests.lab.conformance.talk import Address, Answer, Line, talk

_TOKENS = {"<inference token>": "inference-token-of-a-case", "<management token>": "management-token-of-a-case"}
_HEAD_START = 0.15  # seconds that a request has before the next is sent beside it


@contextlib.contextmanager
def our_daemon(folder: Path, variant: Variant) -> Iterator["Side"]:
    """Run a daemon with the archives in its store while the block lasts; `folder` is empty."""
    config = folder / "config.properties"
    config.write_text(variant.config())
    options = ["--ts-config", str(config), "--metrics-address", "127.0.0.1:0"]
    if variant.tokens:  # which no process of this user needs on the control socket
        options += ["--management-address", "127.0.0.2:0", "--allowed-host", "localhost", *_token_files(folder)]
    with Served(folder) as served:
        pack(served.store)
        served.start(*options)
        yield Side(served, _TOKENS if variant.tokens else {})


def _token_files(folder: Path) -> list[str]:
    options = []
    for option, word in (("--token-file", "<management token>"), ("--inference-token-file", "<inference token>")):
        file = folder / option.removeprefix("--")
        file.touch(mode=0o600)
        file.write_text(_TOKENS[word])
        options += [option, str(file)]
    return options


class Side:
    """A running daemon.

    Args:
        tokens: what stands for a token in a case → the token.
    """

    def __init__(self, served: Served, tokens: Mapping[str, str]) -> None:
        self._served, self._tokens = served, tokens
        self._registered = set[str]()
        status = served.status
        self._addresses: dict[str, Address] = {"management": str(served.folder / "control.sock")}
        for name in ("inference", "metrics", *["management"] * bool(tokens)):
            host, _, port = status[f"{name}Address"].removeprefix("http://").rpartition(":")
            self._addresses[name] = host, int(port)

    def replay(self, group: Group) -> dict[str, Judgement]:
        """Put a group's cases to the daemon, in order; judge its answers by the recorded ones."""
        if group.fresh:
            self._clear()
        missing = sorted({name for case in group.cases.values() for name in case.uses.split()} - self._registered)
        with ThreadPoolExecutor(2) as pool:  # two at a time: most of it is importing torch
            list(pool.map(self._register, missing))
        sent = {name: self._send_all(case.steps) for name, case in group.cases.items()}
        # Asked only now: a connection that was to stay open has had time to be closed. And all of them, before anything
        # can be wrong with an answer: a connection that is left open fails another test.
        ended = {
            name: [replace(answer, closed=line.closed(answer)) for answer, line in answers]
            for name, answers in sent.items()
        }
        if group.fresh:  # its cases may have registered what another group registers
            self._clear()
        return {
            name: judge(
                name,
                [step.answer.answer for step in group.cases[name].steps],
                [scrub(answer, self._tokens) for answer in answers],
            )
            for name, answers in ended.items()
        }

    def _send_all(self, steps: Sequence[Step]) -> list[tuple[Answer, Line]]:
        with ThreadPoolExecutor(max(1, len(steps))) as pool:
            underway = []
            for step in steps:
                underway.append(pool.submit(self._send, step))
                if step.background:
                    time.sleep(_HEAD_START)
                else:
                    underway[-1].result()
            return [each.result() for each in underway]

    def _send(self, step: Step) -> tuple[Answer, Line]:
        address, request = self._addresses[step.to], step.encode()
        for word, token in self._tokens.items():
            request = request.replace(word.encode(), token.encode())
        deadline = time.monotonic() + step.patience
        while True:
            answer, line = talk(address, request, step.patience)
            if step.until.encode() in answer.body or time.monotonic() > deadline:
                return answer, line
            line.closed(answer)
            time.sleep(0.05)

    def _clear(self) -> None:
        """Unregister everything, default versions last."""
        self._registered.clear()
        for model in self._served.command("GET", "/models").json["models"]:
            name = model["modelName"]
            for version in self._served.command("GET", f"/models/{name}/all").json:
                self._served.command("DELETE", f"/models/{name}/{version['modelVersion']}")
            self._served.command("DELETE", f"/models/{name}")

    def _register(self, name: str) -> None:
        answer = self._served.command("POST", registrar(name))
        assert answer.status == 200, f"{name} could not be registered: {answer.status} {answer.body.decode()}"
        self._registered.add(name)
