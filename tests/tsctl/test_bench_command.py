"""`tsctl bench`: what it asks the load generator for, and what it makes of its figures."""

from pathlib import Path

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tests.tsctl.transcripts import loaded
from tsctl.commands.bench import notes, show, target_of


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


def test_without_the_extra_it_is_named(
    invoke: Invoke, daemon: FakeDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cat.jpg").write_text("a cat")
    daemon.answer("GET /models/net", [{"tsctl": {"batching": {"sizes": {}, "reasons": {}}}}])
    daemon.answer("GET /tsctl/config", [])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    result = invoke("bench", "net", tmp_path / "cat.jpg", "--protocol", "grpc")

    assert (result.exit_code, "pip install 'tsctl[grpc]'" in result.stderr) == (1, True)


def test_large_batches_share_lines(capsys: pytest.CaptureFixture[str]) -> None:
    batches = {"sizes": {str(size): 1 for size in range(1, 33)}, "reasons": {"full": 32}}
    show(loaded("figures") | {"model": "net", "bodyBytes": 5, "load": {"connections": 32}, "batches": batches})

    below = capsys.readouterr().out.partition("Batches by size\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in below.splitlines()] == [*"12345678", "9-16", "17-32"]


@pytest.mark.parametrize("verb", ["bench net FILE --rate", "bench net FILE -t", "tune net --slo-p99"])
@pytest.mark.parametrize(
    ("number", "said"),
    [("nan", "nan is not a finite number."), ("inf", "inf is not a finite number."), ("0", "0.0 is not in the range")],
)
def test_a_number_that_no_load_has_is_wrong_usage(invoke: Invoke, verb: str, number: str, said: str) -> None:
    result = invoke(*verb.split(), number)

    assert result.exit_code == 2 and said in result.stderr
