"""Whether the clients of one worker are better served in two halves, of which one runs while the other asks anew.

    whole     worker ▓▓▓▓▓▓▓▓······▓▓▓▓▓▓▓▓······   all clients have their answers, and all ask again: nothing runs
    halves    worker ▓▓▓▓▓▒▒▒▒▒▓▓▓▓▓▒▒▒▒▒▓▓▓▓▓▒▒▒   the next half was sent ahead

Two batches cost the fixed part of l(n) = a + c·n once more, and save the pause between two batches where the daemon and
the clients are at work. Under 8 clients, on two cores, a handler of 0.1 ms a row gives 8 500 answers a second in halves
and 5 700 in whole batches, one of 1 ms a row 934 and 863; for one that does nothing halves cost more than they save
(measured at d82013d7).

Which is faster is measured, in spans of `SPAN` batches, by turns:

    WHOLE ──halves may pay──▶ COMPARED: whole, halves, whole, halves, … ──surely──▶ the faster of the two
                                  ▲                                                       │
                                  └───────soon, then twice as late while it stays so──────┘

So it follows a machine that changes, and what the model cannot know: the cores that daemon, worker and clients share.
The first comparison is of a worker and clients that have just begun, so it counts for little time.
On a busy machine one span tells little: the next one like it is up to a half faster or slower. Two in a row have most
of that in common, so pairs are compared, until their mean is surely on one side. (Spans simulated with a spread of
20 %, halves three quarters of the time: 2.4 % are lost to the way that is slower. By the last span of each way: 13 %.)
What was found for as many clients before is kept, since clients leave and come back.
"""

import math
from typing import Final

SPAN: Final = 48  # batches that are measured together
HOPELESS: Final = 1.25  # times as slow as the span before, the other way: a span ends that is so slow after …
EARLY: Final = 8  # … batches
SETTLING: Final = 6  # batches after a change that belong to neither way
SOON: Final = 5  # spans for each pair until both ways are compared again, after the way has changed …
REVIEW: Final = 40  # … and at most, 2.5 % of the time
WORTH_IT: Final = 1.03  # times as fast; for less all clients are served together, with fewer batches
OVERHEAD: Final = 50e-6  # seconds of the daemon and the kernel for one batch more
KEPT: Final = 8  # numbers of clients whose comparisons are kept
PAUSE: Final = 8.0  # times the mean between two batches: a longer silence was the clients', and the span begins anew
LEAST_PAIRS: Final = 2
MOST_PAIRS: Final = 24  # then the mean decides, surely or not
SURELY: Final = 2.5  # standard errors of the mean
EXPECTED: Final = 0.1  # how much pairs differ (of the logarithms, the spread), worth as much as `LEAST_PAIRS` of them


class Comparison:
    """Which way is faster for one number of clients.

    Attributes:
        halves: the way that was found to be faster.
        rest: spans until both are compared (again); 0 while they are.
        first: seconds a job in the first span of a pair; 0.0 before it has ended.
        in_whole, in_halves: seconds a job, in the latest pair; 0.0 before there is one.
    """

    def __init__(self) -> None:
        self.halves = False
        self.rest = 1
        self.first = self.in_whole = self.in_halves = 0.0
        self._stays = SOON  # spans for each pair that the way will be kept
        self._pairs = 0
        self._sum = self._squares = 0.0  # of the logarithms of how much faster halves were

    def add_pair(self, in_whole: float, in_halves: float) -> None:
        """Learn from a span of each way, in seconds a job; choose one if it is surely faster."""
        self.first, self.in_whole, self.in_halves = 0.0, in_whole, in_halves
        gain, least = math.log(in_whole / in_halves), math.log(WORTH_IT)
        self._pairs += 1
        self._sum += gain
        self._squares += gain * gain
        pairs, mean = self._pairs, self._sum / self._pairs
        squares = self._squares - pairs * mean * mean + LEAST_PAIRS * EXPECTED * EXPECTED
        error = math.sqrt(squares / (pairs - 1 + LEAST_PAIRS) / pairs)
        if pairs < LEAST_PAIRS or (pairs < MOST_PAIRS and abs(mean - least) < SURELY * error):
            return
        self._stays = min(REVIEW, 2 * self._stays) if self.halves is (mean > least) else SOON
        self.halves = mean > least
        self.rest = self._stays * pairs
        self._pairs, self._sum, self._squares = 0, 0.0, 0.0


class Halves:
    """Measures both ways, and chooses.

    Attributes:
        share: jobs of a half; 0 while the clients are served together.
    """

    def __init__(self) -> None:
        self.share = 0
        self._clients = 0
        self._known = Comparison()
        self._kept: dict[int, Comparison] = {}  # of other numbers of clients
        self._last = 0.0  # when the last batch came back
        self._settling = SETTLING  # batches until the span begins
        self._began = 0.0  # when the span began, and in it: …
        self._batches = self._jobs = 0
        self._busy = 0.0  # seconds in the worker

    def __repr__(self) -> str:
        known = self._known
        paces = "nothing known"
        if known.in_whole:
            paces = f"{known.in_whole * 1e6:.0f} µs a job whole, {known.in_halves * 1e6:.0f} µs a job in halves"
        return f"<Halves {self.share or 'no'} of {self._clients} clients: {paces}>"

    def forget(self) -> None:
        """Serve all clients together, and measure anew: there are further workers."""
        self.share = self._clients = 0
        self._known = Comparison()
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
        pace, first = (now - self._began) / self._jobs, self._known.first
        if self._batches == SPAN or (first and self._batches >= EARLY and pace > HOPELESS * first):
            self._compare(pace, (now - self._began) / self._batches, self._busy / self._batches, per_batch)
            self._begin(now)

    def _take_up(self, clients: int) -> None:
        """Go on with so many clients from what was found for as many before."""
        kept, known = self._kept, self._known
        if known.in_whole:
            kept[self._clients] = known
            if len(kept) > KEPT:
                del kept[next(iter(kept))]
        self._clients = clients
        self._known = kept.pop(clients) if clients in kept else Comparison()
        self._known.first = 0.0
        self._serve(halves=self._known.halves)

    def _serve(self, *, halves: bool) -> None:
        self.share = max(1, self._clients // 2) if halves else 0

    def _begin(self, now: float) -> None:
        """Begin a span."""
        self._settling = SETTLING
        self._began = now
        self._batches = self._jobs = 0
        self._busy = 0.0

    def _compare(self, pace: float, cycle: float, busy: float, per_batch: float) -> None:
        """Choose the way of the next span.

        Args:
            pace: seconds a job, in this span.
            cycle: seconds from one batch to the next.
            busy: seconds of these in the worker.
        """
        known, in_halves = self._known, self.share > 0
        if known.rest > 1:
            known.rest -= 1
        elif known.first:
            if in_halves:
                known.add_pair(known.first, pace)
            else:
                known.add_pair(pace, known.first)
            self._serve(halves=known.halves)
        elif in_halves or not known.rest or min(cycle - busy - per_batch, busy - OVERHEAD) > (WORTH_IT - 1.0) * cycle:
            known.rest, known.first = 0, pace
            self._serve(halves=not in_halves)
