"""Which of several functions and classes of a module is the handler."""

from pathlib import Path

import pytest

from tests.handlers.samples import write
from tsctl.handlers.sdk.errors import HandlerError
from tsctl.handlers.sdk.loader import EntryPoint, load_handler
from tsctl.handlers.typed.entry import typed_entry

PREDICT = "def predict(text: str) -> str: return 'function'\n"
HANDLE = "def handle(data, context): return ['handle'] * len(data or [])\n"
MODEL = "class Model:\n    def predict(self, text: str) -> str: return 'Model'\n"
OTHER = MODEL.replace("Model", "Other")
SERVICE = (
    "class Service:\n    def initialize(self, context): ...\n"
    "    def handle(self, data, context): return ['Service'] * len(data)\n"
)


def load(model_dir: Path, source: str, handler: str = "u2.py") -> EntryPoint:
    write(model_dir / "u2.py", source)
    return load_handler(handler, model_dir, typed_entry)


def served(entry: EntryPoint) -> str:
    """Return the name of the function, or that of the class."""
    function = getattr(entry, "_function", entry.handle)
    return function.__name__ if entry.instance is None else type(entry.instance).__name__


@pytest.fixture
def archive(model_dir: Path) -> Path:
    (model_dir / "MAR-INF").mkdir()
    write(model_dir / "MAR-INF" / "MANIFEST.json", "{}")
    return model_dir


@pytest.mark.parametrize("source", [MODEL + PREDICT, PREDICT + MODEL + OTHER], ids=["one class", "two classes"])
def test_a_modules_own_predict_wins_over_classes_with_one_and_says_so(model_dir: Path, source: str) -> None:
    entry = load(model_dir, source)

    assert served(entry) == "predict"
    [note] = entry.notes
    assert note.startswith("`u2.py:predict` is served; `u2.py:Model`")


def test_the_class_is_served_where_it_is_named(model_dir: Path) -> None:
    entry = load(model_dir, MODEL + PREDICT, "u2.py:Model")

    assert (served(entry), entry.notes) == ("Model", [])


@pytest.mark.parametrize(
    ("beside", "name"),
    [
        pytest.param("from other import predict\n", "Model", id="an imported function"),
        pytest.param("def predict(model, text): return model(text)\n", "Model", id="a function without type hints"),
    ],
)
def test_a_class_is_served_beside(model_dir: Path, beside: str, name: str) -> None:
    write(model_dir / "other.py", PREDICT)

    assert served(load(model_dir, beside + MODEL)) == name


def test_the_error_of_a_modules_own_predict_is_told_not_passed_over_for_a_class(model_dir: Path) -> None:
    with pytest.raises(HandlerError, match="`predict` has a parameter `model: Model`"):
        load(model_dir, MODEL + "def predict(model: Model, text: str) -> str: return model.predict(text)\n")


@pytest.mark.parametrize(
    ("source", "names"),
    [
        pytest.param(MODEL + OTHER, ["Model", "Other"], id="two classes with predict"),
        pytest.param(SERVICE + SERVICE.replace("Service", "Other"), ["Service", "Other"], id="two with handle"),
        pytest.param(HANDLE + PREDICT, ["handle", "predict"], id="two functions"),
        pytest.param(SERVICE + PREDICT, ["Service", "predict"], id="a class with handle, a function predict"),
        pytest.param(SERVICE + MODEL, ["Service", "Model"], id="two classes, of which one has predict"),
    ],
)
def test_of_two_that_are_alike_a_refusal_names_both(model_dir: Path, source: str, names: list[str]) -> None:
    with pytest.raises(HandlerError, match=", ".join(rf"`u2\.py:{each}`" for each in names)):
        load(model_dir, source)
    for name in names:
        assert served(load(model_dir, source, f"u2.py:{name}")) == name


@pytest.mark.parametrize("source", [HANDLE + PREDICT, SERVICE + PREDICT, SERVICE + MODEL])
def test_an_archive_is_served_by_torchserves_rules_and_says_so(archive: Path, source: str) -> None:
    entry = load(archive, source)

    assert served(entry) in ("handle", "Service")
    assert "is served" in entry.notes[0]


@pytest.mark.parametrize(
    "helper",
    [
        pytest.param("def predict(net: Service, text: str): ...\n", id="a function that no request could call"),
        pytest.param("class Net:\n    def predict(self, x): ...\n", id="a class without type hints"),
        pytest.param("import torch\nclass Net(torch.nn.Module):\n    def predict(self, x: str): ...\n", id="a network"),
        pytest.param(
            "class Base:\n    def predict(self, x: str): ...\nclass Service(Service, Base): ...\n", id="a base"
        ),
    ],
)
def test_helpers_of_a_handler_are_no_other_handlers(model_dir: Path, helper: str) -> None:
    entry = load(model_dir, SERVICE + helper)

    assert (served(entry), entry.notes) == ("Service", [])
