"""A registration wins over `model-config.yaml`, which wins over the `models` block, which wins over the default."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.kit.build import make_config
from tests.kit.said import reason, said_in
from tsctl.daemon.config.config import Config, resolve
from tsctl.daemon.core.errors import BadRequest, InvalidModel
from tsctl.daemon.models.archives.manifest import check_served, read_yaml, unused_devices, without_effect
from tsctl.daemon.models.settings import ModelSettings, Overrides, merge
from tsctl.daemon.server.extensions import EXTENSIONS


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return make_config(tmp_path, response_timeout="11", startup_timeout="12", queue_jobs="13", queue_bytes="14")


def of_extensions(config: Config) -> dict[str, Any]:
    """Return the daemon's defaults of the rows of extensions that have one."""
    rows = (row for extension in EXTENSIONS for row in extension.model_settings)
    return {row.name: getattr(config, row.daemon) for row in rows if row.daemon}


DEFAULTS: dict[str, Any] = {
    "batch_size": 1, "max_delay": 0.1, "policy": "auto", "workers": 0, "max_workers": 0, "response_timeout": 11.0,
    "startup_timeout": 12.0, "queue_jobs": 13, "queue_bytes": 14, "retry": None, "isolate": None,
}  # fmt: skip
ARCHIVE = {
    "batchSize": 8, "maxBatchDelay": 25, "batching": "greedy", "minWorkers": 2, "maxWorkers": 4, "responseTimeout": 60,
    "startupTimeout": 30.5, "jobQueueSize": 7, "retry": False, "isolate": True, "somethingElse": {"deep": True},
}  # fmt: skip
OF_ARCHIVE = DEFAULTS | {
    "batch_size": 8, "max_delay": 0.025, "policy": "greedy", "workers": 2, "max_workers": 4, "response_timeout": 60.0,
    "startup_timeout": 30.5, "queue_jobs": 7, "retry": False, "isolate": True,
}  # fmt: skip
BLOCK = {"batchSize": 2, "maxBatchDelay": 50, "minWorkers": 2, "maxWorkers": 3, "responseTimeout": 9}
OF_BLOCK = DEFAULTS | {"batch_size": 2, "max_delay": 0.05, "workers": 2, "max_workers": 3, "response_timeout": 9.0}


@pytest.mark.parametrize(
    ("document", "block", "values"),
    [
        pytest.param({}, {}, DEFAULTS, id="the defaults"),
        pytest.param(ARCHIVE, {}, OF_ARCHIVE, id="the archive wins over the defaults"),
        pytest.param({}, BLOCK, OF_BLOCK, id="so does the block"),
        pytest.param(ARCHIVE, BLOCK, OF_ARCHIVE, id="over which the archive wins"),
        pytest.param({"batchSize": None}, BLOCK, OF_BLOCK, id="an empty value says nothing"),
    ],
)
def test_every_value_counts(
    document: dict[str, Any], block: dict[str, Any], values: dict[str, Any], config: Config
) -> None:
    assert merge(Overrides(), document, config, block) == ModelSettings(**values, **of_extensions(config))


@pytest.mark.parametrize(
    ("wish", "document", "field", "value"),
    [
        ({"batch_size": 4}, {"batchSize": 8}, "batch_size", 4),
        ({"max_delay": 0.0}, {"maxBatchDelay": 25}, "max_delay", 0.0),
        ({"policy": "fixed"}, {"batching": "greedy"}, "policy", "fixed"),
        ({"response_timeout": 5.0}, {"responseTimeout": 60}, "response_timeout", 5.0),
        ({"startup_timeout": 5.0}, {"startupTimeout": 60}, "startup_timeout", 5.0),
        ({"queue_timeout": 0.0}, {"queueTimeout": 2}, "queue_timeout", 0.0),
        ({"workers": 1}, {"minWorkers": 3}, "workers", 1),
        ({"workers": 0}, {"minWorkers": 3}, "workers", 0),
    ],
)
def test_the_registration_wins_over_the_archive(
    wish: dict[str, Any], document: dict[str, Any], field: str, value: object, config: Config
) -> None:
    assert getattr(merge(Overrides(**wish), document, config, BLOCK), field) == value


@pytest.mark.parametrize(
    ("wish", "document", "field", "origin"),
    [
        ({}, {}, "batch_size", "the models block of config.properties"),
        ({}, {"batchSize": 3}, "batch_size", "model-config.yaml"),
        ({}, {"batchSize": None}, "batch_size", "the models block of config.properties"),
        ({"batch_size": 4}, {"batchSize": 3}, "batch_size", "register"),
        ({}, {}, "startup_timeout", "the daemon's flag"),
        ({}, {}, "policy", "default"),
    ],
)
def test_an_origin_is_told(
    wish: dict[str, Any], document: dict[str, Any], field: str, origin: str, config: Config
) -> None:
    assert merge(Overrides(**wish), document, config, BLOCK).origins[field] == origin


@pytest.mark.parametrize(
    ("overrides", "document", "workers"),
    [
        pytest.param(Overrides(), {}, (0, 0), id="nobody asks for any"),
        pytest.param(Overrides(fallback_workers=1), {}, (1, 1), id="then the caller's usual number"),
        pytest.param(Overrides(fallback_workers=1), {"minWorkers": 3}, (3, 3), id="the archive's least"),
        pytest.param(Overrides(), {"minWorkers": 3, "maxWorkers": 2}, (3, 3), id="the most is at least the least"),
        pytest.param(Overrides(), {"minWorkers": 2, "maxWorkers": 5}, (2, 5), id="a range"),
        pytest.param(Overrides(fallback_workers=1), {"minWorkers": 0}, (1, 1), id="zero says nothing"),
        pytest.param(Overrides(workers=2), {"minWorkers": 3, "maxWorkers": 5}, (2, 2), id="the registration's number"),
        pytest.param(Overrides(workers=2, max_workers=4), {"minWorkers": 3}, (2, 4), id="or its range"),
        pytest.param(Overrides(max_workers=4), {"minWorkers": 3}, (3, 4), id="its largest number beside another least"),
        pytest.param(Overrides(max_workers=2), {"minWorkers": 3, "maxWorkers": 5}, (3, 3), id="which stays the least"),
    ],
)
def test_workers(overrides: Overrides, document: dict[str, Any], workers: tuple[int, int], config: Config) -> None:
    chosen = merge(overrides, document, config)

    assert (chosen.workers, chosen.max_workers) == workers


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("batchSize", 0), ("batchSize", True), ("batchSize", "8"), ("batchSize", 1.5),
        ("batchSize", 10**9 + 1),
        pytest.param("jobQueueSize", 16**4000, id="a number that Python does not write"),
        pytest.param("batchSize", [16**4000], id="a list of such"),
        ("maxBatchDelay", -1), ("maxBatchDelay", "soon"), ("maxBatchDelay", float("inf")),
        ("responseTimeout", 0), ("responseTimeout", 0.0), ("startupTimeout", 0),
        ("responseTimeout", float("nan")), ("responseTimeout", True), ("startupTimeout", 10**400),
        ("queueTimeout", -1), ("queueTimeout", "2 s"), ("clientTimeoutInMills", -1), ("clientTimeoutInMills", True),
        ("jobQueueSize", 0), ("minWorkers", -1), ("maxWorkers", [1]),
        ("batching", "on"), ("batching", ["fixed"]), ("retry", "yes"), ("isolate", "on"), ("retry", 1),
    ],
)  # fmt: skip
def test_a_wrong_value_of_the_archive_or_the_block_is_named(key: str, value: object, config: Config) -> None:
    with pytest.raises(InvalidModel, match=rf"^model-config.yaml: `{key}` is `.*`; expected "):
        merge(Overrides(), {key: value}, config)
    with pytest.raises(InvalidModel, match=rf"^the models block of config\.properties: `{key}` is `.*`; expected "):
        merge(Overrides(), {}, config, {key: value})


def test_a_large_value_is_shown_shortened(config: Config) -> None:
    aliased: list[Any] = ["x"]
    for _ in range(40):  # by aliases, a few hundred bytes of YAML
        aliased = [aliased] * 10

    with pytest.raises(InvalidModel) as caught:
        merge(Overrides(), {"batchSize": aliased}, config)

    assert len(str(caught.value)) < 1000


@said_in("wrong.txt")
def test_a_wrong_wish_is_named(given: str, config: Config) -> str:
    return reason(lambda: merge(Overrides(**json.loads(given)), {}, config), BadRequest)


@pytest.mark.parametrize(
    ("overrides", "document", "default", "workers", "origin"),
    [
        pytest.param(
            Overrides(fallback_workers=1), {}, "3", 3, "the daemon's flag", id="the operator's over the caller's"
        ),
        pytest.param(Overrides(fallback_workers=1), {}, "0", 1, "default", id="none says nothing"),
        pytest.param(
            Overrides(), {"minWorkers": 2}, "3", 2, "model-config.yaml", id="the archive's over the operator's"
        ),
        pytest.param(Overrides(workers=0), {}, "3", 0, "register", id="the registration's over all"),
    ],
)
def test_the_usual_number_of_workers(
    overrides: Overrides, document: dict[str, Any], default: str, workers: int, origin: str, tmp_path: Path
) -> None:
    settings = merge(overrides, document, make_config(tmp_path, default_workers=default))

    assert (settings.workers, settings.origins["workers"]) == (workers, origin)


@pytest.mark.parametrize("border", ["flag", "environment", "file"])
def test_the_daemons_own_setting_is_told_with_its_origin(border: str, tmp_path: Path) -> None:
    file = tmp_path / "config.properties"
    file.write_text("default_response_timeout=7\n")
    flags = {"flag": {"response_timeout": "7"}, "environment": {}, "file": {"ts_config": str(file)}}[border]
    environment = {"TSCTL_RESPONSE_TIMEOUT": "7"} if border == "environment" else {}

    settings = merge(Overrides(), {}, resolve({"state_dir": str(tmp_path)} | flags, environment))

    origin = f"file {file}" if border == "file" else border
    assert (settings.response_timeout, settings.origins["response_timeout"]) == (7.0, f"the daemon's {origin}")


@pytest.mark.parametrize(
    ("text", "document"),
    [
        (b"batchSize: 4\nhandler:\n  top_k: 3\n", {"batchSize": 4, "handler": {"top_k": 3}}),
        (b"", {}),
        (b"# only a comment\n", {}),
        (b"a: &a {b: 1, c: 1}\n<<: [*a, {d: 2}]\nb: 3\n", {"a": {"b": 1, "c": 1}, "b": 3, "c": 1, "d": 2}),
        (b"torchrun: null\nparallelType: ''\n", {"torchrun": None, "parallelType": ""}),
    ],
)
def test_yaml_is_read(text: bytes, document: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "model-config.yaml").write_bytes(text)

    assert read_yaml(tmp_path, "model-config.yaml") == document
    assert read_yaml(tmp_path, None) == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        pytest.param(b"a: [1", "is not YAML: ", id="half a list"),
        pytest.param(b"\xff\xff", "is not YAML: ", id="bytes that are no text"),
        pytest.param(b"a: !!python/object/apply:os.system [ls]", "is not YAML: ", id="code"),
        pytest.param(b"a: 2024-13-45", "is not YAML: ", id="a thirteenth month"),
        pytest.param(b"a: !!int ''", "is not YAML: ", id="a number without digits"),
        pytest.param(b"a: !!timestamp noon", "is not YAML: ", id="a date that is none"),
        pytest.param(b"[" * 400, "is not YAML: ", id="endless nesting"),
        pytest.param(b"? {a: b}\n: c", "is not YAML: ", id="a key that cannot be one"),
        *((b"a: " * (each < b"-") + each * 20_000, "is not YAML: more than 50 levels") for each in (b"- ", b"? ")),
        *((b"a: " + each * 20_000, "is not YAML: more than 50 levels") for each in (b"[", b"{a: ")),
        pytest.param(
            b"a: 1\n" + b"#" * 256 * 1024, "has more than 256 KiB; put large tables into a file of their", id="long"),
        pytest.param(b"- a\n- b\n", "holds a list, and should hold a mapping", id="no mapping"),
    ],
    ids=lambda value: value[:6] if isinstance(value, bytes) else "",
)  # fmt: skip
def test_what_is_no_yaml_is_a_sentence_and_no_deep_one_is_read(text: bytes, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_bytes(text)
    began = time.thread_time()

    with pytest.raises(InvalidModel, match=f"^`c.yaml` {sentence}"):
        read_yaml(tmp_path, "c.yaml")

    if "levels" in sentence:
        assert time.thread_time() - began < 0.5  # 0.2 s; 1 to 3 s while all of it was read


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("[{}]", id="lists of lists"),
        pytest.param("{{<<: [{}]}}", id="merges of merges"),
        pytest.param("!!pairs [{{v: [{}]}}]", id="pairs of pairs"),
    ],
)
def test_no_reader_meets_the_8_to_the_11th_values_that_aliases_of_aliases_stand_for(value: str, tmp_path: Path) -> None:
    """The warm-up walked them for 120 s, until the time to start was over."""
    of_aliases = [value.format(", ".join([f"*a{number}"] * 8)) for number in range(11)]
    lines = ["warmup:", " - &a0 {x: 1}", *(f" - &a{number} {each}" for number, each in enumerate(of_aliases, 1))]
    (tmp_path / "c.yaml").write_text("\n".join(lines))

    with pytest.raises(InvalidModel, match="is not YAML: more than 256 KiB, aliases resolved"):
        read_yaml(tmp_path, "c.yaml")


def test_an_alias_stands_for_its_value_and_not_for_a_value_that_it_is_part_of(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("a: &a {x: 1}\nb: {<<: *a, y: [*a]}")
    assert read_yaml(tmp_path, "c.yaml") == {"a": {"x": 1}, "b": {"x": 1, "y": [{"x": 1}]}}

    (tmp_path / "c.yaml").write_text("a: &a [*a]")
    with pytest.raises(InvalidModel, match="is not YAML: an alias within the value that it stands for"):
        read_yaml(tmp_path, "c.yaml")


def test_the_config_is_not_looked_for_outside(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("batchSize: 4")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "c.yaml").write_text("batchSize: 8")

    assert read_yaml(tmp_path / "model", "../c.yaml") == {"batchSize": 8}


@pytest.mark.parametrize(
    ("document", "gpus", "devices"),
    [
        pytest.param({}, 0, (), id="a machine without GPUs serves on the CPU"),
        pytest.param({"deviceType": "gpu", "deviceIds": [0]}, 0, (), id="also what was made for one"),
        pytest.param({}, 2, (0, 1), id="every GPU may be used"),
        pytest.param({"deviceType": "cpu"}, 2, (), id="unless the archive wants the CPU"),
        pytest.param({"deviceIds": [1]}, 2, (1,), id="or names its own"),
    ],
)
def test_devices(document: dict[str, Any], gpus: int, devices: tuple[int, ...], config: Config) -> None:
    assert merge(Overrides(), document, config, gpus=gpus).devices == devices


@pytest.mark.parametrize(
    ("document", "devices", "told"),
    [
        ({"deviceIds": [0], "deviceType": "gpu"}, (), ["deviceIds", "deviceType"]),
        ({"deviceIds": [0], "deviceType": "cpu"}, (), ["deviceIds"]),
        ({"deviceIds": [0], "deviceType": "gpu"}, (0,), []),
        ({"deviceType": "auto"}, (), []),
    ],
    ids=["a machine without GPUs", "a model for the CPU", "one on its GPU", "one that says that it needs none"],
)
def test_gpus_that_are_asked_for_and_not_used_are_told(
    document: dict[str, Any], devices: tuple[int, ...], told: list[str]
) -> None:
    assert [sentence.split("`")[1] for sentence in unused_devices(document, devices)] == told


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [([0, 2], r"is \[0, 2\], but this machine has GPUs 0 to 1\.$"), ([], "")],
    ids=["a GPU that is not there", "none, which is not all of them"],
)
def test_gpus_that_cannot_be_used_are_named(ids: list[int], sentence: str, config: Config) -> None:
    with pytest.raises(InvalidModel, match=f"^model-config.yaml: `deviceIds` {sentence}"):
        merge(Overrides(), {"deviceIds": ids}, config, gpus=2)


def test_keys_that_mean_nothing_here_are_named_and_one_that_answers_would_differ_without_is_refused() -> None:
    assert without_effect({"batchSize": 4, "maxRetryTimeoutInSec": 50}) == ["maxRetryTimeoutInSec"]
    check_served({"useJobTicket": False}, "model-config.yaml")
    with pytest.raises(InvalidModel, match=r"`useJobTicket` is not served.*`jobQueueSize`"):
        check_served({"useJobTicket": True}, "model-config.yaml")
