"""One of the two servers, as the cases see it; and how cases are put to it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.conformance.case import Case, Group, Step, manage
from tests.conformance.models import registration
from tests.conformance.scrub import scrub
from tests.conformance.talk import Address, Answer, eventually, talk


@dataclass(slots=True)
class Side:
    """A running server.

    Attributes:
        inference, management: its addresses.
        private: what `scrub` takes out.
        registered: models that `ask_all` has registered for cases.
    """

    inference: Address
    management: Address
    private: Mapping[str, str]
    registered: set[str] = field(default_factory=set)

    def send(self, step: Step) -> Answer:
        address = self.management if step.management else self.inference
        if step.until:
            return eventually(address, step.encode(), lambda answer: step.until.encode() in answer.body)
        return talk(address, step.encode(), step.patience)

    def ask_all(self, group: Group, cases: Iterable[Case]) -> dict[str, list[Answer]]:
        """Put a group's cases to the server, in order; give the scrubbed answers by the cases' names."""
        if group.fresh:
            self.clear()
        answers = {}
        for case in cases:
            for name in case.uses:
                self._register(name)
            answers[case.name] = [scrub(self.send(step), self.private) for step in case.steps]
        return answers

    def clear(self) -> None:
        """Unregister everything, default versions last."""
        self.registered.clear()
        for model in json.loads(self.send(manage("GET", "/models")).body)["models"]:
            name = model["modelName"]
            versions = json.loads(self.send(manage("GET", f"/models/{name}/all")).body)
            for version in versions:
                self.send(manage("DELETE", f"/models/{name}/{version['modelVersion']}"))
            self.send(manage("DELETE", f"/models/{name}"))

    def _register(self, name: str) -> None:
        if name in self.registered:
            return
        answer = self.send(manage("POST", registration(name)))
        if answer.status != 200:
            raise AssertionError(f"{name} could not be registered: {answer.status} {answer.body.decode()}")
        self.registered.add(name)
