"""How images become a classifier's input, without torch: as the archive says, or a file that the model comes with.

    model-config.yaml           mean, std, resize, crop, interpolation, classes: these win
    config.json                 of timm: `pretrained_cfg`; of Hugging Face's transformers: `id2label`
    preprocessor_config.json    of Hugging Face's transformers
    none of them                as ImageNet's usual models want it

Where a file says what is not done here (a border around the image, values in another range), the model is refused,
unless the archive says something else: other pixels than in the training cost accuracy, and nobody sees it.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from tsctl.handlers.sdk.errors import HandlerError

# By Pillow's numbers, which Hugging Face's files have.
INTERPOLATIONS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
MOST_SIDE = 2048  # pixels: an image may be 16 times as long as wide
_CONFIG, _PREPROCESSOR, _NAMES = "config.json", "preprocessor_config.json", "index_to_name.json"
_SETTINGS = ("mean", "std", "resize", "crop", "interpolation")
# Of Hugging Face's files: how names of steps begin, the steps that are done here or change no pixel, and classes whose
# code does other things than their files say (LeViT's resizes to 256/224 of `size`, Perceiver's crops before).
_OF_STEPS = ("do_", "rescale_offset", "keep_aspect_ratio", "size_divisor")
_STEPS = {"do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb", "do_reduce_labels",
          "do_convert_annotations"}  # fmt: skip
_OTHERWISE = ("Levit", "Perceiver", "PPLCNet", "TextNet")
# How many times as many pixels a JPEG keeps that is decoded at a part of its size, as measured in
# handlers/builtin/scaled_decode.py. `box` and `nearest` have none: their edges are sharp.
_KEPT = {"bilinear": 2.5, "bicubic": 3, "lanczos": 3, "hamming": 3}
# Of old files of Hugging Face's, whose `size` is a number: whose processors take it for the shorter side, and for both.
_OF_SHORTER_SIDE = {"Bit", "ChineseCLIP", "CLIP", "ConvNext", "MobileNetV1", "MobileNetV2", "PoolFormer"}
_OF_SQUARE = {"Beit", "DeiT", "EfficientNet", "Pvt", "ViT"}
_CONVNEXT_SQUASHES_FROM = 384  # pixels: transformers' ConvNextImageProcessor then crops nothing


class Preparation(NamedTuple):
    """Resized with Pillow, cropped to the middle, divided by 255, minus `mean`, divided by `std`.

    Attributes:
        mean, std: of red, green and blue, where pixels are from 0 to 1.
        resize: pixels of the shorter side; or height and width.
        crop: height and width, no more than what `resize` leaves.
        half_down: whether half a pixel beside the crop is left out, as by transformers; else its side is made even, as
            by torchvision.
    """

    mean: tuple[float, ...] = (0.485, 0.456, 0.406)
    std: tuple[float, ...] = (0.229, 0.224, 0.225)
    resize: int | tuple[int, int] = 256
    crop: tuple[int, int] = (224, 224)
    interpolation: str = "bilinear"
    half_down: bool = False

    def resized(self, height: int, width: int) -> tuple[int, int]:
        """Return the (height, width) that torchvision's `Resize` produces: the longer side is rounded down."""
        if isinstance(self.resize, tuple):
            return self.resize
        if height <= width:
            return self.resize, int(self.resize * width / height)
        return int(self.resize * height / width), self.resize

    def corner(self, height: int, width: int) -> tuple[int, int]:
        """Return the top and the left of what is cropped out of a resized image."""
        rounded: Callable[[float], int] = math.floor if self.half_down else round
        return rounded((height - self.crop[0]) / 2), rounded((width - self.crop[1]) / 2)

    @property
    def least_side(self) -> int | None:
        """Pixels of the shorter side of a JPEG that is decoded at a part of its size, or more; None: none is."""
        kept = _KEPT.get(self.interpolation)
        longest = max(self.resize) if isinstance(self.resize, tuple) else self.resize
        return None if kept is None else math.ceil(kept * longest)

    @property
    def text(self) -> str:
        sides = f"{self.resize} pixels on the shorter side"
        if isinstance(self.resize, tuple):
            sides = f"{self.resize[0]} × {self.resize[1]} pixels"
        crop = f"the middle {self.crop[0]} × {self.crop[1]}"
        values = " ".join(
            f"{name} {', '.join(f'{each:g}' for each in getattr(self, name))}" for name in ("mean", "std")
        )
        return f"{sides} ({self.interpolation}), {crop}, {values}"


IMAGENET = Preparation()


class ImageSettings(NamedTuple):
    """The settings of an archive's images.

    Attributes:
        classes: number as a text → name; None where it names none.
        note: what was read, and where, for the model's author; empty where nothing was.
    """

    how: Preparation
    classes: dict[str, str] | None
    note: str


class _Unknown(NamedTuple):
    """A value of a file that cannot be had here; an explicit setting takes its place."""

    why: str


def read_preparation(model_dir: Path, config: Mapping[str, Any]) -> ImageSettings:
    """Read what an archive says of its images.

    Args:
        config: its model-config.yaml.

    Raises:
        HandlerError: a setting is of no use, or two files say different things.
    """
    files = {_CONFIG: _document(model_dir / _CONFIG), _PREPROCESSOR: _document(model_dir / _PREPROCESSOR)}
    told = {
        f"{_CONFIG} of timm": _timms(files[_CONFIG]),
        _PREPROCESSOR: _transformers(files[_PREPROCESSOR]),
    }
    values: dict[str, Any] = {}
    places: dict[str, None] = {}
    for name in _SETTINGS:
        if config.get(name) is not None:
            values[name], place = _READ[name](name, config[name]), "model-config.yaml"
        else:
            said = {place: known[name] for place, known in told.items() if name in known}
            if len({*said.values()}) > 1:
                differ = ", and ".join(f"{_shown(value)} in {place}" for place, value in said.items())
                raise HandlerError(f"`{name}` is {differ}: say in model-config.yaml which of them the model wants")
            if not said:
                continue
            place, values[name] = next(iter(said.items()))
            if isinstance(unknown := values[name], _Unknown):
                same = (each for each in _SETTINGS if config.get(each) is None and told[place].get(each) == unknown)
                settings = ", ".join(f"`{each}`" for each in same)
                raise HandlerError(f"{place}: {unknown.why}: say {settings} in model-config.yaml")
        places[place] = None
        if name == "crop":
            values["half_down"] = place == _PREPROCESSOR
    how = _checked(values)
    classes, origin = _classes(model_dir, config, files[_CONFIG])
    if classes:
        places[origin] = None
    parts = [f"images are prepared so: {how.text}"] if values else []
    parts += [f"{len(classes)} class{'es' * (len(classes) != 1)}"] if classes else []
    return ImageSettings(how, classes, f"{'; '.join(parts)} ({', '.join(places)})" if parts else "")


def _checked(values: Mapping[str, Any]) -> Preparation:
    values = dict(values)
    resize = values.get("resize", IMAGENET.resize)
    if isinstance(resize, tuple):
        values.setdefault("crop", resize)
    how = IMAGENET._replace(**values)
    most = resize if isinstance(resize, tuple) else (resize, resize)
    if how.crop[0] > most[0] or how.crop[1] > most[1]:
        raise HandlerError(
            f"`crop` of {how.crop[0]} × {how.crop[1]} pixels is more than `resize` leaves,"
            f" {' × '.join(map(str, most)) if isinstance(resize, tuple) else resize}: black would be around the image."
            " Set both in model-config.yaml"
        )
    return how


def _sides(name: str, value: Any) -> int | tuple[int, int]:
    given = value if isinstance(value, (list, tuple)) else [value]
    if len(given) not in (1, 2) or not all(type(each) is int and 1 <= each <= MOST_SIDE for each in given):
        which = "the shorter side" if name == "resize" else "a square"
        raise _unusable(name, value, f"a number of pixels from 1 to {MOST_SIDE}, for {which}, or [height, width]")
    return given[0] if len(given) == 1 else (given[0], given[1])


def _crop(name: str, value: Any) -> tuple[int, int]:
    sides = _sides(name, value)
    return sides if isinstance(sides, tuple) else (sides, sides)


def _colours(name: str, value: Any) -> tuple[float, ...]:
    numbers = value if isinstance(value, (list, tuple)) else [value] * 3
    least = 0.0 if name == "mean" else 1e-6
    if len(numbers) != 3 or not all(type(each) in (int, float) and least <= each <= 1 for each in numbers):
        what = "a number or three, for red, green and blue, from 0 to 1"
        raise _unusable(name, value, f"{what}, as they are where pixels are from 0 to 1 (divide by 255)")
    return tuple(float(each) for each in numbers)


def _interpolation(name: str, value: Any) -> str:
    if value not in INTERPOLATIONS:
        raise _unusable(name, value, f"one of {', '.join(INTERPOLATIONS)}")
    return str(value)


_READ: dict[str, Callable[[str, Any], Any]] = {
    "mean": _colours, "std": _colours, "resize": _sides, "crop": _crop, "interpolation": _interpolation,
}  # fmt: skip


def _unusable(name: str, value: Any, what: str) -> HandlerError:
    return HandlerError(f"model-config.yaml: `{name}` is {_shown(value)}; expected {what}")


def _shown(value: Any) -> str:
    if isinstance(value, _Unknown):
        return f"unknown ({value.why})"
    return repr(list(value) if isinstance(value, tuple) else value)[:100]


def _classes(
    model_dir: Path, config: Mapping[str, Any], document: Mapping[str, Any]
) -> tuple[dict[str, str] | None, str]:
    """Return the names of classes by number, and where they stand; index_to_name.json is the handler's to read."""
    given = config.get("classes")
    if given is not None:
        names = dict(enumerate(given)) if isinstance(given, list) else given
        if not isinstance(names, dict) or not names or not all(_is_number(key) for key in names):
            raise _unusable("classes", given, "a list of names, or a mapping of numbers from 0 to names")
        if wrong := [each for each in names.values() if type(each) is not str]:
            raise _unusable("classes", wrong[0], "names, each a text (in quotes, where YAML reads something else)")
        return {str(key): name for key, name in names.items()}, "model-config.yaml"
    labels = document.get("id2label")
    if not labels:
        listed = document.get("label_names") or _section(document, "pretrained_cfg").get("label_names")
        described = _section(document, "label_descriptions")
        named = enumerate(listed if type(listed) is list else ())
        labels = {key: described.get(each, each) if isinstance(each, str) else each for key, each in named}
    if (model_dir / _NAMES).is_file() or not isinstance(labels, dict) or not labels:
        return None, ""
    if not all(_is_number(key) and isinstance(name, str) for key, name in labels.items()):
        raise HandlerError(f"{_CONFIG}: its classes are no names by number: say `classes` in model-config.yaml")
    if all(name == f"LABEL_{key}" for key, name in labels.items()):
        return None, ""  # transformers' own, where nobody has named them
    return {str(key): name for key, name in labels.items()}, _CONFIG


def _is_number(key: Any) -> bool:
    return (type(key) is int and key >= 0) or (isinstance(key, str) and key.isascii() and key.isdigit())


def _document(path: Path) -> dict[str, Any]:
    """Return a file's JSON object; an empty one for no such file, and for a config.json of anybody else's."""
    try:
        document = json.loads(path.read_text())
    except (FileNotFoundError, IsADirectoryError):
        return {}
    except (ValueError, RecursionError) as error:
        if path.name == _CONFIG:
            return {}
        raise HandlerError(f"{path.name} is not JSON: {error}") from None
    if not isinstance(document, dict) and path.name != _CONFIG:
        raise HandlerError(f"{path.name} is no JSON object")
    return document if isinstance(document, dict) else {}


def _section(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = document.get(name)
    return section if isinstance(section, dict) else {}


def _timms(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in timm's config.json, with timm's defaults; none for another file."""
    own = _section(document, "pretrained_cfg") or ("architecture" in document and "input_size" in document and document)
    if not own:
        return {}
    found = {
        name: _read_of_file(name, own.get(name) or usual)
        for name, usual in (("mean", IMAGENET.mean), ("std", IMAGENET.std), ("interpolation", "bicubic"))
    }
    size, part, mode = own.get("input_size", [3, 224, 224]), own.get("crop_pct") or 0.875, own.get("crop_mode")
    if type(size) is not list or len(size) != 3 or size[0] != 3 or not all(map(_is_side, size)) or not _is_part(part):
        found["resize"] = found["crop"] = _Unknown(
            f"its input_size {_shown(size)} and crop_pct {_shown(part)} are not known here"
        )
        return found
    found["crop"] = _read_of_file("crop", size[1:])
    sides = [math.floor(each / part) for each in size[1:]]
    if mode not in (None, "center", "squash"):
        found["resize"] = _Unknown(f"its crop_mode {_shown(mode)} is not known here")
    elif mode != "squash" and sides[0] != sides[1]:
        found["resize"] = _Unknown(f"its input_size {_shown(size)} is no square")
    else:
        found["resize"] = _read_of_file("resize", sides if mode == "squash" else sides[0])
    return found


def _transformers(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in Hugging Face's preprocessor_config.json; none for one that is not about images."""
    if not document.keys() & {"image_mean", "image_std", "do_resize", "crop_size"}:
        return {}
    further = [f"`{name}`" for name in document if name.startswith(_OF_STEPS) and name not in _STEPS and document[name]]
    further += [kind for kind in _kinds(document) if kind.startswith(_OTHERWISE)]
    if further:
        why = f"its {further[0]} is not done here (a subclass with an `image_processing` of its own may)"
        return dict.fromkeys(_SETTINGS, _Unknown(why))
    found: dict[str, Any] = {}
    factor = document.get("rescale_factor", 1 / 255)
    if document.get("do_rescale", True) is not True or type(factor) is not float or not abs(factor * 255 - 1) <= 1e-3:
        found["mean"] = found["std"] = _Unknown("its pixels are not from 0 to 1")
    elif document.get("do_normalize", True) is not True and document.get("include_top") is not True:
        found["mean"], found["std"] = (0.0,) * 3, (1.0,) * 3
    elif document.get("do_normalize", True) is not True:
        found["mean"] = found["std"] = _Unknown("its `include_top` divides what its `do_normalize` leaves")
    else:
        for name in ("mean", "std"):
            found[name] = _read_of_file(name, document.get(f"image_{name}"))
        if document.get("include_top") is True and not isinstance(found["std"], _Unknown):  # divided twice
            found["std"] = tuple(each * each for each in found["std"])
    number = document.get("resample")
    if type(number) is int and 0 <= number < len(INTERPOLATIONS):
        found["interpolation"] = INTERPOLATIONS[number]
    else:
        found["interpolation"] = _Unknown(f"its `resample` is {_shown(number)}")
    resize, crop = _sizes(document)
    found["resize"] = _read_of_file("resize", resize)
    found["crop"] = _read_of_file("crop", crop)
    return found


def _kinds(document: Mapping[str, Any]) -> list[str]:
    """Return the names of classes in Hugging Face's file; older files call the processor a feature extractor."""
    kinds = (document.get(f"{name}_type") for name in ("image_processor", "feature_extractor"))
    return [kind for kind in kinds if isinstance(kind, str)]


def _size(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return `size` of Hugging Face's file, by the names of sides; none where nothing says which sides are meant."""
    size = document.get("size")
    names = {kind.partition("ImageProcessor")[0].partition("FeatureExtractor")[0] for kind in _kinds(document)}
    if not _is_side(size) or not names:
        return _section(document, "size")
    if names <= _OF_SHORTER_SIDE:
        return {"shortest_edge": size}
    return {"height": size, "width": size} if names <= _OF_SQUARE else {}


def _sizes(document: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return what Hugging Face's file resizes to, and crops to."""
    size = _size(document)
    shorter: Any = size.get("shortest_edge")
    crops, crop = document.get("do_center_crop"), document.get("crop_size")
    part = document.get("crop_pct")
    what = ""
    if document.get("do_resize", True) is not True or not size:
        what = "it resizes nothing" if not document.get("do_resize", True) else "its `size` names no sides"
    elif shorter is not None and size.get("longest_edge") is not None:
        what = "its `size` bounds the longer side, too"
    elif part is not None and not _is_part(part):
        what = f"its `crop_pct` is {_shown(part)}"
    elif part is not None and not _is_side(shorter):
        what = f"its `size` is {_shown(size)} beside a `crop_pct`"
    if what:
        return _Unknown(what), _Unknown(what)
    if part is not None and crops is None:  # ConvNeXt's; PoolFormer's crops as the others do
        if shorter >= _CONVNEXT_SQUASHES_FROM:
            return [shorter, shorter], [shorter, shorter]
        return int(shorter / part), shorter
    resize = shorter if shorter is not None else [size.get("height"), size.get("width")]
    if part is not None:
        resize = int(shorter / part)
    if crops is None and crop is not None:
        return resize, _Unknown("it has a `crop_size`, and no `do_center_crop`")
    if crops is True:
        return resize, [crop.get("height"), crop.get("width")] if isinstance(crop, dict) else crop
    return resize, resize if shorter is None else _Unknown("it crops nothing, so that images differ in shape")


def _is_side(value: Any) -> TypeGuard[int]:
    return type(value) is int and 1 <= value <= MOST_SIDE


def _is_part(value: Any) -> TypeGuard[float]:
    """Return whether a value is the part of an image's side that is left by a crop."""
    return type(value) in (int, float) and 0.01 <= value <= 1


def _read_of_file(name: str, value: Any) -> Any:
    if isinstance(value, _Unknown):
        return value
    try:
        return _READ[name](name, value)
    except HandlerError:
        return _Unknown(f"its `{name}` is {_shown(value)}")
