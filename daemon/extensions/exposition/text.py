"""Families of samples, and their text: Prometheus' format 0.0.4, or OpenMetrics 1.0.0.

The text is that of `prometheus_client`, whose types the families have. The lines are written here, at a tenth of its
cost: a look at `/metrics` with 500 models, of which 80 were asked for, has 27 000 lines, and the library checks and
escapes each name and label of each. Here the names are valid already (emitted.py), and labels that samples have in
common are escaped once for all their lines.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import repeat
from typing import Any

from prometheus_client import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.samples import Exemplar, Sample
from prometheus_client.utils import floatToGoString

from tsctl.daemon.metrics.histogram import Histogram, LatencyExample

_EXACT = 1_000_000  # whole numbers below are written without an exponent

Labels = dict[str, str]
SampleLines = Callable[[Iterable[Sample]], list[str]]
HistogramRow = tuple[Labels, Histogram, Mapping[int, LatencyExample]]


class SampleWriter:
    """Writes lines; one for each text, because labels are remembered by identity.

    Args:
        openly: for OpenMetrics, which has examples.
    """

    def __init__(self, *, openly: bool = False) -> None:
        self._openly = openly
        self._known: dict[int, tuple[Labels, str]] = {}  # the labels are held, so that no others get their id

    def values(self, name: str, rows: Iterable[tuple[Labels, float]]) -> list[str]:
        whole = self._whole
        return [f"{name}{whole(labels)} {number(value)}\n" for labels, value in rows]

    def samples(self, samples: Iterable[Sample]) -> list[str]:
        """Return the lines of samples that were chosen."""
        return [
            f"{each.name}{self._whole(each.labels)} {number(each.value)}{self._example(each.exemplar)}\n"
            for each in samples
        ]

    def histograms(self, name: str, rows: Iterable[HistogramRow]) -> list[str]:
        lines = []
        for labels, histogram, examples in rows:
            # `le` has its place among the sorted labels.
            before = labels_text({label: text for label, text in labels.items() if label < "le"})
            after = labels_text({label: text for label, text in labels.items() if label > "le"})
            start, end = f'{name}_bucket{{{before}{"," if before else ""}le="', f'"{"," if after else ""}{after}}} '
            count = 0
            for index, bound in enumerate(bounds_text(tuple(histogram.bounds))):
                count += histogram.counts[index]
                example = self._example(_exemplar(examples[index])) if index in examples else ""
                lines.append(f"{start}{bound}{end}{number(count)}{example}\n")
            whole = self._whole(labels)
            lines.append(f"{name}_count{whole} {number(count)}\n{name}_sum{whole} {number(histogram.sum)}\n")
        return lines

    def _whole(self, labels: Labels) -> str:
        """Return the labels with their braces; empty without any."""
        found = self._known.get(id(labels))
        if found is None:
            text = labels_text(labels)
            found = self._known[id(labels)] = (labels, f"{{{text}}}" if text else "")
        return found[1]

    def _example(self, example: Exemplar | None) -> str:
        if example is None or not self._openly:
            return ""
        return f" # {{{labels_text(example.labels)}}} {number(example.value)} {example.timestamp}"


def as_samples(name: str, row: HistogramRow) -> Iterator[Sample]:
    """Yield a histogram's samples, for those who choose among them."""
    labels, histogram, examples = row
    count = 0
    for index, bound in enumerate(bounds_text(tuple(histogram.bounds))):
        count += histogram.counts[index]
        example = _exemplar(examples[index]) if index in examples else None
        yield Sample(f"{name}_bucket", labels | {"le": bound}, count, None, example)
    yield Sample(f"{name}_count", labels, count)
    yield Sample(f"{name}_sum", labels, histogram.sum)


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels as they stand between the braces, in the order of their names."""
    return ",".join([f'{name}="{escaped(value)}"' for name, value in sorted(labels.items())])


def escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def number(value: float) -> str:
    """Return a value as Go writes it."""
    if type(value) is int and -_EXACT < value < _EXACT:
        return f"{value}.0"
    text: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return text


def _exemplar(example: LatencyExample) -> Exemplar:
    return Exemplar({"trace_id": example.trace_id}, example.seconds, example.time)


@cache
def bounds_text(bounds: Sequence[float]) -> tuple[str, ...]:
    return (*map(repr, bounds), "+Inf")


CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
OPEN_CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_EOF = b"# EOF\n"


class MetricFamily(Metric):
    """A family of counters or gauges, whose lines are written without a sample for each.

    Attributes:
        rows: the labels and the value of each; empty once some of the samples were chosen.
    """

    at_once = 1000  # rows: 1 ms
    rows: list[Any]

    def __init__(self, name: str, text: str, kind: str, rows: list[tuple[Labels, float]]) -> None:
        super().__init__(name, text, kind)  # which sets `samples`
        self.rows = rows

    @property
    def samples(self) -> list[Sample]:
        """The samples, made of the rows; set those that were chosen among them."""
        return self._chosen or self._samples()

    @samples.setter
    def samples(self, chosen: list[Sample]) -> None:
        self._chosen = chosen
        self.rows = []

    def lines(self, begin: int, writer: SampleWriter) -> list[str]:
        return writer.values(self.name, self.rows[begin : begin + self.at_once])

    def _samples(self) -> list[Sample]:
        return [Sample(self.name, labels, value) for labels, value in self.rows]


class HistogramFamily(MetricFamily):
    """A family of histograms; the rows are `HistogramRow`."""

    at_once = 50

    def __init__(self, name: str, text: str, rows: list[HistogramRow]) -> None:
        super().__init__(name, text, "histogram", [])
        self.rows = rows

    def lines(self, begin: int, writer: SampleWriter) -> list[str]:
        return writer.histograms(self.name, self.rows[begin : begin + self.at_once])

    def _samples(self) -> list[Sample]:
        return [sample for row in self.rows for sample in as_samples(self.name, row)]


def family(name: str, kind: str, text: str, values: Iterable[tuple[Labels, float]]) -> MetricFamily:
    """Return a family of counters or gauges, one for each of `values`.

    Where some share labels, also of several families, the same object spares escaping them again.
    """
    return MetricFamily(name, text, kind, list(values))


def histograms(
    name: str,
    text: str,
    values: Iterable[tuple[Labels, Histogram]],
    examples: Iterable[Mapping[int, LatencyExample]] | None = None,
) -> MetricFamily:
    """Return a family of histograms.

    Args:
        examples: for each of them the examples by the index of their bucket; only OpenMetrics shows them.
    """
    known = repeat({}) if examples is None else examples
    return HistogramFamily(name, text, [(*value, each) for value, each in zip(values, known, strict=False)])


class Selection:
    """The operator's choice among the metrics: all of them. An extension's shows fewer, or in another way."""

    machine = True  # whether the machine is measured

    def shown(self, families: Iterable[MetricFamily]) -> Iterable[MetricFamily]:
        """Return the families that are shown."""
        return families

    def model_labels(self, name: str, labels: Labels) -> Labels:
        """Return the labels with which a handler's own metric is shown."""
        del name
        return labels

    def written(self, name: str) -> SampleLines | None:
        """Return what writes the lines of a family, which is then named even without values; None for our own way."""
        del name
        return None


ALL = Selection()


def texts(
    families: Iterable[MetricFamily],
    names: Collection[str] = (),
    *,
    openly: bool = False,
    written: Callable[[str], SampleLines | None] = lambda name: None,
) -> Iterator[bytes]:
    """Return the text, a family at a time, of a large one about `at_once` rows at a time.

    Args:
        names: of families or of single samples to select; empty for all.
        openly: in the format of OpenMetrics.
        written: as of `Selection`.
    """
    writer = SampleWriter(openly=openly)
    for each in families:
        theirs = None if openly else written(each.name)
        chosen = bool(names) and each.name not in names
        if theirs is not None or chosen:
            each.samples = [sample for sample in each.samples if not chosen or sample.name in names]
        head, write = _head(each, openly=openly), theirs or writer.samples
        samples = [] if each.rows else each.samples
        if theirs is not None and not samples and not names:
            yield head.encode()
        for begin in range(0, len(samples), MetricFamily.at_once):
            yield _text("" if begin else head, write(samples[begin : begin + MetricFamily.at_once]))
        for begin in range(0, len(each.rows), each.at_once):
            yield _text("" if begin else head, each.lines(begin, writer))
    if openly:
        yield _EOF


def _text(head: str, lines: Sequence[str]) -> bytes:
    return "".join((head, *lines)).encode()


def _head(made: MetricFamily, *, openly: bool) -> str:
    kind, name = made.type, made.name
    if openly and kind == "counter":  # there each of its samples ends so; TorchServe's, and those of handlers, may not
        kind, name = ("counter", name.removesuffix("_total")) if name.endswith("_total") else ("unknown", name)
    text = made.documentation.replace("\\", r"\\").replace("\n", r"\n")
    text = text.replace('"', r"\"") if openly else text
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


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
