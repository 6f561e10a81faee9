"""From image files to named probabilities."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image

from tests.handlers.device import DEVICE
from tests.handlers.images import encoded
from tests.handlers.samples import context_of, write
from tsctl.handlers.builtin.image_classifier import ImageClassifier
from tsctl.handlers.builtin.image_segmenter import ImageSegmenter
from tsctl.handlers.requests.images import middle
from tsctl.handlers.sdk.errors import HandlerError

# Its logits are the means of red, green and blue, and their opposites: six classes.
NET = """
    import torch
    class Net(torch.nn.Module):
        def forward(self, images):
            means = images.mean(dim=(2, 3))
            return torch.cat([means, -means], dim=1)
"""
NAMES = {str(number): name for number, name in enumerate(["red", "green", "blue", "cyan", "magenta", "yellow"])}
MEAN, STD = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])


def row(colour: str) -> dict[str, Any]:
    return {"data": encoded(Image.new("RGB", (9, 7), colour))}


@pytest.fixture
def classifier(model_dir: Path) -> ImageClassifier:
    write(model_dir / "net.py", NET)
    (model_dir / "index_to_name.json").write_text(json.dumps(NAMES))
    handler = ImageClassifier()
    handler.initialize(context_of(model_dir, {"modelFile": "net.py"}))
    return handler


def classify(handler: ImageClassifier, *rows: dict[str, Any]) -> list[dict[str, float]]:
    assert handler.context is not None
    return handler.handle(list(rows), handler.context)


def test_the_answer_is_the_five_best_classes_by_name_most_probable_first(classifier: ImageClassifier) -> None:
    (answer,) = classify(classifier, row("red"))

    assert len(answer) == 5
    assert next(iter(answer)) == "red"
    assert list(answer.values()) == sorted(answer.values(), reverse=True)
    assert 0.9 < sum(answer.values()) <= 1


def test_a_batch_of_three_answers_as_three_batches_of_one(classifier: ImageClassifier) -> None:
    rows = [row("red"), row("lime"), row("blue")]

    together = classify(classifier, *rows)
    alone = [classify(classifier, each)[0] for each in rows]

    assert [next(iter(answer)) for answer in together] == ["red", "green", "blue"]
    assert [list(answer) for answer in together] == [list(answer) for answer in alone]
    for answer, expected in zip(together, alone, strict=True):
        assert answer == pytest.approx(expected, rel=1e-5)


def test_a_model_with_fewer_classes_than_asked_for_answers_with_all(classifier: ImageClassifier) -> None:
    classifier.set_max_result_classes(100)

    (answer,) = classify(classifier, row("red"))

    assert classifier.get_max_result_classes() == 100
    assert set(answer) == set(NAMES.values())
    assert sum(answer.values()) == pytest.approx(1)
    classifier.topk = 1  # a subclass may want fewer
    assert list(classify(classifier, row("blue"))[0]) == ["blue"]
    classifier.mapping = None
    assert list(classify(classifier, row("blue"))[0]) == ["2"], "without names classes are numbers"


def test_answers_that_are_made_behind_the_model_are_not_made_again(classifier: ImageClassifier) -> None:
    data = torch.rand(2, 3, 224, 224, device=DEVICE)
    usual = classifier.postprocess(classifier.inference(data))
    classifier.answers_early = True  # as on a GPU

    output = classifier.inference(data)
    with torch.inference_mode():
        output.zero_()  # seen, if they were made now

    assert classifier.postprocess(output) == usual


@pytest.mark.parametrize(
    ("image", "image_format", "colour"),
    [
        pytest.param(Image.new("RGB", (9, 7), (1, 2, 3)), "PNG", (1, 2, 3), id="RGB"),
        pytest.param(Image.new("RGBA", (9, 7), (200, 0, 0, 0)), "PNG", (255, 255, 255), id="RGBA"),
        pytest.param(Image.new("CMYK", (9, 7), (0, 255, 255, 0)), "TIFF", (255, 0, 0), id="CMYK"),
        pytest.param(Image.new("CMYK", (9, 7), (0, 255, 255, 0)), "JPEG", (254, 0, 0), id="CMYK in a JPEG"),
        pytest.param(Image.new("I;16", (9, 7), 90 * 256), "PNG", (90, 90, 90), id="I;16"),
    ],
)
def test_an_image_of_any_mode_reaches_the_model_as_normalised_rgb(
    classifier: ImageClassifier, image: Image.Image, image_format: str, colour: tuple[int, int, int]
) -> None:
    tensor = classifier.preprocess([{"body": encoded(image, image_format)}])

    assert tensor.shape == (1, 3, 224, 224)
    sizes = [encoded(Image.new("RGB", size, "red")) for size in ((30, 4), (4, 30), (5000, 1))]
    assert classifier.preprocess([{"body": each} for each in sizes]).shape == (3, 3, 224, 224), "in one batch"
    seen = tensor.cpu().mean(dim=(0, 2, 3)) * STD + MEAN
    assert (seen * 255).tolist() == pytest.approx(colour, abs=1.5)


@pytest.mark.parametrize(("size", "expected"), [((2000, 1), (16, 1)), ((3, 900), (3, 48))])
def test_of_a_very_long_image_only_the_middle_is_resized(size: tuple[int, int], expected: tuple[int, int]) -> None:
    image = Image.new("L", size)
    image.putpixel((size[0] // 2, size[1] // 2), 255)

    cut = middle(image)

    assert cut.size == expected
    assert cut.getpixel((expected[0] // 2, expected[1] // 2)) == 255
    for other in (Image.new("L", each) for each in ((16, 1), (30, 40), (1, 1))):
        assert middle(other) is other, "any other is resized whole"


SETTINGS = {"mean": 0.5, "std": 0.5, "resize": 90, "crop": [64, 80], "interpolation": "bicubic", "classes": ["r", "g"]}


@pytest.mark.parametrize("handler_class", [ImageClassifier, ImageSegmenter])
def test_the_archive_says_how_images_are_prepared(
    model_dir: Path, handler_class: type[ImageClassifier | ImageSegmenter]
) -> None:
    write(model_dir / "net.py", NET)
    handler = handler_class()
    handler.initialize(context_of(model_dir, {"modelFile": "net.py"}, SETTINGS))

    tensor = handler.preprocess([{"body": encoded(Image.new("RGB", (200, 100), (255, 0, 51)))}])

    assert tensor.shape == (1, 3, 64, 80)
    assert tensor[0, :, 0, 0].tolist() == pytest.approx([1, -1, -0.6])
    assert handler.mapping == {"0": "r", "1": "g"}
    assert handler.preparation_note.endswith("; 2 classes (model-config.yaml)")


def test_what_the_archive_says_is_of_one_model(model_dir: Path) -> None:
    write(model_dir / "net.py", NET)
    ImageClassifier().initialize(context_of(model_dir, {"modelFile": "net.py"}, SETTINGS))
    other = ImageClassifier()
    other.initialize(context_of(model_dir, {"modelFile": "net.py"}))

    assert other.preprocess([row("red")]).shape == (1, 3, 224, 224)
    assert (other.mapping, other.preparation_note) == (None, "")
    with pytest.raises(HandlerError, match="`std` is 0; expected a number or three"):
        ImageClassifier().initialize(context_of(model_dir, {"modelFile": "net.py"}, {"std": 0}))


def test_a_subclass_with_its_own_transform_has_settings_of_its_own(model_dir: Path) -> None:
    class Mine(ImageClassifier):
        def image_processing(self, image: Image.Image) -> torch.Tensor:
            return torch.full((3, 2, 2), self.model_yaml_config["std"])

    write(model_dir / "net.py", NET)
    handler = Mine()
    handler.initialize(context_of(model_dir, {"modelFile": "net.py"}, {"std": 0}))

    assert handler.preprocess([row("red")]).tolist() == [[[[0, 0]] * 2] * 3]
