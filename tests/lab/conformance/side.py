"""One of the two servers, as the cases see it; and how cases are put to it."""

import contextlib
import json
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.e2e.served import Served
from tests.lab.conformance.case import Group, Step, Variant
from tests.lab.conformance.compare import Judgement, judge
from tests.lab.conformance.models import pack, registrar
from tests.lab.conformance.scrub import scrub
from tests.lab.conformance.talk import Address, Answer, Line, eventually, talk

_TOKENS = {"<inference token>": "inference-token-of-a-case", "<management token>": "management-token-of-a-case"}


@contextlib.contextmanager
def our_daemon(folder: Path, variant: Variant) -> Iterator["Side"]:
    """Run a daemon with the archives in its store while the block lasts; `folder` is empty."""
    served = Served(folder)
    pack(served.store)
    config = folder / "config.properties"
    config.write_text(variant.config())
    options = ["--ts-config", str(config), "--metrics-address", "127.0.0.1:0"]
    management: Address = str(folder / "control.sock")
    if variant.tokens:  # which no process of this user needs on the control socket
        options += ["--management-address", "127.0.0.2:0", "--allowed-host", "localhost", *_token_files(folder)]
    served.start(*options)
    try:
        inference, metrics = (_address(served.status[f"{name}Address"]) for name in ("inference", "metrics"))
        if variant.tokens:
            management = _address(served.status["managementAddress"])
        private = {
            str(served.store): "<store>",
            str(folder / "state"): "<state>",
            str(folder): "<folder>",
            sys.prefix: "<environment>",
            socket.gethostname(): "<host>",
            str(inference[1]): "<inference port>",
        }
        yield Side(inference, management, metrics, private, _TOKENS if variant.tokens else {})
    finally:
        served.stop()


def _address(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").rpartition(":")
    return host, int(port)


def _token_files(folder: Path) -> list[str]:
    options = []
    for option, word in (("--token-file", "<management token>"), ("--inference-token-file", "<inference token>")):
        file = folder / option.removeprefix("--")
        file.touch(mode=0o600)
        file.write_text(_TOKENS[word])
        options += [option, str(file)]
    return options


_HEAD_START = 0.15  # seconds that a request has before the next is sent beside it


@dataclass(slots=True)
class Side:
    """A running server.

    Attributes:
        inference, management, metrics: its addresses.
        private: what `scrub` takes out.
        tokens: what stands for a token in a case → the token.
        registered: models that `ask_all` has registered for cases.
    """

    inference: Address
    management: Address
    metrics: Address
    private: dict[str, str]
    tokens: Mapping[str, str] = field(default_factory=dict)
    registered: set[str] = field(default_factory=set)

    def _send(self, step: Step) -> tuple[Answer, Line]:
        address: Address = getattr(self, step.to)
        request = step.encode()
        for word, token in self.tokens.items():
            request = request.replace(word.encode(), token.encode())
        if step.until:
            return eventually(address, request, lambda answer: step.until.encode() in answer.body)
        return talk(address, request, step.patience)

    def _command(self, method: str, target: str) -> Answer:
        """Send a command of our own, which no case shows."""
        headers = ["Authorization: Bearer <management token>"] if self.tokens else []
        answer, line = self._send(Step(request=f"{method} {target}", headers=headers, to="management"))
        line.closed(answer)
        return answer

    def ask_all(self, group: Group) -> dict[str, list[Answer]]:
        """Put a group's cases to the server, in order; give the scrubbed answers by the cases' names."""
        if group.fresh:
            self.clear()
        self._prepare({name for case in group.cases.values() for name in case.uses.split()})
        sent = {name: self._send_all(case.steps) for name, case in group.cases.items()}
        private = self.private | {token: word for word, token in self.tokens.items()}
        # Asked only now: a connection that was to stay open has had time to be closed. And all of them, before anything
        # can be wrong with an answer: a connection that is left open fails another test.
        ended = {
            name: [replace(answer, closed=line.closed(answer)) for answer, line in answers]
            for name, answers in sent.items()
        }
        return {name: [scrub(answer, private) for answer in answers] for name, answers in ended.items()}

    def replay(self, group: Group) -> dict[str, Judgement]:
        """Judge this server's answers by the recorded ones; a case that has not been recorded is a ValueError."""
        recorded = {
            name: [step.answer.answer for step in case.steps if step.answer] for name, case in group.cases.items()
        }
        return {name: judge(name, recorded[name], ours) for name, ours in self.ask_all(group).items()}

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

    def clear(self) -> None:
        """Unregister everything, default versions last."""
        self.registered.clear()
        for model in json.loads(self._command("GET", "/models").body)["models"]:
            name = model["modelName"]
            versions = json.loads(self._command("GET", f"/models/{name}/all").body)
            for version in versions:
                self._command("DELETE", f"/models/{name}/{version['modelVersion']}")
            self._command("DELETE", f"/models/{name}")

    def _prepare(self, names: set[str]) -> None:
        """Register what is not registered yet, two at a time: most of it is importing torch."""
        missing = sorted(names - self.registered)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self._register, missing))

    def _register(self, name: str) -> None:
        answer = self._command("POST", registrar(name))
        if answer.status != 200:
            raise AssertionError(f"{name} could not be registered: {answer.status} {answer.body.decode()}")
        self.registered.add(name)
