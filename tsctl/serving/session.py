"""One run of `tsctl serve`, from the first registration to the last unregistration."""

import contextlib
import os
import select
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tsctl.client import DaemonClient, model_path
from tsctl.daemon import paths
from tsctl.daemon.targets import ServeTarget
from tsctl.errors import CliError, NoDaemon
from tsctl.logs.following import FollowedLog
from tsctl.logs.lines import printed
from tsctl.progress import warn, work
from tsctl.serving import watching
from tsctl.serving.failures import explained, folder_of
from tsctl.serving.requests import checked_target, parameters_of
from tsctl.streams import echo


@dataclass
class Served:
    """A target that is served.

    Attributes:
        text: the target as typed.
        detector: None if the target is not watched.
    """

    text: str
    target: ServeTarget
    name: str
    version: str
    log: FollowedLog
    detector: watching.ChangeDetector | None


class Session:
    """Registers targets with a daemon, follows and replaces them, and unregisters them at the end.

    Args:
        status: the daemon's status document.
        owner: a token of this session: the daemon lets no other session unregister or replace its models.
        options: the parameters of every registration that the user gave.
        directory: the user's working directory.

    Attributes:
        served: in the order of their registration.
    """

    def __init__(
        self,
        client: DaemonClient,
        status: Mapping[str, Any],
        owner: str,
        options: Mapping[str, Any],
        directory: Path,
        *,
        watch: bool,
    ) -> None:
        self.served: list[Served] = []
        self._client = client
        self._status = status
        self._owner = owner
        self._options = options
        self._directory = directory
        self._watch = watch
        self._daemon = os.pidfd_open(int(status["pid"]))

    def serve(self, text: str, target: ServeTarget) -> None:
        """Register a target, and wait until its workers are ready.

        Raises:
            CliError: the daemon rejected the target, or the target does not load.
        """
        stamps = watching.stamps_of(watching.watched_files(target))
        log = self._log(target.model_name, target.version)
        try:
            document = self._register(target, replace=False)
        except CliError as error:
            log.close()
            raise explained(error, target.model_name, folder_of(target), text) from None
        name, version = document["modelName"], document["modelVersion"]
        if not target.inferred:  # now the name is known
            log.close()
            log = self._log(name, version)
        detector = watching.ChangeDetector(stamps) if self._watch else None
        self.served.append(Served(text, target, name, version, log, detector))
        warn(document)

    def run(self) -> None:
        """Print the logs, and replace targets that change, until a KeyboardInterrupt.

        Raises:
            CliError: the daemon has ended.
        """
        while True:
            self.turn(time.monotonic())
            if select.select([self._daemon], [], [], watching.POLL)[0]:
                self._find_successor()

    def turn(self, now: float) -> None:
        """Print what the models have logged, and replace targets whose change is due; `now` in seconds."""
        for served in self.served:
            self._print(served, self._printed(served))
            stamps = watching.stamps_of(watching.watched_files(served.target))
            if served.detector is not None and served.detector.due(stamps, now):
                self._replace(served, served.detector)

    def close(self, *, unregister: bool) -> None:
        """End the session.

        Args:
            unregister: unregister the models, because the daemon goes on.
        """
        os.close(self._daemon)
        for served in reversed(self.served):
            served.log.close()
            if unregister:
                self._unregister(served.name, served.version)

    def _register(self, target: ServeTarget, *, replace: bool) -> Any:
        options = {name: value for name, value in self._options.items() if value is not None}
        parameters = parameters_of(target) | options
        try:
            return work(
                self._client, "POST", "/models", subject=_subject(target), hint="", ephemeral="true", owner=self._owner,
                owner_pid=os.getpid(), synchronous="true", replace="true" if replace else None, **parameters,
            )  # fmt: skip
        except KeyboardInterrupt:
            raise
        except CliError as error:
            if error.exit_code == 130 and not replace:  # Ctrl-C: the daemon goes on loading
                self._unregister(target.model_name, target.version)
                raise KeyboardInterrupt from None
            raise

    def _unregister(self, name: str, version: str) -> None:
        with contextlib.suppress(NoDaemon):
            try:
                self._client.json("DELETE", f"/models/{model_path(f'{name}/{version}')}", owner=self._owner)
            except CliError as error:
                echo(f"`{name}` {version} is not unregistered: {error.message}", err=True)

    def _replace(self, served: Served, detector: watching.ChangeDetector) -> None:
        """Serve the changed files in place of the version that serves, or tell why not."""
        began = time.monotonic()
        stamps = watching.stamps_of(watching.watched_files(served.target))
        try:
            target = self._again(served)
            stamps = watching.stamps_of(watching.watched_files(target))
            self._register(target, replace=True)
        except CliError as error:
            failure = explained(error, served.name, folder_of(served.target), served.text)
            self._print(served, without_block(self._printed(served), error.details))
            hint = f"hint: {failure.hint}" if failure.hint else ""
            kept = "not replaced; the version before it goes on serving"
            self._tell(served, "\n".join(filter(None, (failure.message, failure.details, hint, kept))))
        else:
            served.target = target
            self._print(served, self._printed(served))
            self._tell(served, f"replaced in {time.monotonic() - began:.2f} s")
        detector.served(stamps)

    def _again(self, served: Served) -> ServeTarget:
        """Read a target again, under the name and with the handler that it has.

        Raises:
            CliError: the target is gone, has a syntax error, or may not be watched any more.
        """
        target = checked_target(served.text, self._directory)
        watching.check_access(target)
        if target.kind != "handler":
            target = replace(target, handler=served.target.handler)
        return replace(target, model_name=served.target.model_name, version=served.target.version)

    def _find_successor(self) -> None:
        """Follow a daemon that was upgraded.

        Raises:
            CliError: the daemon has ended.
        """
        try:
            pid = int(self._client.json("GET", "/tsctl/status")["pid"])
            successor = os.pidfd_open(pid)
        except (CliError, ProcessLookupError):
            raise CliError("the daemon has ended, and what it served with it") from None
        os.close(self._daemon)
        self._daemon = successor

    def _log(self, name: str, version: str) -> FollowedLog:
        return FollowedLog(paths.model_log(Path(self._status["stateDir"]), name, version))

    def _printed(self, served: Served) -> list[str]:
        """Return the lines that the workers have printed since the last call."""
        return [printed(line) for line in served.log.lines()]

    def _print(self, served: Served, lines: list[str]) -> None:
        for line in lines:
            echo(self._named(served, line), err=True)

    def _tell(self, served: Served, text: str) -> None:
        echo(f"{time.strftime('%H:%M:%S')} {self._named(served, text)}", err=True)

    def _named(self, served: Served, text: str) -> str:
        """Return a text about one model; among several it begins with the name."""
        return text if len(self.served) == 1 else f"{served.name}: {text}"


def _subject(target: ServeTarget) -> str:
    return target.url if target.path is None else target.path.name


def without_block(lines: list[str], block: str) -> list[str]:
    """Return the lines without the first run of lines that is `block`: a traceback that is shown already."""
    wanted = block.splitlines()
    for start in range(len(lines) - len(wanted) + 1):
        if wanted and lines[start : start + len(wanted)] == wanted:
            return lines[:start] + lines[start + len(wanted) :]
    return lines
