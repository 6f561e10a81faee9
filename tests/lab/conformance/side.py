"""One of the two servers, as the cases see it; and how cases are put to it."""

import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from tests.lab.conformance.case import Case, Group, Step
from tests.lab.conformance.compare import Judgement, judge
from tests.lab.conformance.models import registrar
from tests.lab.conformance.purpose import PURPOSES
from tests.lab.conformance.scrub import scrub
from tests.lab.conformance.talk import Address, Answer, Line, eventually, talk

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

    def send(self, step: Step) -> Answer:
        answer, line = self._send(step)
        line.closed(answer)
        return answer

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
        step = Step(method, target, to="management")
        return self.send(step.with_header("Authorization", "Bearer <management token>") if self.tokens else step)

    def ask_all(self, group: Group, cases: Sequence[Case]) -> dict[str, list[Answer]]:
        """Put a group's cases to the server, in order; give the scrubbed answers by the cases' names."""
        if group.fresh:
            self.clear()
        self._prepare({name for case in cases for name in case.uses})
        sent = {case.name: self._send_all(case.steps) for case in cases}
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
        answers = self.ask_all(group, group.cases)
        return {
            case.name: judge(
                case.name, [step.recorded for step in case.steps if step.recorded], answers[case.name], PURPOSES
            )
            for case in group.cases
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
