"""Which size of batches has the best rate, where a larger one may be none the faster, or slower a request.

A batch of n takes a + c·n where a fixed part is saved. But on a processor c·n is nearly all, texts are padded to the
longest of the batch, and what no longer fits into a cache is slower: then eight in turn are answered as fast as eight
together, or faster. So the cost of a request is learned by size, from batches that ran while all workers were busy:

    cost of a size    mean of (seconds a request) / pace, with its deviation; forgotten slowly. A batch is counted with
                      `OVERHEAD` more than the worker took, which the daemon and the kernel take; the doubt counts those
                      of one `MOMENT` as one
    pace              seconds a request in batches of the commonest size, now: a machine that slows down slows all sizes

    FIRST ──batches of twice as many are cheaper──▶ … ──▶ ANY SIZE; ──they are not──▶ at most the limit before
    ANY SIZE ──a smaller one is cheaper, or as cheap──▶ at most SIZE ──another one is cheaper──▶ at most that one

A smaller size is compared with all larger ones as they come about: where few wait, batches as large as the limit are
too few to be known. One request in a batch is taken as soon as it is likely that it costs no more: it is the only size
of its kind, and no luckiest of many.

Where enough wait, another size is tried: one request, or a size near the present one, until it is known whether it is
cheaper. Tries take at most `SHARE` of the workers' time, and as much as `CREDIT` batches at first; of a known size only
what it is dearer than the commonest one counts. The next try waits for the last one, whose cost is not known before:
four workers had each a batch that took four times as long, and all requests waited for them. Where fewer wait than the
present size, as where the clients are served in halves, one request is tried all the same, seldom.
"""

import math
from typing import Final

from tsctl.daemon.batching.traffic.times import BatchTimes, rounded

SHARE: Final = 0.01
CREDIT: Final = 16.0
EVERY: Final = 16  # batches from one try to the next, at least …
AT_FIRST: Final = 3  # … and while the credit lasts
LOST: Final = 64  # batches after which a try is not waited for: its worker died, or others were idle beside it
FULL: Final = 4  # batches as large as a limit that rises, or a share of clients, after which it is doubled, …
PAYS: Final = 0.98  # … if a request of theirs costs no more of one in batches of the limit before
COLD: Final = 8  # batches at first: memory is new, and caches are empty
SLOW: Final = 0.5  # seconds of a batch that count as one more, for the next try: of long ones few come in a minute
OVERHEAD: Final = 0.0002  # seconds
MOMENT: Final = 0.02  # seconds in which whatever slows down one batch slows down the next ones, too
FEW: Final = 1.5  # batches: a size with less weight is not known …
ENOUGH_TO_CHOOSE: Final = 2.5  # … and with less not chosen
FORGOTTEN: Final = 0.1  # of a batch: with less weight it is as if a size had never been
ONCE: Final = 2.0  # times the second batch of a size: in the first one code was compiled, or memory was new
BEYOND: Final = 1.05  # times as dear, as predicted from so many other sizes: such a size is left alone, too
VARIED: Final = 4
USUAL: Final = 0.04  # of the cost, squared: the variance that is expected at first …
PRIOR: Final = 4.0  # … and that of all sizes later: it counts as much as so many batches of one size
ENOUGH: Final = 8.0  # batches after which a size is tried no more that is not cheaper
MANY: Final = 128.0  # batches: more are not counted, and a size is tried no more
FORGETTING: Final = 0.9995  # of the weight of one size, at each batch of another
CLIP: Final = 4.0  # times the pace: a page fault, a garbage collection
PACE: Final = 0.05  # of the pace that the latest batch decides
ALONE: Final = 0.02  # of the cost: what a batch of one may cost more than one of two; twice that beside a larger one
WORTH_IT: Final = 0.02  # of the cost: for less no larger size is taken; a smaller one answers sooner
DEARER: Final = 0.1  # of the cost of the present size: beyond one that is surely so much dearer none is tried
SURE: Final = 3.0  # times the doubt of the difference: many sizes are compared, and one of them is always the luckiest


class SizeCost:
    """The batches of one size.

    Attributes:
        cost: of a request, in shares of the pace; the mean of `weight` batches, as of the batch number `last`.
        variance: of one batch's cost.
        spans: as `weight`, but batches that ran close to each other count as one.
        seen: seconds in the workers until its latest batch.
        patience: times as slowly as others it is forgotten: a try of a dear size makes all wait, and hardly ever pays.
        judged: the size beside which it is hardly cheaper, which is believed until it is forgotten; 0 for none.
    """

    __slots__ = ("cost", "judged", "last", "patience", "seen", "spans", "variance", "weight")

    def __init__(self) -> None:
        self.cost = self.variance = self.weight = self.spans = self.seen = 0.0
        self.judged, self.last, self.patience = 0, 0, 1.0

    def __repr__(self) -> str:
        return f"<{self.cost:.3f} ± {math.sqrt(self.variance):.3f}, {self.weight:.1f} times>"

    @property
    def first(self) -> bool:
        """Whether this is just one batch, or the others are forgotten: code was compiled in it, or memory was cold."""
        return self.weight < 1.0 + FORGOTTEN


def steps_beside(size: int, most: int) -> list[int]:
    """Return the two steps below a size, and the two above, at most `most`; the further ones first."""
    octave = 1 << (size.bit_length() - 1)
    steps = [octave >> 1, octave << 1, 3 * octave >> 2, 3 * octave >> 1, octave, most]
    return [each for each in steps if 0 < each <= most and size < 3 * each <= 9 * size]


class BestSize:
    """The learned costs, and the size that follows.

    Args:
        most: the batch size, which is not exceeded.
        times: predict what batches take, by which a size may be left alone that never was.
        first: the first limit, which is doubled while that pays; 0 for `most`.

    Attributes:
        resting: nothing is learned, and batches have any size: another rule chooses it.
        size: how many requests a batch has at most; once that has risen `most`, until a smaller
            one is known to be as good.
        changes: how often it has changed.
        share: requests that share a batch, where the clients are split over several workers: no larger size is tried.
    """

    def __init__(self, most: int, times: BatchTimes, first: int = 0) -> None:
        self.most = most
        self._first = first or most
        self._times = times
        self.resting = False
        self.changes = 0
        self.share = most
        self.forget()

    def forget(self) -> None:
        """Begin anew: batches are made of other requests than before."""
        most = self.most
        self.size = most if self.resting else min(most, self._first)
        self._rising = self.size < most  # the limit, up to the batch size
        self._before = self._full = 0  # the limit before this one; full batches since it changed
        self.changes += 1
        self._costs: dict[int, SizeCost] = {}
        self._usual = max(most, 2)  # requests of a batch with nothing to wait for; fewer are not enough for a try
        self._reference = 0  # the commonest size
        self._pace = self._credit = 0.0
        self._usual_variance = USUAL
        self._compared = self._total = 0
        self._cold = COLD  # batches that are not learned from
        self._since = -EVERY  # batches since the last try; the first one waits for what comes by itself
        self._probe = 0  # the size that was offered as a try; 0 for none
        self._out = 0  # the size of a try that was sent and has not come back; 0 for none
        self._busy = self._tried = 0.0  # seconds in the workers, and of those in tries

    def __repr__(self) -> str:
        known = ", ".join(f"{size}: {cost!r}" for size, cost in sorted(self._costs.items()))
        return f"<BestSize {self.size} of {self.most}; {known or 'nothing known'}>"

    def rest(self, *, resting: bool) -> None:
        """Rest, or begin anew after a rest."""
        if resting is not self.resting:
            self.resting = resting
            self.forget()

    def limit(self, most: int, first: int = 0) -> None:
        """Change the batch size; what is known stays. With a first limit, batches rise to a larger one."""
        self._first, self.share = first or most, most
        if not self._total:
            self.most = most
            self.forget()
        elif first:
            if most > self.most == self.size:
                self._rising = True
                self._before = self._full = 0
            self.size, self.most = min(self.size, most), most
            self._rising = self._rising and self.size < most
        else:
            self.size = most if self._rising or self.size == self.most else min(self.size, most)
            self.most, self._rising = most, False

    def next(self, waiting: int, idle: int) -> int:
        """Return how many requests the next batch has at most; the same until it is sent.

        Args:
            waiting: requests, of which it is made.
            idle: workers; beside more than the one that gets the batch, it would tell nothing.
        """
        self._probe = 0
        if self.resting:
            return self.most
        waiting = min(waiting, self.share)
        early = self._tried < self._credit
        least = LOST if self._out else AT_FIRST if early else EVERY
        if waiting < min(self._usual, self.share):  # while that goes on, one request alone is tried all the same
            least, waiting = max(least, LOST), min(waiting - 1, 1)
        due = idle < 2 and waiting > 0 and self._since >= least
        if due and (early or self._tried < self._credit + SHARE * self._busy):  # seldom
            self._probe = self._wanted(waiting)
            if not self._probe:
                self._since = 0
        return self._probe or self.size

    def sent(self, count: int) -> None:
        """Note that a batch was sent."""
        self._since += 1
        if count == self._probe:
            self._since, self._out = 0, rounded(count)  # one before it is lost
        self._probe = 0

    def returned(self, count: int, seconds: float) -> None:
        """Learn from a batch that came back, and ran beside as many others as there are workers.

        Args:
            seconds: in the worker; more than 0.0.
        """
        if self.resting or self._cold:
            self._cold = max(0, self._cold - 1 - (seconds > SLOW))
            return
        pace, count = (seconds + OVERHEAD) / count, rounded(count)
        self._busy += seconds
        tried = count == self._out
        if tried:
            self._out = 0
        elif not self._out:
            self._since += int(seconds / SLOW)
        known = self._costs.get(count)
        if known is None:
            known = self._costs[count] = SizeCost()
        self._total += 1
        if not self._reference:
            self._reference, self._pace, self._credit = count, pace, CREDIT * seconds
        cost = min(pace / self._pace, CLIP * max(1.0, known.cost))
        lost = min(seconds, cost * self._pace * count)  # code is compiled once: else that would end the tries
        if known.first and cost * ONCE < known.cost:  # what took so long does not come again
            known.cost, known.weight, known.spans = cost, 0.0, 0.0
            if count == self._reference:
                self._refer_to(count)
                cost, self._credit = 1.0, CREDIT * seconds
        if count == self._reference:
            self._pace += (cost * self._pace - self._pace) * max(PACE, 1.0 / (known.weight + 1.0))
        weight = self._weight(known)
        if tried:  # of a known size only what it takes longer than the commonest one is a loss
            self._tried += lost * (max(0.0, 1.0 - 1.0 / known.cost) if weight >= FEW else 1.0)
        spans = known.spans * weight / known.weight if weight else 0.0
        known.spans = min(spans + (min(1.0, (self._busy - known.seen) / MOMENT) if weight else 1.0), MANY)
        if weight < FEW:
            known.judged = 0
        known.weight, known.last, known.seen = min(weight + 1.0, MANY), self._total, self._busy
        part, error = 1.0 / known.weight, cost - known.cost
        if weight >= 1.0:
            share = error / known.cost
            step = max(PACE, 1.0 / (self._compared + PRIOR))
            self._compared += 1
            self._usual_variance += (share * share * weight / (weight + 1.0) - self._usual_variance) * step
        known.cost += error * part
        known.patience = max(1.0, (known.cost - 1.0) / DEARER)
        known.variance = (1.0 - part) * (known.variance + part * error * error) if weight else 0.0
        if known.weight > 2.0 * self._weight(self._costs[self._reference]):
            self._refer_to(count)
        if tried or not self._total % EVERY:
            self._choose()
        if self._rising and count >= rounded(self._full_size):
            self._rise(count)

    def even(self, clients: int) -> int:
        """Return the size for known clients: half of them if they fill one batch but not two, and it costs as little.

        Eight clients in batches of six leave two behind each time, who wait for two batches: four and four do not.
        All other numbers of clients get the limit.
        """
        size = self.size
        share = -(-clients // 2) if size < clients < 2 * size else size
        each, now = self._costs.get(rounded(share)), self._costs.get(rounded(size))
        return share if each and now and PAYS * each.cost <= now.cost else size

    @property
    def trying(self) -> bool:
        """Return whether the latest answer of `next` is a try, and was not sent yet."""
        return self._probe > 0

    @property
    def costs(self) -> dict[int, float]:
        """Return the known costs of a request by size, in seconds."""
        return {size: known.cost * self._pace for size, known in sorted(self._known().items())}

    def _weight(self, known: SizeCost) -> float:
        return known.weight * float(FORGETTING ** ((self._total - known.last) / known.patience))

    def _known(self) -> dict[int, SizeCost]:
        return {size: each for size, each in self._costs.items() if size <= self.most and self._weight(each) >= FEW}

    def _refer_to(self, size: int) -> None:
        """Measure the pace by another size from now on."""
        factor = self._costs[size].cost
        self._reference = size
        self._pace *= factor
        for each in self._costs.values():
            each.cost /= factor
            each.variance /= factor * factor

    def _present(self, known: dict[int, SizeCost]) -> int:
        """Return the size of most batches: that of the limit, or the largest that came about."""
        return self.size if self.size in known else max(known, default=0)

    def _better(self, size: int, cost: float, other: int) -> float:
        """Return a cost with the preference of batches of one: to them, and from them, or the limit would wander."""
        return cost * (1.0 - ALONE * min(other - 1, 2)) if size == 1 else cost

    def _doubt(self, one: SizeCost, other: SizeCost) -> float:
        """Return the uncertainty of the difference of two costs: a standard deviation."""
        return math.sqrt(self._variance(one) + self._variance(other))

    def _variance(self, each: SizeCost) -> float:
        """Return the uncertainty of a cost, as a variance."""
        weight = self._weight(each)
        usual = self._usual_variance * each.cost * each.cost
        return (each.variance * weight + usual * PRIOR) / (weight + PRIOR) / self._spans(each)

    def _spans(self, each: SizeCost) -> float:
        return each.spans * self._weight(each) / each.weight

    @property
    def _full_size(self) -> int:
        """Return how many requests are a full batch, while the limit rises: the share of clients that are split.

        Else a share between the limit before and this one would stay: no batch would ever be as large as the limit.
        """
        return min(self.share, self.size) if self.size < 2 * self.share else self.size

    def _rise(self, size: int) -> None:
        """Double a first limit while batches of this size pay; else go back to the one before."""
        self._full += 1
        if self._full < FULL:
            return
        known, before = self._known(), rounded(self._before)
        if size not in known:  # its few batches are forgotten
            return
        doubt = self._doubt(known[size], known[before]) if before in known and self._full < 2 * FULL else 0.0
        if doubt and abs(PAYS * known[before].cost - known[size].cost) < doubt:  # more of them decide
            return
        self._full = 0
        if before in known and known[size].cost > PAYS * known[before].cost:
            if size < rounded(self.size):  # hardly more than before, which says little of twice as many
                return
            self.size, self._rising = self._before, False
        elif self.size < self.most:
            self._before, self.size = self.size, min(2 * self.size, self.most)
        else:
            self._rising = False
        self._usual = max(self.size, 2)
        self.changes += 1

    def _choose(self) -> None:
        known = self._known()
        present = self._present(known)
        self._usual = max(present, 2)
        if len(known) < 2:
            return
        now = known[present]
        best, most = present, 0.0
        total = cost = variance = 0.0  # of the larger sizes up to the present one, summed by their spans
        for size in sorted(known, reverse=True):
            each, spans, own = known[size], self._spans(known[size]), self._variance(known[size])
            if size != present and self._weight(each) >= ENOUGH_TO_CHOOSE:
                if size > present:
                    beside, doubt = self._better(present, now.cost, size), self._doubt(each, now)
                    margin = WORTH_IT * now.cost
                else:
                    beside, doubt = cost / total, math.sqrt(variance / (total * total) + own)
                    margin = 0.0
                margin += doubt if size == 1 else SURE * doubt
                gain = beside - self._better(size, each.cost, present) - margin
                if gain > most and (size < present or self.size < self.most):
                    best, most = size, gain
            if size <= present:
                total, cost, variance = total + spans, cost + spans * each.cost, variance + spans * spans * own
        if 1 < best < present and best != self._before:  # between it and dearer ones may be one that never came about
            above = min(step for step in steps_beside(best, self.most) if step > best)
            best = above if above < min(size for size in known if size > best) else best
        if best != present:
            self.size = self._usual = min(best, self.most)
            self._rising = False
            self.changes += 1

    def _is_dear(self, each: SizeCost, now: SizeCost) -> bool:
        """Return whether a size is surely so much dearer than the present one that sizes beyond it are left alone."""
        dearer = each.cost - now.cost
        return dearer > DEARER * now.cost and self._weight(each) >= FORGOTTEN and dearer > SURE * self._doubt(each, now)

    def _is_decided(self, size: int, each: SizeCost, present: int) -> bool:
        """Return whether more batches of a size would hardly show that it pays."""
        now, weight = self._costs[present], self._weight(each)
        doubt = self._doubt(each, now)
        gain = self._better(present, now.cost, size) - self._better(size, each.cost, present)
        if weight >= ENOUGH and gain + doubt / 2 < WORTH_IT * now.cost:
            each.judged = present
        elif gain - doubt / 2 > WORTH_IT * now.cost:
            each.judged = 0
        return gain < -SURE * doubt or weight >= MANY or each.judged == present

    def _wanted(self, waiting: int) -> int:
        """Return a size that is worth a try while so many wait; 0 for none."""
        known = self._known()
        present = self._present(known)
        if not present:
            return 0
        now = known[present]
        best, least, larger = 0, math.inf, self.most
        # Where the straight line has no fixed part, it does not fit: smaller batches are cheaper than it says.
        predicted = self._times.spread and len(known) >= VARIED and self._times.per_batch > 0.0
        half = self._costs.get(present // 2)
        hopeless = half is not None and self._is_dear(half, now)
        for size, other in self._costs.items():
            if present < size < larger and self._is_dear(other, now):
                larger = size
        largest = self.most if waiting >= self.most else 1 << (waiting.bit_length() - 1)
        for size in (*steps_beside(present, largest), *(() if hopeless else (1,))):
            each = self._costs.get(size)
            weight = 0.0 if each is None else self._weight(each)
            if size == present or size > min(waiting, larger) or weight >= least:
                continue
            if each is None or weight < FORGOTTEN:
                if predicted and self._times.of(size) + OVERHEAD > BEYOND * size * now.cost * self._pace:
                    continue
            elif not each.first and self._is_decided(size, each, present):
                continue
            best, least = size, weight
        return best
