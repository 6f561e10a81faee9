"""`tsctl bench`: what it asks the load generator for, and what it makes of its figures."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl import generator
from tsctl.commands.bench import notes, target_of
from tsctl.loadgen.tally import ProcessorTime, Tally
from tsctl.tensors.bodies import write_grpc_message
from tsctl.tensors.requests import read_inference_request

# Stands for the load generator: writes down its order, then says what the file says.
STAND_IN = """
import json, sys
order = json.loads(sys.stdin.buffer.readline())
body = sys.stdin.buffer.read(order["body_bytes"]).decode("latin-1")
json.dump({"order": order, "body": body}, open(sys.argv[1], "w"))
print(open(sys.argv[2]).read(), flush=True)
"""


class StandIn:
    """The load generator of a test.

    Attributes:
        order, body: what it was given.
    """

    def __init__(self, folder: Path) -> None:
        self._taken, self._said = folder / "taken.json", folder / "said"
        self.command = (sys.executable, "-c", STAND_IN, str(self._taken), str(self._said))

    def say(self, *events: dict[str, Any]) -> None:
        self._said.write_text("\n".join(map(json.dumps, events)))

    @property
    def order(self) -> Any:
        return json.loads(self._taken.read_text())["order"]

    @property
    def body(self) -> Any:
        return json.loads(self._taken.read_text())["body"]


def figures(*seconds: float, **more: Any) -> dict[str, Any]:
    tally = Tally()
    for each in seconds:
        tally.answered(200, 5, each)
    return {"stage": "done", "brokenOff": False, "first": 0.02} | tally.document(2.0, ProcessorTime(0.5, 0.0)) | more


def describe(sizes: dict[str, int]) -> list[dict[str, Any]]:
    return [{"tsctl": {"batching": {"sizes": sizes, "reasons": {"full": sum(sizes.values())}}}}]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    made = StandIn(tmp_path)
    made.say(figures(0.01, 0.02))
    monkeypatch.setattr(generator, "GENERATOR", made.command)
    for name in generator.TOKEN_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return made


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    (tmp_path / "cat.jpg").write_text("a cat")
    return tmp_path / "cat.jpg"


@pytest.fixture
def serving(daemon: FakeDaemon) -> FakeDaemon:
    """A daemon with the model `net`, plain HTTP and no token."""
    daemon.answer("GET /tsctl/status", {"inferenceAddress": "http://127.0.0.1:8080"})
    daemon.answer("GET /tsctl/config", [{"name": "certificate_file", "value": None}])
    daemon.answer("GET /models/net", describe({"8": 3}))
    return daemon


def test_it_is_a_closed_loop_of_eight_for_ten_seconds(
    invoke: Invoke, serving: FakeDaemon, stand_in: StandIn, photo: Path
) -> None:
    result = invoke("bench", "net", photo)

    assert result.exit_code == 0, result.output
    order = stand_in.order
    assert (order["connections"], order["rate"], order["seconds"], order["requests"]) == (8, None, 10.0, None)
    assert (order["host"], order["port"], order["target"]) == ("127.0.0.1", 8080, "/predictions/net")
    assert stand_in.body == "a cat"


def test_a_number_of_requests_has_no_end_in_time(
    invoke: Invoke, serving: FakeDaemon, stand_in: StandIn, photo: Path
) -> None:
    invoke("bench", "net", photo, "-n", "100", "-c", "3")

    assert (stand_in.order["requests"], stand_in.order["seconds"], stand_in.order["connections"]) == (100, None, 3)


def test_a_rate_is_an_open_loop_with_the_spacing_of_independent_users(
    invoke: Invoke, serving: FakeDaemon, stand_in: StandIn, photo: Path
) -> None:
    result = invoke("bench", "net", photo, "--rate", "50", "--json")

    document = json.loads(result.stdout)
    assert (stand_in.order["rate"], stand_in.order["spacing"]) == (50.0, "poisson")
    assert document["load"] == {"connections": 1000, "rate": 50.0, "spacing": "poisson"}


def test_json_has_the_figures_and_the_batches(
    invoke: Invoke, serving: FakeDaemon, stand_in: StandIn, photo: Path
) -> None:
    result = invoke("bench", "net", photo, "--json")

    document = json.loads(result.stdout)
    assert (document["model"], document["bodyBytes"], document["requests"]) == ("net", 5, 2)
    assert document["batches"] == {"sizes": {}, "reasons": {}}
    assert "stage" not in document


def test_it_tells_the_size_of_batches_that_was_learned(
    invoke: Invoke, serving: FakeDaemon, stand_in: StandIn, photo: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    learned = {"bestSize": 1, "sizes": [{"size": 1, "requestMs": 25.0}, {"size": 8, "requestMs": 25.0}]}
    (document,) = describe({"8": 3})
    document["tsctl"]["batching"] |= {"batchSize": 8, "learned": learned}
    serving.answer("GET /models/net", [document])

    result = invoke("bench", "net", photo)

    shown = [" ".join(line.split()) for line in (result.stdout + capfd.readouterr().out).splitlines()]
    assert "best size 1: a batch of 8 takes as long as 8 requests (learned)" in shown


def test_for_people_there_are_percentiles_and_drawings(
    invoke: Invoke, serving: FakeDaemon, stand_in: StandIn, photo: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    stand_in.say(figures(*[0.01] * 98, 0.5, 0.5, statuses={"200": 100, "503": 7}, failures={"timeout": 2}))

    result = invoke("bench", "net", photo)

    shown = result.stdout + capfd.readouterr().out
    assert "closed loop, 8 clients" in shown
    assert "7 × status 503, 2 × not answered in time" in shown
    assert "p99.9" in shown
    assert "█" in shown


def test_the_figures_come_last_so_that_they_stay_on_the_screen(
    invoke: Invoke, serving: FakeDaemon, stand_in: StandIn, photo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tsctl.commands.bench import show

    stand_in.say(figures(0.01))
    document = json.loads(invoke("bench", "net", photo, "--json").stdout)
    sizes = {str(size): size for size in range(1, 65)}

    show(document | {"batches": {"sizes": sizes, "reasons": {"full": 64}}})

    last = [line.split() for line in capsys.readouterr().out.splitlines()[-24:]]
    assert [line[0] for line in last[-5:]] == ["model", "load", "requests", "errors", "throughput"]
    assert ["p50", "p90", "p95", "p99", "p99.9", "max", "mean"] in last


@pytest.mark.parametrize(
    ("before", "after", "gained"),
    [
        pytest.param({"1": 1, "8": 3}, {"1": 1, "8": 10}, {"8": 7}, id="what came meanwhile"),
        pytest.param({"8": 100}, {"8": 4}, {"8": 4}, id="all, if the model was registered anew"),
    ],
)
def test_batches_are_those_of_the_run(before: dict[str, int], after: dict[str, int], gained: dict[str, int]) -> None:
    from tsctl.commands.bench import _gained

    assert _gained(before, after) == gained


def test_over_the_control_socket_if_there_is_no_other_address(
    invoke: Invoke, serving: FakeDaemon, stand_in: StandIn, photo: Path
) -> None:
    serving.answer("GET /tsctl/status", {"inferenceAddress": ""})

    invoke("bench", "net", photo)

    assert stand_in.order["unix"] == str(serving.path)


def test_an_address_of_all_interfaces_is_asked_at_this_machine(
    invoke: Invoke, serving: FakeDaemon, stand_in: StandIn, photo: Path
) -> None:
    serving.answer("GET /tsctl/status", {"inferenceAddress": "http://0.0.0.0:9000"})

    invoke("bench", "net", photo)

    assert (stand_in.order["host"], stand_in.order["port"]) == ("127.0.0.1", 9000)


class TestToken:
    @pytest.fixture(autouse=True)
    def _asked_for(self, serving: FakeDaemon, tmp_path: Path) -> None:
        (tmp_path / "own").write_text("the daemon's\n")
        settings = [
            {"name": "inference_token", "value": "set"},
            {"name": "inference_token_file", "value": str(tmp_path / "own")},
        ]
        serving.answer("GET /tsctl/config", settings)

    def header(self, stand_in: StandIn) -> str:
        return str(dict(stand_in.order["headers"])["Authorization"])

    def test_it_is_in_the_daemons_own_file(self, invoke: Invoke, stand_in: StandIn, photo: Path) -> None:
        invoke("bench", "net", photo)

        assert self.header(stand_in) == "Bearer the daemon's"

    def test_the_environment_comes_before_it(
        self, invoke: Invoke, stand_in: StandIn, photo: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TSCTL_INFERENCE_TOKEN", "mine")

        invoke("bench", "net", photo)

        assert self.header(stand_in) == "Bearer mine"

    def test_a_file_that_is_given_comes_first(
        self, invoke: Invoke, stand_in: StandIn, photo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TSCTL_INFERENCE_TOKEN", "mine")
        (tmp_path / "given").write_text("given")

        invoke("bench", "net", photo, "--token-file", tmp_path / "given")

        assert self.header(stand_in) == "Bearer given"

    def test_without_one_it_says_how_to_give_it(
        self, invoke: Invoke, serving: FakeDaemon, stand_in: StandIn, photo: Path
    ) -> None:
        serving.answer("GET /tsctl/config", [{"name": "inference_token", "value": "set"}])

        result = invoke("bench", "net", photo)

        assert result.exit_code == 1
        assert "name its file with `--token-file`" in result.stderr


def test_no_token_is_shown_where_none_is_asked_for(
    invoke: Invoke, serving: FakeDaemon, stand_in: StandIn, photo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSCTL_INFERENCE_TOKEN", "mine")  # a handler would find it among the headers

    invoke("bench", "net", photo)

    assert stand_in.order["headers"] == []


def test_a_first_request_that_fails_ends_it_with_the_daemons_words(
    invoke: Invoke, serving: FakeDaemon, stand_in: StandIn, photo: Path
) -> None:
    stand_in.say({"stage": "refused", "status": 400, "body": json.dumps({"message": "not an image"})})

    result = invoke("bench", "net", photo)

    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: not an image\n"


def test_a_run_without_a_good_answer_fails(invoke: Invoke, serving: FakeDaemon, stand_in: StandIn, photo: Path) -> None:
    stand_in.say(figures(failures={"closed": 9}, requests=9))

    result = invoke("bench", "net", photo)

    assert result.exit_code == 1
    assert result.stderr.endswith("error: no request was answered with status 2xx\n")


def test_a_generator_that_ends_early_is_an_error(
    invoke: Invoke, serving: FakeDaemon, stand_in: StandIn, photo: Path
) -> None:
    stand_in.say({"stage": "running", "seconds": 1.0, "requests": 5, "errors": 0})

    result = invoke("bench", "net", photo)

    assert result.exit_code == 1
    assert "the load generator ended with exit code 0" in result.stderr


def test_two_kinds_of_load_are_wrong_usage(invoke: Invoke, photo: Path) -> None:
    result = invoke("bench", "net", photo, "-c", "8", "--rate", "5")

    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("used", "waited", "said"),
    [
        pytest.param(0.2, 0.1, [], id="it does little"),
        pytest.param(0.97, 0.01, ["used 97% of a core: the generator"], id="it runs all the time"),
        pytest.param(
            0.6, 0.3, ["used 60% of a core, and waited for a core 30% of the time: the generator"], id="or wants to"
        ),
    ],
)
def test_it_says_when_it_is_itself_the_bottleneck(used: float, waited: float, said: list[str]) -> None:
    found = notes({"generatorCpu": used, "generatorWaited": waited, "brokenOff": False})

    assert len(found) == len(said)
    assert all(part in note for part, note in zip(said, found, strict=True))


@pytest.mark.parametrize(
    ("model", "target"), [("net", "/v2/models/net/infer"), ("net/1.0", "/v2/models/net/versions/1.0/infer")]
)
def test_the_open_inference_protocol_has_a_route_of_its_own(model: str, target: str) -> None:
    assert target_of(model, "v2") == target


class TestTensors:
    """Requests of the Open Inference Protocol in bytes, over HTTP and gRPC."""

    @pytest.fixture(autouse=True)
    def _served_over_grpc(self, serving: FakeDaemon) -> None:
        addresses = {"inferenceAddress": "http://127.0.0.1:8080", "grpcAddresses": ["grpc://0.0.0.0:7070"]}
        serving.answer("GET /tsctl/status", addresses)
        serving.answer("GET /tsctl/config", [{"name": "grpc_address", "value": ["0.0.0.0:7070"]}])
        declared = {"name": "x", "datatype": "UINT8", "shape": [-1]}
        serving.answer("GET /v2/models/net", {"name": "net", "inputs": [declared]})

    def test_over_grpc_the_model_tells_the_input_of_a_file_of_bytes(
        self, invoke: Invoke, stand_in: StandIn, photo: Path
    ) -> None:
        result = invoke("bench", "net", photo, "--protocol", "grpc")

        assert result.exit_code == 0, result.output
        order = stand_in.order
        assert (order["grpc"], order["host"], order["port"]) == (True, "127.0.0.1", 7070)
        assert order["target"] == "/inference.GRPCInferenceService/ModelInfer"
        tensor = {"name": "x", "datatype": "UINT8", "shape": [5], "data": list(b"a cat")}
        request = read_inference_request(json.dumps({"inputs": [tensor]}).encode(), dict)
        assert stand_in.body.encode("latin-1") == write_grpc_message(request, "net")

    def test_binary_tensors_follow_their_head(self, invoke: Invoke, stand_in: StandIn, photo: Path) -> None:
        result = invoke("bench", "net", photo, "--protocol", "v2", "--binary")

        assert result.exit_code == 0, result.output
        length = int(dict(stand_in.order["headers"])["Inference-Header-Content-Length"])
        assert stand_in.order["target"] == "/v2/models/net/infer"
        assert (json.loads(stand_in.body[:length])["inputs"][0]["shape"], stand_in.body[length:]) == ([5], "a cat")

    def test_a_file_that_is_no_request_is_named_before_anything_is_sent(
        self, invoke: Invoke, serving: FakeDaemon, photo: Path
    ) -> None:
        serving.answer("GET /v2/models/net", {"name": "net", "inputs": []})

        result = invoke("bench", "net", photo, "--protocol", "grpc")

        assert result.exit_code == 1
        assert "the model declares 0 inputs" in result.stderr

    def test_codes_of_errors_are_shown(
        self, invoke: Invoke, stand_in: StandIn, photo: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        stand_in.say(figures(0.01, statuses={"OK": 1, "UNAVAILABLE": 7}))

        result = invoke("bench", "net", photo, "--protocol", "grpc")

        assert "7 × status UNAVAILABLE" in result.stdout + capfd.readouterr().out

    def test_the_first_call_that_fails_ends_it_with_code_and_text(
        self, invoke: Invoke, stand_in: StandIn, photo: Path
    ) -> None:
        stand_in.say({"stage": "failed", "message": "the first call failed: NOT_FOUND: Model not found: net"})

        result = invoke("bench", "net", photo, "--protocol", "grpc")

        assert result.exit_code == 1
        assert result.stderr == "error: the first call failed: NOT_FOUND: Model not found: net\n"

    @pytest.mark.parametrize("setting", [[], [{"name": "grpc_address", "value": None}]])
    def test_a_daemon_without_an_address_of_grpc_is_told_how_to_get_one(
        self, invoke: Invoke, serving: FakeDaemon, photo: Path, setting: list[Any]
    ) -> None:
        serving.answer("GET /tsctl/config", setting)

        result = invoke("bench", "net", photo, "--protocol", "grpc")

        assert result.exit_code == 1
        assert "--grpc-address" in result.stderr

    def test_without_the_extra_it_is_named(self, invoke: Invoke, photo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

        result = invoke("bench", "net", photo, "--protocol", "grpc")

        assert (result.exit_code, "pip install 'tsctl[grpc]'" in result.stderr) == (1, True)

    def test_binary_belongs_to_the_protocol_over_http(self, invoke: Invoke, photo: Path) -> None:
        assert invoke("bench", "net", photo, "--binary").exit_code == 2
