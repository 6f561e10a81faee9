"""Clients that never pause, and count what goes wrong: to replace a daemon under."""

import http.client
import itertools
import random
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

PATIENCE = 30.0  # seconds for one answer


@dataclass
class Counts:
    """Attributes: `answered` by kind of client; `wrong`, a sentence each; `closings`, answers that said `close`."""

    answered: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    closings: int = 0
    slowest: float = 0.0


class Clients:
    """Threads that ask until they are told to stop.

    Args:
        url: of predictions, http://HOST:PORT or https://…; certificates are not checked.
        control: the control socket.
        grace: seconds; the idle ones ask again before it is over.
    """

    def __init__(self, url: str, control: str, grace: float) -> None:
        self.counts = Counts()
        self._scheme, _, self._address = url.partition("://")
        self._control = control
        self._grace = grace
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> "Clients":
        kinds: list[Callable[[], None]] = [
            self._kept, self._kept, self._kept, self._fresh, self._slow, self._streaming, self._idle, self._idle,
            self._asking,
        ]  # fmt: skip
        self._threads = [threading.Thread(target=kind, name=kind.__name__.strip("_")) for kind in kinds]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _kept(self) -> None:
        """One request after the other on one connection."""
        self._repeat(lambda number: (f"shout words {number}", f"WORDS {number}"))

    def _fresh(self) -> None:
        """A connection for each request."""
        self._repeat(lambda number: (f"shout fresh {number}", f"FRESH {number}"), keep=False)

    def _slow(self) -> None:
        """Always one that runs while daemons change."""
        self._repeat(lambda number: (f"slow words {number}", f"WORDS {number}"))

    def _streaming(self) -> None:
        """Answers that have begun when daemons change."""
        pieces = "".join(f"{number} " for number in range(10)) + "end"
        self._repeat(lambda number: ("count 10", pieces), model="stream")

    def _idle(self) -> None:
        """Pauses of any length within the grace time: the next request must not meet a closing connection."""
        chance = random.Random(threading.get_ident())
        self._repeat(
            lambda number: (f"shout idle {number}", f"IDLE {number}"),
            pause=lambda: chance.uniform(0.0, 0.8 * self._grace),
        )

    def _repeat(
        self,
        make: Callable[[int], tuple[str, str]],
        *,
        keep: bool = True,
        pause: Callable[[], float] = lambda: 0.0,
        model: str = "answer",
    ) -> None:
        connection = self._connect()
        for number in itertools.count():
            if self._over.wait(pause()) if pause() else self._over.is_set():
                break
            body, right = make(number)
            began = time.monotonic()
            try:
                connection.request("POST", f"/predictions/{model}", body, {"Content-Type": "application/octet-stream"})
                response = connection.getresponse()  # closes the connection if the answer says so
                said = response.read().decode()
                if response.status != 200 or said != right:
                    self._wrong(f"{body!r} was answered {response.status} {said[:200]!r}")
                elif response.will_close:
                    self.counts.closings += 1
            except (OSError, http.client.HTTPException) as error:
                self._wrong(f"{body!r}: {type(error).__name__}: {error}, after {time.monotonic() - began:.3f} s")
                connection.close()
            self.counts.answered[threading.current_thread().name] += 1
            self.counts.slowest = max(self.counts.slowest, time.monotonic() - began)
            if not keep:
                connection.close()
        connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        if self._scheme == "http":
            return http.client.HTTPConnection(self._address, timeout=PATIENCE)
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection(self._address, timeout=PATIENCE, context=trusting)

    def _asking(self) -> None:
        """Reads on the control socket."""
        while not self._over.wait(0.02):
            connection = http.client.HTTPConnection("tsctl", timeout=PATIENCE)
            connection.sock = socket.socket(socket.AF_UNIX)
            try:
                connection.sock.connect(self._control)
                connection.request("GET", "/models/answer")
                response = connection.getresponse()
                if response.status != 200 or b'"modelName": "answer"' not in response.read():
                    self._wrong(f"the control socket answered {response.status}")
            except (OSError, http.client.HTTPException) as error:
                self._wrong(f"the control socket: {type(error).__name__}: {error}")
            finally:
                connection.close()
            self.counts.answered[threading.current_thread().name] += 1

    def _wrong(self, what: str) -> None:
        self.counts.wrong.append(f"{time.monotonic():.3f} {threading.current_thread().name}: {what}")
