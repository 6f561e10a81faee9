"""What an archive says of its images, and the files that say it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kit.said import said_in
from tsctl.handlers.requests.preparation import IMAGENET, Preparation, read_preparation
from tsctl.handlers.sdk.errors import HandlerError

TIMM: dict[str, Any] = {
    "architecture": "efficientnet_b3",
    "pretrained_cfg": {
        "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25], "input_size": [3, 288, 288], "crop_pct": 0.9,
        "interpolation": "bicubic",
    },
}  # fmt: skip
VIT: dict[str, Any] = {
    "do_resize": True, "size": {"height": 384, "width": 384}, "resample": 3, "do_normalize": True,
    "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
}  # fmt: skip
CLIP = VIT | {"size": {"shortest_edge": 224}, "do_center_crop": True, "crop_size": {"height": 200, "width": 224}}


def read(
    model_dir: Path, settings: dict[str, Any] | None = None, *, config: object = None, preprocessor: object = None
) -> Preparation:
    for name, content in (("config", config), ("preprocessor_config", preprocessor)):
        if content is not None:
            (model_dir / f"{name}.json").write_text(json.dumps(content))
    return read_preparation(model_dir, settings or {}).how


def refusal(model_dir: Path, settings: dict[str, Any] | None = None, **files: object) -> str:
    with pytest.raises(HandlerError) as raised:
        read(model_dir, settings, **files)
    return str(raised.value)


def timm(**changed: object) -> dict[str, Any]:
    return TIMM | {"pretrained_cfg": {**TIMM["pretrained_cfg"], **changed}}


def test_the_settings_of_model_config_are_read_and_told(tmp_path: Path) -> None:
    config = {"mean": 0.5, "std": [0.1, 0.2, 0.3], "resize": 300, "crop": [256, 280], "interpolation": "lanczos"}

    assert read_preparation(tmp_path, {"batchSize": 8}) == (IMAGENET, None, "")
    assert read(tmp_path, {"resize": [200, 100]}).crop == (200, 100)
    assert read(tmp_path, {"resize": [200, 100], "crop": 64}).crop == (64, 64)
    how, _, note = read_preparation(tmp_path, config)

    assert how[:5] == ((0.5, 0.5, 0.5), (0.1, 0.2, 0.3), 300, (256, 280), "lanczos")
    assert note == (
        "images are prepared so: 300 pixels on the shorter side (lanczos), the middle 256 × 280, mean 0.5, 0.5, 0.5"
        " std 0.1, 0.2, 0.3 (model-config.yaml)"
    )


@said_in("refused.txt")
def test_a_value_of_no_use_is_refused_with_its_name_and_what_is_expected(given: str, tmp_path: Path) -> str:
    return refusal(tmp_path, yaml.safe_load(given))


@pytest.mark.parametrize("config", [{"crop": 299}, {"resize": [100, 300], "crop": 200}, {"resize": 200}])
def test_a_crop_beyond_the_resized_image_is_refused(tmp_path: Path, config: dict[str, Any]) -> None:
    assert "black would be around the image" in refusal(tmp_path, config)


@pytest.mark.parametrize(
    ("changed", "resize", "crop"),
    [
        ({}, 320, (288, 288)),
        ({"crop_pct": None}, 329, (288, 288)),
        ({"crop_mode": "squash"}, (320, 320), (288, 288)),
        ({"crop_mode": "squash", "crop_pct": 1.0, "input_size": [3, 160, 320]}, (160, 320), (160, 320)),
    ],
)
def test_timms_file_is_read_as_timm_reads_it(tmp_path: Path, changed: dict[str, Any], resize: Any, crop: Any) -> None:
    how = read(tmp_path, config=timm(**changed))

    assert how == ((0.5,) * 3, (0.25,) * 3, resize, crop, "bicubic", False)


def test_timms_earlier_files_have_the_settings_outside_and_its_defaults_count(tmp_path: Path) -> None:
    how = read(tmp_path, config={"architecture": "resnet18", "input_size": [3, 224, 224], "crop_pct": 0.95})

    assert how == (IMAGENET.mean, IMAGENET.std, 235, (224, 224), "bicubic", False)


@said_in("unknown_timm.txt")
def test_what_is_not_known_of_timms_file_is_refused(given: str, tmp_path: Path) -> str:
    return refusal(tmp_path, config=timm(**json.loads(given))).replace(str(tmp_path), "FOLDER")


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(VIT, ((0.5,) * 3, (0.5,) * 3, (384, 384), (384, 384), "bicubic"), id="both sides"),
        pytest.param(CLIP, ((0.5,) * 3, (0.5,) * 3, 224, (200, 224), "bicubic"), id="the shorter side and a crop"),
        pytest.param(CLIP | {"crop_size": 96}, ((0.5,) * 3, (0.5,) * 3, 224, (96, 96), "bicubic"), id="a square"),
        pytest.param(
            VIT | {"size": {"shortest_edge": 224}, "crop_pct": 0.875, "resample": 2},
            ((0.5,) * 3, (0.5,) * 3, 256, (224, 224), "bilinear"),
            id="ConvNeXt",
        ),
        pytest.param(
            VIT | {"size": {"shortest_edge": 384}, "crop_pct": 0.875},
            ((0.5,) * 3, (0.5,) * 3, (384, 384), (384, 384), "bicubic"),
            id="a large ConvNeXt",
        ),
        pytest.param(
            CLIP | {"size": {"shortest_edge": 384}, "crop_pct": 0.9, "crop_size": 384},
            ((0.5,) * 3, (0.5,) * 3, 426, (384, 384), "bicubic"),
            id="a large PoolFormer, which is cropped",
        ),
        pytest.param(
            VIT | {"do_normalize": False},
            ((0.0,) * 3, (1.0,) * 3, (384, 384), (384, 384), "bicubic"),
            id="0 to 1",
        ),
        pytest.param(
            VIT | {"include_top": True, "rescale_offset": False, "do_pad": None, "do_convert_annotations": True},
            ((0.5,) * 3, (0.25,) * 3, (384, 384), (384, 384), "bicubic"),
            id="EfficientNet, which divides twice",
        ),
        pytest.param(
            VIT | {"size": 224, "image_processor_type": "ViTImageProcessor"},
            ((0.5,) * 3, (0.5,) * 3, (224, 224), (224, 224), "bicubic"),
            id="an old file, whose number is of both sides",
        ),
        pytest.param(
            VIT | {"size": 224, "crop_pct": 0.875, "feature_extractor_type": "ConvNextFeatureExtractor"},
            ((0.5,) * 3, (0.5,) * 3, 256, (224, 224), "bicubic"),
            id="an old file, whose number is of the shorter side",
        ),
    ],
)
def test_hugging_faces_file_is_read(tmp_path: Path, document: dict[str, Any], expected: tuple[Any, ...]) -> None:
    assert read(tmp_path, preprocessor=document) == (*expected, True)


def test_half_a_pixel_beside_the_crop_is_rounded_as_by_the_library_whose_file_says_the_crop(tmp_path: Path) -> None:
    transformers = read(tmp_path, preprocessor=CLIP)

    assert transformers.crop == (200, 224)
    assert transformers.corner(224, 335) == (12, 55)  # transformers rounds 55.5 down
    assert IMAGENET.corner(256, 335) == (16, 56)  # torchvision to the even number
    assert IMAGENET.corner(256, 333) == (16, 54)
    assert not read(tmp_path, {"crop": 200}, preprocessor=CLIP).half_down


@said_in("asked_for.txt")
def test_what_a_file_does_not_say_is_asked_for_and_an_explicit_setting_is_the_answer(given: str, tmp_path: Path) -> str:
    explicit = {"mean": 0.5, "std": 0.5, "interpolation": "bicubic", "resize": 224, "crop": 224}
    said = refusal(tmp_path, preprocessor=VIT | json.loads(given))
    assert read(tmp_path, explicit) == ((0.5,) * 3, (0.5,) * 3, 224, (224, 224), "bicubic", False)
    return said


def test_two_files_that_differ_are_refused_by_name_and_the_explicit_setting_wins(tmp_path: Path) -> None:
    said = refusal(tmp_path, config=TIMM, preprocessor=VIT)

    assert said == (
        "`std` is [0.25, 0.25, 0.25] in config.json of timm, and [0.5, 0.5, 0.5] in preprocessor_config.json: say in"
        " model-config.yaml which of them the model wants"
    )
    assert read(tmp_path, {"std": 0.5, "resize": 384, "crop": 384}).std == (0.5, 0.5, 0.5)
    same = timm(std=[0.5] * 3, input_size=[3, 384, 384], crop_pct=1.0, crop_mode="squash")
    assert read(tmp_path, config=same, preprocessor=VIT).resize == (384, 384), "two that agree are read"


@pytest.mark.parametrize(
    "content", ['{"model_type": "bert"}', "[1, 2]", "not JSON", '{"architecture": "mine"}', '{"pretrained_cfg": 3}']
)
def test_a_config_json_of_anybody_elses_says_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)

    assert read_preparation(tmp_path, {"batchSize": 8}) == (IMAGENET, None, "")
    assert read(tmp_path, preprocessor={"sampling_rate": 16000, "do_normalize": True}) == IMAGENET, "of speech"
    (tmp_path / "preprocessor_config.json").write_text("{")
    assert refusal(tmp_path).startswith("preprocessor_config.json is not JSON")
    assert refusal(tmp_path, preprocessor=[1]) == "preprocessor_config.json is no JSON object"


@pytest.mark.parametrize(
    ("settings", "config", "classes", "note"),
    [
        ({"classes": ["cat", "dog"]}, {}, {"0": "cat", "1": "dog"}, "2 classes (model-config.yaml)"),
        ({"classes": {7: "cat", "8": "dog"}}, {}, {"7": "cat", "8": "dog"}, "2 classes (model-config.yaml)"),
        ({}, {"id2label": {"0": "cat"}}, {"0": "cat"}, "1 class (config.json)"),
        ({}, {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}, None, ""),
        ({"classes": ["hat"]}, {"id2label": {"0": "cat"}}, {"0": "hat"}, "1 class (model-config.yaml)"),
        (
            {},
            {"label_names": ["n1", "n2"], "label_descriptions": {"n1": "cat"}},
            {"0": "cat", "1": "n2"},
            "2 classes (config.json)",
        ),
    ],
)
def test_the_names_of_classes(
    tmp_path: Path, settings: dict[str, Any], config: object, classes: dict[str, str] | None, note: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))

    assert read_preparation(tmp_path, settings) == (IMAGENET, classes, note)
    if "classes" not in settings:
        (tmp_path / "index_to_name.json").write_text('{"0": "hat"}')  # which wins
        assert read_preparation(tmp_path, {}).classes is None


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from((1e-320, 10**400, 224)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("0", "height", "x")), inner, max_size=2)
    ),
    max_leaves=4,
)
FILES = {
    "config": (
        TIMM["pretrained_cfg"] | {"architecture": "resnet18"},
        ("crop_mode", "id2label", "label_names", "pretrained_cfg"),
    ),
    "preprocessor_config": (CLIP, ("crop_pct", "do_rescale", "rescale_factor")),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_of_anybodys_is_read_or_refused_in_words(tmp_path: Path, name: str, data: st.DataObject) -> None:
    usual, more = FILES[name]
    changed = data.draw(st.dictionaries(st.sampled_from((*usual, *more)), VALUES, min_size=1, max_size=3))
    sides = data.draw(st.lists(VALUES, min_size=2, max_size=2))
    if data.draw(st.booleans()):
        changed["input_size"] = [3, *sides]

    why = "model-config.yaml"
    try:
        read(tmp_path, **{name.removesuffix("_config"): usual | changed})
    except HandlerError as error:
        why = str(error)
    assert "model-config.yaml" in why and len(why) < 500


@pytest.mark.parametrize("part", [0.0, 1e-320, 1.2, float("nan"), "most"])
@pytest.mark.parametrize("crop", [{}, {"do_center_crop": True, "crop_size": 224}], ids=["no crop", "a crop"])
def test_a_part_that_cannot_be_left_by_a_crop_is_refused(tmp_path: Path, part: object, crop: dict[str, Any]) -> None:
    document = VIT | {"size": {"shortest_edge": 224}, "crop_pct": part} | crop

    said = refusal(tmp_path, preprocessor=document)

    assert f"its `crop_pct` is {part!r}: say `resize`, `crop` in model-config.yaml" in said


def test_a_factor_that_is_no_number_is_refused(tmp_path: Path) -> None:
    assert "its pixels are not from 0 to 1" in refusal(tmp_path, preprocessor=VIT | {"rescale_factor": float("nan")})


def test_a_folder_of_the_name_is_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").mkdir()

    assert read_preparation(tmp_path, {}) == (IMAGENET, None, "")
