"""All metrics: answers by status, and the versions by name."""

from collections import Counter, OrderedDict, defaultdict

from tsctl.daemon.core.clock import Clock, Ticker
from tsctl.daemon.metrics.version import MetricsListener, VersionMetrics

KEPT_VERSIONS = 1000  # unregistered ones whose counters stay; beyond, those that left first are forgotten


class Metrics:
    """The daemon's metrics.

    Attributes:
        clients: known clients' answers, name → status as text → count.
        answers: how many answers had a status of 2xx, of 4xx, and any other, as TorchServe counts them.
        stalls, stalled_seconds: how often, and for how long, the event loop stood still for half a second or more.
        events: the daemon's events by kind; None to show none.
        servers: name → up or down, and how often the server has ended.
        internal_errors: exceptions that nothing has caught.
        warned: names that the log has mentioned.
        refusal_labels: those of extensions, which are shown from the start.
        log: gets the values as they are counted; None for nobody.
    """

    def __init__(self) -> None:
        self.answers = {"2XX": 0, "4XX": 0, "5XX": 0}
        self.clients: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.events: Counter[str] = Counter()
        self.servers: dict[str, tuple[bool, int]] = {}
        self.internal_errors = 0
        self.stalls = 0
        self.stalled_seconds = 0.0
        self.warned: set[str] = set()
        self.refusal_labels: tuple[str, ...] = ()
        self.log: MetricsListener | None = None
        self._versions: dict[tuple[str, str], VersionMetrics] = {}  # in the order they were registered
        self._left: OrderedDict[tuple[str, str], VersionMetrics] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Metrics {len(self._versions)} versions, {len(self._left)} left>"

    @property
    def versions(self) -> list[VersionMetrics]:
        """The registered versions, the oldest registration first."""
        return list(self._versions.values())

    @property
    def left(self) -> list[VersionMetrics]:
        """The unregistered versions whose counters are shown."""
        return list(self._left.values())

    @property
    def counted(self) -> list[VersionMetrics]:
        """All versions whose counters are shown."""
        return [*self._left.values(), *self._versions.values()]

    def answered(self, status: int) -> None:
        self.answers["2XX" if 200 <= status < 300 else "4XX" if 400 <= status < 500 else "5XX"] += 1
        if self.log is not None:
            self.log.sent(status)

    def answered_to(self, client: str, status: int) -> None:
        self.clients[client][str(status)] += 1

    def stalled(self, seconds: float) -> None:
        self.stalls += 1
        self.stalled_seconds += seconds

    def add(self, version: VersionMetrics) -> None:
        """Add a registered version, which replaces one of the same name, and continues its counters."""
        key = (version.name, version.version)
        before = self._versions.pop(key, None) or self._left.pop(key, None)
        if before is not None:
            version.continue_from(before)
        version.log = self.log
        self._versions[key] = version

    def find(self, name: str, version: str) -> VersionMetrics:
        """Return the version of this name, registered or not; an unknown one is kept as one that has left."""
        key = (name, version)
        found = self._versions.get(key) or self._left.get(key)
        if found is None:
            found = VersionMetrics(name, version)
            self._keep(found)
        return found

    def replace(self, old: VersionMetrics, new: VersionMetrics) -> None:
        """Put a version in the place of another that still finishes: both count as one."""
        new.take_over(old)
        new.log = self.log
        self._versions[new.name, new.version] = new

    def remove(self, version: VersionMetrics) -> None:
        """Remove an unregistered version, and keep its counters. Do nothing if another has its place."""
        key = (version.name, version.version)
        if self._versions.get(key) is not version:
            return
        del self._versions[key]
        if version.empty:
            return
        version.emitted.keep_counters()
        self._keep(version)

    def _keep(self, version: VersionMetrics) -> None:
        self._left[version.name, version.version] = version
        if len(self._left) > KEPT_VERSIONS:
            self._left.popitem(last=False)


EVERY = 5.0  # seconds


class RecentTimer:
    """Remembers the counts of all versions every five seconds."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._ticker = Ticker(clock, EVERY, self._look)
        self.begin, self.close = self._ticker.begin, self._ticker.close

    def _look(self) -> None:
        now = self._clock.now()
        for version in self._metrics.versions:
            version.window.note(version.counts, now)
