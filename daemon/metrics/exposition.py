"""Families of samples, and their text, by `prometheus_client`: Prometheus' format 0.0.4, or OpenMetrics 1.0.0."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat

from prometheus_client import Metric, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.samples import Exemplar, Sample
from prometheus_client.utils import floatToGoString

from daemon.metrics.exemplars import TracedLatency
from daemon.metrics.histogram import Histogram

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
OPEN_CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_EOF = b"# EOF\n"
AT_ONCE = 1000  # samples: 15 ms

Labels = dict[str, str]


def family(name: str, kind: str, text: str, values: Iterable[tuple[Labels, float]]) -> Metric:
    """Return a family of counters or gauges, one sample for each of `values`."""
    made = Metric(name, text, kind)
    made.samples = [Sample(name, labels, value) for labels, value in values]
    return made


def histograms(
    name: str,
    text: str,
    values: Iterable[tuple[Labels, Histogram]],
    examples: Iterable[Mapping[int, TracedLatency]] | None = None,
) -> Metric:
    """Return a family of histograms.

    Args:
        examples: for each of them the examples by the index of their bucket; only OpenMetrics shows them.
    """
    made = Metric(name, text, "histogram")
    for (labels, histogram), known in zip(values, repeat({}) if examples is None else examples, strict=False):
        count = 0
        for index, within in enumerate(histogram.counts):
            count += within
            le = labels | {"le": _bounds(tuple(histogram.bounds))[index]}
            made.samples.append(Sample(f"{name}_bucket", le, count, None, _exemplar(known.get(index))))
        made.samples.append(Sample(f"{name}_count", labels, count))
        made.samples.append(Sample(f"{name}_sum", labels, histogram.sum))
    return made


def _exemplar(example: TracedLatency | None) -> Exemplar | None:
    if example is None:
        return None
    return Exemplar({"trace_id": example.trace_id}, example.seconds, example.time)


@cache
def _bounds(bounds: Sequence[float]) -> list[str]:
    return [*map(repr, bounds), "+Inf"]


def texts(
    families: Iterable[Metric],
    names: Collection[str] = (),
    *,
    openly: bool = False,
    as_torchserve: Callable[[str], bool] = lambda name: False,
) -> Iterator[bytes]:
    """Return the text, a family at a time, of a large one `AT_ONCE` samples at a time.

    Args:
        names: of families or of single samples to select; empty for all.
        openly: in the format of OpenMetrics.
        as_torchserve: whether the family of this name is written as by TorchServe, unless it is in OpenMetrics.
    """
    for each in families:
        theirs = not openly and as_torchserve(each.name)
        if _keep(each, names) or (theirs and not names):
            write = _open_text if openly else _their_text if theirs else _text
            first, *others = _slices(each)
            yield write(first)
            for other in others:
                yield write(other).partition(b"\n# TYPE ")[2].partition(b"\n")[2]
    if openly:
        yield _EOF


def _slices(made: Metric) -> list[Metric]:
    """Return the family in families of at most `AT_ONCE` samples."""
    if len(made.samples) <= AT_ONCE:
        return [made]
    slices = []
    for begin in range(0, len(made.samples), AT_ONCE):
        slices.append(Metric(made.name, made.documentation, made.type))
        slices[-1].samples = made.samples[begin : begin + AT_ONCE]
    return slices


def wants_open(accept: str) -> bool:
    """Return whether a client asks for OpenMetrics, by the value of its header `Accept`, and not rather for text."""
    weights = {"application/openmetrics-text": 0.0, "text/plain": 0.0}
    for part in accept.split(","):
        kind, *parameters = (word.strip().lower() for word in part.split(";"))
        if kind in weights:
            weights[kind] = max(weights[kind], _weight(parameters))
    asked, text = weights.values()
    return 0.0 < asked >= text


def _weight(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0


def render(families: Iterable[Metric], names: Collection[str] = ()) -> bytes:
    """Return the whole text."""
    return b"".join(texts(families, names))


def _keep(made: Metric, names: Collection[str]) -> bool:
    if names and made.name not in names:
        made.samples = [sample for sample in made.samples if sample.name in names]
    return bool(made.samples)


class _One:
    """A collector of one family, for the library."""

    def __init__(self, made: Metric) -> None:
        self._made = made

    def collect(self) -> Iterable[Metric]:
        return (self._made,)


def _text(made: Metric) -> bytes:
    text = generate_latest(_One(made))
    if made.type != "counter":
        return text
    # The library ends a counter's name with `_total` in the head, whatever its samples are called;
    # TorchServe's counters do not end so, and neither do those of handlers.
    for word in (b"HELP", b"TYPE"):
        name = made.name.encode()
        text = text.replace(b"# %s %s_total " % (word, name), b"# %s %s " % (word, name), 1)
    return text


def _their_text(made: Metric) -> bytes:
    """Return the text of TorchServe's library: their labels' order, a comma behind the last, empty families."""
    lines = [f"# HELP {made.name} {made.documentation}", f"# TYPE {made.name} {made.type}"]
    for sample in made.samples:
        labels = "".join([f'{name}="{_escaped(value)}",' for name, value in sample.labels.items()])
        lines.append(f"{sample.name}{{{labels}}} {floatToGoString(sample.value)}")  # type: ignore[no-untyped-call]
    return "".join([f"{line}\n" for line in lines]).encode()


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _open_text(made: Metric) -> bytes:
    kind, name = made.type, made.name
    if kind == "counter":  # in OpenMetrics each of its samples ends so; TorchServe's, and those of handlers, may not
        kind, name = ("counter", name.removesuffix("_total")) if name.endswith("_total") else ("unknown", name)
    shown = Metric(name, made.documentation, kind)
    shown.samples = made.samples
    text: bytes = openmetrics.generate_latest(_One(shown))
    return text.removesuffix(_EOF)
