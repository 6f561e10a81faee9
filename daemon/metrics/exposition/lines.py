"""The lines of samples, as `prometheus_client` writes them, at a tenth of its cost.

A look at `/metrics` with 500 models, of which 80 were asked for, has 27 000 lines. The library checks and escapes each
name and label of each line. Here the names are valid already (emitted.py), and labels that samples have in common are
escaped once for all their lines.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from prometheus_client.samples import Exemplar, Sample
from prometheus_client.utils import floatToGoString

from tsctl.daemon.metrics.histogram import Histogram, LatencyExample

_EXACT = 1_000_000  # whole numbers below are written without an exponent

Labels = dict[str, str]
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
        """Return the lines of counters or gauges."""
        whole = self._whole
        return [f"{name}{whole(labels)} {number(value)}\n" for labels, value in rows]

    def samples(self, samples: Iterable[Sample]) -> list[str]:
        """Return the lines of samples that were chosen."""
        return [
            f"{each.name}{self._whole(each.labels)} {number(each.value)}{self._example(each.exemplar)}\n"
            for each in samples
        ]

    def histograms(self, name: str, rows: Iterable[HistogramRow]) -> list[str]:
        """Return the lines of histograms."""
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
