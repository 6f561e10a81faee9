"""Whether the clients of one worker are better served in two halves, of which one runs while the other asks anew.

    whole     worker ▓▓▓▓▓▓▓▓······▓▓▓▓▓▓▓▓······   all clients have their answers, and all ask again: nothing runs
    halves    worker ▓▓▓▓▓▒▒▒▒▒▓▓▓▓▓▒▒▒▒▒▓▓▓▓▓▒▒▒   the next half was sent ahead

Two batches cost the fixed part of l(n) = a + c·n once more, and save the pause between two batches where the daemon and
the clients are at work. Under 8 clients, on two cores, a handler of 0.1 ms a row gives 8 500 answers a second in halves
and 5 700 in whole batches, one of 1 ms a row 934 and 863; for one that does nothing halves cost more than they save
(measured at d82013d7).

Which is faster is measured, in spans of `SPAN` batches:

    WHOLE ──halves may pay──▶ trial of HALVES ──▶ the faster of the two ──after REVIEW spans──▶ trial of the other one
      ▲                                                      ▲                                           │
      └── other clients                                      └───────────────────────────────────────────┘

So it follows a machine that changes, and what the model cannot know: the cores that daemon, worker and clients share.
What was measured of as many clients before is kept, since clients leave and come back.
"""

from typing import Final

SPAN: Final = 48  # batches that are measured together
HOPELESS: Final = 1.1  # times as slow as the other way: a trial ends that is so slow after …
EARLY: Final = 8  # … batches
SETTLING: Final = 6  # batches after a change that belong to neither way
REVIEW: Final = 40  # spans until the other way is measured again: 2.5 % of the time
WORTH_IT: Final = 1.03  # times as fast; for less all clients are served together, with fewer batches
OVERHEAD: Final = 50e-6  # seconds of the daemon and the kernel for one batch more
KEPT: Final = 8  # numbers of clients whose measurements are kept
PAUSE: Final = 8.0  # times the mean between two batches: a longer silence was the clients', and the span begins anew


class Halves:
    """Measures both ways, and chooses.

    Attributes:
        share: jobs of a half; 0 while the clients are served together.
    """

    def __init__(self) -> None:
        self.share = 0
        self._clients = 0
        self._whole = self._halves = 0.0  # seconds a job, each way; 0.0 until measured
        self._kept: dict[int, tuple[float, float, int]] = {}  # both, and their age, of other numbers of clients
        self._age = 0  # spans since both are known
        self._tries = False  # this span is a trial
        self._last = 0.0  # when the last batch came back
        self._settling = SETTLING  # batches until the span begins
        self._began = 0.0  # when the span began, and in it: …
        self._batches = self._jobs = 0
        self._busy = 0.0  # seconds in the worker

    def __repr__(self) -> str:
        known = ", ".join(
            f"{each * 1e6:.0f} µs a job {name}"
            for name, each in (("whole", self._whole), ("in halves", self._halves))
            if each
        )
        return f"<Halves {self.share or 'no'} of {self._clients} clients: {known or 'nothing known'}>"

    def forget(self) -> None:
        """Serve all clients together, and measure anew: there are further workers."""
        self.share = self._clients = 0
        self._tries = False
        self._whole = self._halves = 0.0
        self._kept.clear()

    def returned(self, jobs: int, seconds: float, now: float, clients: int, batch_size: int, per_batch: float) -> None:
        """Learn from a batch that came back.

        Args:
            jobs: in this batch.
            seconds: in the worker.
            clients: connections that come regularly.
            per_batch: seconds of a batch whatever its size; 0.0 if unknown.
        """
        if clients != self._clients:
            self._take_up(clients)
            self._begin(now)
        if not 2 <= clients < 2 * batch_size:  # others fill whole batches, which are sent ahead
            return
        if (now - self._last) * self._batches > PAUSE * (self._last - self._began):
            self._begin(now)
        self._last = now
        if self._settling:
            self._settling -= 1
            self._began = now
            return
        self._batches += 1
        self._jobs += jobs
        self._busy += seconds
        pace = (now - self._began) / self._jobs
        if self._batches == SPAN or (self._tries and self._batches >= EARLY and pace > HOPELESS * self._other()):
            self._choose(pace, (now - self._began) / self._batches, self._busy / self._batches, per_batch)
            self._begin(now)

    def _take_up(self, clients: int) -> None:
        """Go on with so many clients from what was measured of as many before."""
        kept = self._kept
        if self._whole:
            kept[self._clients] = self._whole, self._halves, self._age
            if len(kept) > KEPT:
                del kept[next(iter(kept))]
        self._clients, self._tries = clients, False
        self._whole, self._halves, self._age = kept.pop(clients, (0.0, 0.0, 0))
        self.share = max(1, clients // 2) if self._pays else 0

    @property
    def _pays(self) -> bool:
        """Return whether halves are known to be faster."""
        return 0.0 < self._halves * WORTH_IT < self._whole

    def _other(self) -> float:
        return self._whole if self.share else self._halves

    def _begin(self, now: float) -> None:
        """Begin a span."""
        self._settling = SETTLING
        self._began = now
        self._batches = self._jobs = 0
        self._busy = 0.0

    def _choose(self, pace: float, cycle: float, busy: float, per_batch: float) -> None:
        """Choose the way of the next span.

        Args:
            pace: seconds a job, in this span.
            cycle: seconds from one batch to the next.
            busy: seconds of these in the worker.
        """
        in_halves = self.share > 0
        if in_halves:
            self._halves = pace
        else:
            self._whole = pace
        self._age += 1
        better = self._pays
        self._tries = False
        if in_halves is not better:
            self._age = 0
        elif not self._halves or self._age >= REVIEW:
            gain = min(cycle - busy - per_batch, busy - OVERHEAD)
            self._tries = in_halves or gain > (WORTH_IT - 1.0) * cycle
            better = better is not self._tries
            self._age = 0
        self.share = max(1, self._clients // 2) if better else 0
