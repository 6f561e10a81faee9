"""Read TorchServe's metrics.yaml: the metrics that an operator has declared.

    dimensions:              # a place for YAML anchors, otherwise unused
      - &model_name "ModelName"
    ts_metrics:              # the server's own: those that are not listed are not shown
      counter: [{name: Requests2XX, unit: Count, dimensions: [Level, Hostname]}]
    model_metrics:           # of handlers; `Hostname` is added
      gauge: [{name: RequestBatchSize, unit: count, dimensions: [*model_name]}]

TorchServe logs an error for a file that it cannot read, and serves without metrics; here the daemon does not start.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from tsctl.daemon.core.errors import StartError

SECTIONS = ("ts_metrics", "model_metrics")
MOST_METRICS = 500  # of one section; each worker is sent those of the models
LONGEST_WORD = 100  # characters of a name, a unit or a dimension
_REMEDY = "correct the file, or remove `metrics_config`"

MetricKind = Literal["counter", "gauge", "histogram"]
KINDS: tuple[MetricKind, ...] = get_args(MetricKind)


class DeclaredMetric(NamedTuple):
    """A metric of the file; a model's dimensions are without `Hostname`."""

    kind: MetricKind
    name: str
    unit: str
    dimensions: list[str]


@dataclass(frozen=True, slots=True)
class MetricsFile:
    """The content of a metrics.yaml, by section."""

    ts_metrics: tuple[DeclaredMetric, ...] = ()
    model_metrics: tuple[DeclaredMetric, ...] = ()


def read_metrics_file(path: Path, where: str) -> MetricsFile:
    """Read a metrics.yaml.

    Args:
        where: the flag, the variable or the key that names the file, for errors.

    Raises:
        StartError: the file cannot be read, or does not declare metrics as TorchServe expects.
    """
    import yaml  # here, because a daemon without a file saves the time

    try:
        document = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise StartError(f"{where}: cannot read `{path}`: {error.strerror}", _REMEDY) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise StartError(f"{where}: `{path}` is not YAML: {error}", _REMEDY) from None
    place = f"{where}: `{path}`"
    if document is None:
        return MetricsFile()
    if not isinstance(document, dict):
        raise StartError(f"{place} holds a {type(document).__name__}; expected a mapping with `model_metrics`", _REMEDY)
    found = {section: tuple(_metrics(document.get(section), f"{place}: `{section}`")) for section in SECTIONS}
    return MetricsFile(**found)


def _metrics(section: Any, place: str) -> Iterator[DeclaredMetric]:
    if section is None:
        return
    if not isinstance(section, dict):
        raise StartError(f"{place} is a {type(section).__name__}; expected {', '.join(KINDS)}", _REMEDY)
    unknown = [str(each) for each in section if each not in KINDS]
    if unknown:
        raise StartError(f"{place} has no metric type `{unknown[0]}`; expected {', '.join(KINDS)}", _REMEDY)
    rows = [(kind, row) for kind in KINDS for row in _list(section.get(kind), f"{place}, `{kind}`")]
    if len(rows) > MOST_METRICS:
        raise StartError(f"{place} declares {len(rows)} metrics; expected at most {MOST_METRICS}", _REMEDY)
    for kind, row in rows:
        yield _metric(kind, row, f"{place}, `{kind}`")


def _metric(kind: MetricKind, row: Any, place: str) -> DeclaredMetric:
    if not isinstance(row, dict):
        raise StartError(f"{place} holds `{row}`; expected a mapping of name, unit and dimensions", _REMEDY)
    for key in ("name", "unit"):
        _check_word(row.get(key), f"{place}: the {key} of `{row.get('name')}`")
    named = f"{place}: the dimensions of `{row['name']}`"
    if "dimensions" not in row:
        raise StartError(f"{named} are missing; write `dimensions: []` for none", _REMEDY)
    dimensions = _list(row["dimensions"], named)
    for each in dimensions:
        _check_word(each, f"{named}: a name")
    return DeclaredMetric(kind, row["name"], row["unit"], dimensions)


def _list(value: Any, place: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise StartError(f"{place}: `{value}` is a {type(value).__name__}; expected a list", _REMEDY)
    return value


def _check_word(value: Any, place: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise StartError(f"{place} is `{value}`; expected a text that is not empty", _REMEDY)
    if len(value) > LONGEST_WORD:
        raise StartError(f"{place} has {len(value)} characters; expected at most {LONGEST_WORD}", _REMEDY)
