"""TorchServe's config.properties: what its keys mean here, and that none of them is lost silently."""

from pathlib import Path

import pytest

from tsctl.daemon.config.config import Config, resolve
from tsctl.daemon.config.properties import INSTEAD, KEYS, MEANINGLESS, READ, STOPS, read_config_file
from tsctl.daemon.core.errors import StartError
from tsctl.daemon.tables import SETTINGS


def write(folder: Path, *lines: str) -> Path:
    file = folder / "config.properties"
    file.write_text("\n".join(lines) + "\n")
    return file


def configured(folder: Path, *lines: str, environment: dict[str, str] | None = None, **flags: str) -> Config:
    """Resolve a configuration with a file of these lines."""
    return resolve({"ts_config": str(write(folder, *lines))} | flags, environment or {})


def test_a_response_timeout_of_nothing_is_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, "default_response_timeout=0")

    assert "default_response_timeout" in said and "`0` is not a timeout of more than 0 seconds" in said


def refusal(folder: Path, *lines: str, environment: dict[str, str] | None = None) -> str:
    with pytest.raises(StartError) as caught:
        configured(folder, *lines, environment=environment)
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "setting", "value"),
    [
        ("inference_address=http://0.0.0.0:9090", "inference_address", "http://0.0.0.0:9090"),
        ("model_store=/", "model_store", Path("/")),
        ("load_models=a.mar, n=b.mar", "models", ("a.mar", "n=b.mar")),
        ("job_queue_size=7", "queue_jobs", 7),
        ("default_workers_per_model=3", "default_workers", 3),
        ("default_workers_per_model=0", "default_workers", 0),
        ("number_of_gpu=0", "gpus", 0),
        ("default_response_timeout=60", "response_timeout", 60.0),
        ("default_startup_timeout=90", "startup_timeout", 90.0),
        ("unregister_model_timeout=5", "grace", 5.0),
        ("max_request_size=65535000", "max_request_size", 65_535_000),
        ("default_service_handler=image_classifier", "default_handler", "image_classifier"),
        ("service_envelope=kserve", "envelope", "kserve"),
        ("decode_input_request=false", "decode_input", False),
        ("limit_max_image_pixels=FALSE", "limit_image_pixels", False),
        ("ts_header_key_sequence_id=X-Dialogue", "sequence_id_header", "X-Dialogue"),
        ("ts_header_key_sequence_start=X-Begin", "sequence_start_header", "X-Begin"),
        ("ts_header_key_sequence_end=X-End", "sequence_end_header", "X-End"),
    ],
)
def test_a_key_is_a_setting(line: str, setting: str, value: object, tmp_path: Path) -> None:
    config = configured(tmp_path, line)

    assert getattr(config, setting) == value
    assert config.origins[setting] == f"file {tmp_path / 'config.properties'}"
    assert config.notes == ()


def test_a_pattern_of_hidden_variables_is_compiled(tmp_path: Path) -> None:
    config = configured(tmp_path, "blacklist_env_vars=.*USERNAME.*|.*PASSWORD.*")

    assert config.hide_environment is not None
    assert config.hide_environment.fullmatch("DB_PASSWORD")


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["default_response_timeout=60"], id="with ="),
        pytest.param(["default_response_timeout: 60"], id="with a colon"),
        pytest.param(["default_response_timeout 60"], id="with a space"),
        pytest.param(["  default_response_timeout = 60  "], id="with spaces around"),
        pytest.param(["default_response_timeout=\\", "    60"], id="over two lines"),
        pytest.param(["# default_response_timeout=1", "! also", "default_response_timeout=60"], id="after comments"),
        pytest.param(["default_response_timeout=1", "default_response_timeout=60"], id="the last one counts"),
        pytest.param(["default\\u005fresponse_timeout=\\u0036\\u0030"], id="with escapes"),
        pytest.param(["default_response_timeout=60\r", "\r"], id="from Windows"),
    ],
)
def test_the_syntax_is_that_of_java(lines: list[str], tmp_path: Path) -> None:
    assert configured(tmp_path, *lines).response_timeout == 60.0


def test_a_key_without_a_value_says_nothing(tmp_path: Path) -> None:
    config = configured(tmp_path, "load_models=", "service_envelope=")

    assert (config.models, config.envelope) == (None, None)


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_path_with_an_umlaut_is_read_in_both_encodings(encoding: str, tmp_path: Path) -> None:
    store = tmp_path / "größe"
    store.mkdir()
    file = tmp_path / "config.properties"
    file.write_bytes(f"model_store={store}".encode(encoding))

    assert resolve({"ts_config": str(file)}, {}).model_store == store


@pytest.mark.parametrize(
    ("flags", "environment", "expected"),
    [
        pytest.param({}, {}, (5.0, "file {}"), id="the file wins over the default"),
        pytest.param({}, {"TSCTL_GRACE": "6"}, (6.0, "environment"), id="the environment wins over the file"),
        pytest.param({"grace": "7"}, {"TSCTL_GRACE": "6"}, (7.0, "flag"), id="a flag wins over all"),
    ],
)
def test_precedence(
    flags: dict[str, str], environment: dict[str, str], expected: tuple[float, str], tmp_path: Path
) -> None:
    config = configured(tmp_path, "unregister_model_timeout=5", environment=environment, **flags)

    assert (config.grace, config.origins["grace"]) == (expected[0], expected[1].format(tmp_path / "config.properties"))


@pytest.mark.parametrize("variable", ["TSCTL_TS_CONFIG", "TS_CONFIG_FILE"])
def test_the_environment_may_name_the_file(variable: str, tmp_path: Path) -> None:
    file = write(tmp_path, "unregister_model_timeout=5")

    assert resolve({}, {variable: str(file)}).grace == 5.0


def test_torchserves_variables_count_only_when_the_file_says_so(tmp_path: Path) -> None:
    environment = {"TS_UNREGISTER_MODEL_TIMEOUT": "6"}
    without = configured(tmp_path, "unregister_model_timeout=5", environment=environment)
    with_them = configured(
        tmp_path, "unregister_model_timeout=5", "enable_envvars_config=true", environment=environment
    )

    assert (without.grace, with_them.grace) == (5.0, 6.0)
    assert with_them.origins["grace"] == "environment"


def test_our_variable_wins_over_torchserves(tmp_path: Path) -> None:
    environment = {"TS_UNREGISTER_MODEL_TIMEOUT": "6", "TSCTL_GRACE": "7"}

    assert configured(tmp_path, "enable_envvars_config=true", environment=environment).grace == 7.0


def test_a_protection_that_torchserves_variables_ask_for_is_not_ignored(tmp_path: Path) -> None:
    said = refusal(
        tmp_path,
        "enable_envvars_config=true",
        environment={"TS_TOKEN_EXPIRATION_TIME_MIN": "30"},
    )

    assert said.startswith("TS_TOKEN_EXPIRATION_TIME_MIN: a token here does not expire")


def test_the_environments_values_are_put_in(tmp_path: Path) -> None:
    config = configured(
        tmp_path, "load_models=$$NAME$$=$$FILE$$.mar", environment={"NAME": "resnet", "FILE": "resnet-152"}
    )

    assert config.models == ("resnet=resnet-152.mar",)


def test_a_value_that_the_environment_does_not_have_stops_the_start(tmp_path: Path) -> None:
    said = refusal(tmp_path, "model_store=$$STORE$$")

    assert said.endswith("model_store: the environment has no variable for `$$STORE$$`")


def test_unknown_keys_are_a_warning_and_meaningless_ones_a_note(tmp_path: Path) -> None:
    lines = ("netty_client_threads=4", "zebra=1", "apple=2", "io_ratio=50", "disable_token_authorization=true")

    notes = configured(tmp_path, *lines).notes

    file = tmp_path / "config.properties"
    assert notes == (
        f"warning: {file} has unknown keys: apple, zebra",
        f"note: {file} has keys that have no effect here: io_ratio, netty_client_threads",
    )


def test_a_key_with_another_way_to_its_end_names_that(tmp_path: Path) -> None:
    notes = configured(tmp_path, "cpu_launcher_enable=true").notes

    file = tmp_path / "config.properties"
    assert notes == (
        f"note: {file}: cpu_launcher_enable has no effect here: `cpus` in model-config.yaml gives workers their cores",
    )


def test_what_is_said_instead_of_a_key_is_about_keys_without_an_effect() -> None:
    assert all(keys and keys <= MEANINGLESS for keys, _ in INSTEAD)


@pytest.mark.parametrize(
    "line",
    [
        "disable_token_authorization=false",
        "token_expiration_min=30",
        "keystore=a.p12",
        "keystore_pass=changeit",
        "keystore_type=PKCS12",
    ],
)
def test_a_key_whose_loss_would_weaken_security_stops_the_start(line: str, tmp_path: Path) -> None:
    said = refusal(tmp_path, line)

    assert said.startswith(f"{tmp_path / 'config.properties'}: {line.partition('=')[0]}: ")


@pytest.mark.parametrize(
    ("flags", "environment"),
    [
        pytest.param({"management_without_token": "true"}, {}, id="a flag that wants none"),
        pytest.param({}, {"TSCTL_MANAGEMENT_WITHOUT_TOKEN": "true"}, id="the environment wants none"),
        pytest.param({"token_file": "/a", "inference_token_file": "/b"}, {}, id="both tokens"),
        pytest.param({"inference_token_file": "/b"}, {"TSCTL_TOKEN": "x"}, id="both, one from the environment"),
    ],
)
def test_a_flag_wins_over_the_files_wish_for_tokens(
    tmp_path: Path, flags: dict[str, str], environment: dict[str, str]
) -> None:
    file = tmp_path / "config.properties"
    file.write_text("disable_token_authorization=false")

    config = resolve({"ts_config": str(file), "state_dir": str(tmp_path), **flags}, environment)

    assert config.management_without_token == (len(flags) < 2 and "TSCTL_TOKEN" not in environment)


@pytest.mark.parametrize("flags", [{}, {"token_file": "/a"}, {"management_without_token": "false"}])
def test_one_token_is_not_what_the_file_wishes(tmp_path: Path, flags: dict[str, str]) -> None:
    file = tmp_path / "config.properties"
    file.write_text("disable_token_authorization=false")

    with pytest.raises(StartError, match=r"`key_file\.json` may be both"):
        resolve({"ts_config": str(file), "state_dir": str(tmp_path), **flags}, {})


def test_addresses_certificates_and_tokens_are_honoured(tmp_path: Path) -> None:
    lines = (
        "inference_address=https://0.0.0.0:8443", "management_address=https://127.0.0.1:8444",
        "certificate_file=/etc/a.pem", "private_key_file=/etc/a.key", "disable_token_authorization=true",
        "allowed_urls=https://models/.*", "enable_model_api=true",
    )  # fmt: skip

    config = configured(tmp_path, *lines)

    assert (config.inference_address, config.management_address) == ("https://0.0.0.0:8443", "https://127.0.0.1:8444")
    assert (config.certificate_file, config.private_key_file) == (Path("/etc/a.pem"), Path("/etc/a.key"))
    assert config.management_without_token and config.enable_model_api
    assert config.allowed_urls == ("https://models/.*",)
    assert config.notes == ()


def test_the_same_key_without_that_wish_is_a_note(tmp_path: Path) -> None:
    assert "keystore" in configured(tmp_path, "keystore=").notes[0]


def test_a_wrong_value_names_its_file_and_key(tmp_path: Path) -> None:
    said = refusal(tmp_path, "job_queue_size=many")

    assert said == f"{tmp_path / 'config.properties'}: job_queue_size: `many` is not a whole number of at least 1"


@pytest.mark.parametrize(
    ("block", "sentence"),
    [
        ("{", "the value is not JSON"),
        ("[]", "expected a JSON object of models"),
        ('{"m": 1}', "invalid `m`; expected a JSON object of versions, each an object of values"),
        ('{"m": {"1.0": 1}}', "invalid `m`; expected a JSON object of versions, each an object of values"),
    ],
)
def test_a_models_block_that_is_none_stops_the_start(block: str, sentence: str, tmp_path: Path) -> None:
    assert sentence in refusal(tmp_path, f"models={block}")


def test_the_models_block_may_go_over_many_lines(tmp_path: Path) -> None:
    config = configured(tmp_path, "models={\\", '  "m": {\\', '    "1.0": {"batchSize": 4}\\', "}}")

    assert config.model_values("m", "1.0") == {"batchSize": 4}
    assert config.model_values("m", "2.0") == {}
    assert config.model_values("n", "1.0") == {}


SNAPSHOT = (
    '{"name": "20240101-shutdown.cfg", "modelCount": 2, "created": 1, "models": {"m": {'
    '"1.0": {"defaultVersion": false, "marName": "m1.mar", "minWorkers": 2, "maxWorkers": 3, "batchSize": 4,'
    ' "maxBatchDelay": 50, "responseTimeout": 9, "startupTimeout": 8, "runtimeType": "python"},'
    '"2.0": {"defaultVersion": true, "marName": "m2.mar"}}}}'
)


def test_a_snapshot_of_torchserve_says_what_is_loaded(tmp_path: Path) -> None:
    config = configured(tmp_path, f"model_snapshot={SNAPSHOT}", "load_models=ALL")

    assert config.models == ("m=m1.mar", "m=m2.mar")
    assert config.origins["models"] == f"file {tmp_path / 'config.properties'}"
    assert config.snapshot_block["m"]["1.0"]["batchSize"] == 4
    assert config.notes == (
        f"note: {tmp_path / 'config.properties'}: `model_snapshot` selects the models; `load_models` is ignored",
    )


def test_a_snapshot_without_models_loads_none(tmp_path: Path) -> None:
    assert configured(tmp_path, 'model_snapshot={"models": {}}').models == ()


@pytest.mark.parametrize(
    ("snapshot", "sentence"),
    [
        ("{", "the value is not JSON"),
        ('{"name": "x"}', "expected a JSON object of models"),
        ('{"models": {"m": {"1.0": {}}}}', "`m` 1.0 has no `marName`, the name of its archive"),
    ],
)
def test_a_snapshot_that_is_none_stops_the_start(snapshot: str, sentence: str, tmp_path: Path) -> None:
    assert sentence in refusal(tmp_path, f"model_snapshot={snapshot}")


def test_a_file_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"cannot read `.*nowhere`: No such file or directory"):
        read_config_file(tmp_path / "nowhere", {})


def test_an_escape_that_is_none_stops_the_start(tmp_path: Path) -> None:
    assert "is not a character" in refusal(tmp_path, "model_store=\\u00zz")


def test_every_key_of_torchserve_has_one_meaning() -> None:
    assert KEYS.keys() & MEANINGLESS == KEYS.keys() & READ == MEANINGLESS & READ == set()
    assert len(KEYS) == sum(bool(setting.key) for setting in SETTINGS)
    assert len(KEYS.keys() | STOPS.keys() | MEANINGLESS | READ) > 60
