"""Images of every kind become tensors, or are said to be unreadable."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torchvision.transforms.functional import to_tensor

from tests.handlers.images import encoded
from tests.handlers.samples import context_of, write
from tsctl.handlers.builtin.base import BaseHandler, PreparedRow
from tsctl.handlers.builtin.vision import VisionHandler
from tsctl.handlers.requests import images
from tsctl.handlers.requests.early_answers import WholeCalls
from tsctl.handlers.requests.images import as_rgb, decode_image
from tsctl.handlers.sdk.errors import UnreadablePayload
from tsctl.handlers.sdk.plain_model import PlainModel, with_plain_model

ORIENTATION, X_RESOLUTION = 0x0112, 0x011A


class Plain(VisionHandler):
    """Takes images as they are, and notes the mode of each."""

    def __init__(self) -> None:
        super().__init__()
        self.modes: list[str] = []

    def image_processing(self, image: Image.Image) -> torch.Tensor:
        self.modes.append(image.mode)
        tensor: torch.Tensor = to_tensor(image)
        return tensor


class WithoutOurs(Plain):
    """Does not call our `__init__`."""

    def __init__(self) -> None:
        self.modes = []
        self.device = torch.device("cpu")


def upright() -> Image.Image:
    """An image of 3 × 2 pixels, each of another grey."""
    image = Image.new("L", (3, 2))
    image.putdata([10, 20, 30, 40, 50, 60])
    return image


@pytest.mark.parametrize("image_format", ["PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF"])
def test_an_image_of_any_format_is_decoded(image_format: str) -> None:
    image = decode_image(encoded(Image.new("RGB", (6, 4), "white"), image_format))

    assert image.size == (6, 4)
    assert image.convert("RGB").getpixel((3, 2)) == (255, 255, 255)


def test_a_handler_need_not_call_our_init() -> None:
    handler = WithoutOurs()
    rows = [{"data": encoded(upright())}]

    assert handler.prepare(rows) == {}
    assert handler.preprocess([*rows, {"data": encoded(upright())}]).shape == (2, 1, 2, 3)
    assert (handler.plain, handler.load_again) == (None, None)


@pytest.mark.parametrize("payload_type", [bytes, bytearray])
def test_a_row_is_decoded_with_the_handlers_transform(payload_type: type) -> None:
    tensor = Plain().decode_row({"data": payload_type(encoded(upright()))})

    assert tensor.shape == (1, 2, 3)
    assert (tensor * 255).round().int().tolist() == [[[10, 20, 30], [40, 50, 60]]]


@pytest.mark.parametrize("encode", [base64.b64encode, base64.encodebytes], ids=["on one line", "with line breaks"])
def test_base64_text_is_the_same_image(encode: Callable[[bytes], bytes]) -> None:
    body = encoded(upright())

    tensor = Plain().decode_row({"body": encode(body).decode()})

    assert torch.equal(tensor, Plain().decode_row({"body": body}))


def test_nested_lists_are_a_tensor_without_the_transform() -> None:
    handler = Plain()

    tensor = handler.decode_row({"body": [[[1, 2], [3, 4]]]})

    assert tensor.dtype == torch.float32
    assert tensor.tolist() == [[[1.0, 2.0], [3.0, 4.0]]]
    assert handler.modes == []


@pytest.mark.parametrize(
    ("orientation", "stored_by"),
    [
        (1, None),
        (2, Image.Transpose.FLIP_LEFT_RIGHT),
        (3, Image.Transpose.ROTATE_180),
        (4, Image.Transpose.FLIP_TOP_BOTTOM),
        (5, Image.Transpose.TRANSPOSE),
        (6, Image.Transpose.ROTATE_90),
        (7, Image.Transpose.TRANSVERSE),
        (8, Image.Transpose.ROTATE_270),
    ],
)
@pytest.mark.parametrize("image_format", ["PNG", "TIFF"])
def test_a_photograph_is_turned_upright(orientation: int, stored_by: Image.Transpose | None, image_format: str) -> None:
    stored = upright() if stored_by is None else upright().transpose(stored_by)
    exif = Image.Exif()
    exif[ORIENTATION] = orientation

    image = decode_image(encoded(stored, image_format, exif=exif))

    assert image.size == (3, 2)
    assert image.tobytes() == upright().tobytes()


@pytest.mark.parametrize("wrong_type", [0, 1, 2, 4, 7], ids=lambda number: f"type {number}")
def test_a_photograph_with_a_damaged_tag_is_turned_upright_too(wrong_type: int) -> None:
    exif = Image.Exif()
    exif[ORIENTATION], exif[X_RESOLUTION] = 6, 72.0
    good = encoded(Image.new("RGB", (4, 2)), "JPEG", exif=exif)
    entry = X_RESOLUTION.to_bytes(2, "big")
    damaged = good.replace(entry + b"\x00\x05", entry + bytes((0, wrong_type)))

    image = decode_image(damaged)

    assert damaged != good
    assert image.size == (2, 4)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"no image at all", id="text"),
        pytest.param(encoded(Image.effect_noise((40, 40), 90))[:-200], id="half a PNG"),
        pytest.param(encoded(Image.effect_noise((40, 40), 90), "JPEG")[:300], id="half a JPEG"),
        pytest.param(
            encoded(Image.new("RGB", (8, 8)), "DDS")[:80] + bytes(48), id="a header that trips Pillow's reader"
        ),
    ],
)
def test_what_is_no_image_is_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadablePayload, match=rf"^The request's {len(body)} bytes are not an image: "):
        decode_image(body)


def test_a_lack_of_memory_is_not_the_images_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Image, "open", full)

    with pytest.raises(MemoryError):
        decode_image(b"")


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        pytest.param("not base64!", "text is not a base64-encoded image", id="text that is no base64"),
        pytest.param("aGVsbG8=", "5 bytes are not an image", id="base64 of something else"),
        pytest.param("é", "text is not a base64-encoded image", id="text that is not even ASCII"),
        pytest.param({"a": 1}, "neither an image nor an array", id="an object"),
        pytest.param([[1], [2, 3]], "neither an image nor an array", id="a ragged array"),
        pytest.param(["a"], "neither an image nor an array", id="an array of text"),
        pytest.param([10**400], "neither an image nor an array", id="a number beyond any float"),
        pytest.param(5, "array of numbers: it is a single number", id="a number"),
        pytest.param(None, "The request's body is null: send the image as it is", id="null"),
    ],
)
def test_a_row_that_is_neither_image_nor_array_says_so(payload: object, message: str) -> None:
    with pytest.raises(UnreadablePayload, match=message):
        Plain().decode_row({"body": payload})


def test_an_image_in_a_part_of_another_name_is_refused_with_both_names() -> None:
    with pytest.raises(UnreadablePayload) as refused:
        Plain().decode_row({"file": encoded(Image.new("L", (2, 2)))})

    has = "The request has `file`, and the handler takes `data` or `body`"
    assert (
        str(refused.value) == f"{has}: send the image as it is (`curl -T FILE`), or as that part (`curl -F data=@FILE`)"
    )


@pytest.mark.parametrize("member", ["data", "body", "b64"])
def test_an_image_in_base64_may_be_a_member_of_an_object(member: str) -> None:
    text = base64.encodebytes(encoded(Image.new("L", (2, 2)))).decode()
    handler = Plain()

    handler.decode_row({"body": {member: text}})

    assert handler.modes == ["L"]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "RGB", "RGBA", "P", "I;16"])
def test_a_handlers_own_transform_sees_the_mode_of_the_file(mode: str) -> None:
    handler = Plain()

    handler.decode_row({"data": encoded(Image.new(mode, (2, 2)))})

    assert handler.modes == [mode]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        pytest.param(Image.new("1", (1, 1), 1), (255, 255, 255), id="black and white"),
        pytest.param(Image.new("L", (1, 1), 90), (90, 90, 90), id="greyscale"),
        pytest.param(Image.new("I;16", (1, 1), 90 * 256), (90, 90, 90), id="greyscale of 16 bits"),
        pytest.param(Image.new("I;16", (1, 1), 65535), (255, 255, 255), id="white of 16 bits"),
        pytest.param(Image.new("LA", (1, 1), (90, 255)), (90, 90, 90), id="opaque greyscale"),
        pytest.param(Image.new("LA", (1, 1), (90, 0)), (255, 255, 255), id="transparent greyscale is white"),
        pytest.param(Image.new("RGB", (1, 1), (1, 2, 3)), (1, 2, 3), id="RGB stays"),
        pytest.param(Image.new("RGBA", (1, 1), (200, 0, 0, 255)), (200, 0, 0), id="opaque RGBA"),
        pytest.param(Image.new("RGBA", (1, 1), (200, 0, 0, 0)), (255, 255, 255), id="transparent RGBA is white"),
        pytest.param(Image.new("CMYK", (1, 1), (0, 255, 255, 0)), (255, 0, 0), id="CMYK"),
        pytest.param(Image.new("RGB", (1, 1), (200, 0, 0)).convert("P"), (204, 0, 0), id="a palette"),
    ],
)
def test_as_rgb(image: Image.Image, expected: tuple[int, int, int]) -> None:
    assert as_rgb(image).getpixel((0, 0)) == expected


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "I;16"])
def test_a_colour_that_a_png_declares_transparent_may_have_any_mode(mode: str) -> None:
    transparency: Any = (0, 0, 0) if mode == "RGB" else 0
    body = encoded(Image.new(mode, (1, 1)), transparency=transparency)

    image = as_rgb(decode_image(body))

    assert image.mode == "RGB"
    assert image.size == (1, 1)


@pytest.mark.parametrize("mode", ["LA", "PA", "RGBA", "P"])
def test_transparent_pixels_of_a_large_image_become_white_in_strips(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noise = Image.merge("RGBA", [Image.effect_noise((5, 7), 90) for _ in range(4)])
    image = noise.convert(mode)
    if mode == "P":
        image.info["transparency"] = bytes(range(256))
    whole = as_rgb(image)
    composed = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image.convert("RGBA")).convert("RGB")
    monkeypatch.setattr(images, "_STRIP", 11)

    assert as_rgb(image).tobytes() == whole.tobytes() == composed.tobytes()


def test_prepare_keeps_what_it_decoded_beside_the_row() -> None:
    handler = Plain()
    data: list[Any] = [{"body": encoded(upright())}, {"body": b"x"}, {"body": [1.0], "top": 3}]

    unreadable = handler.prepare(data)

    assert list(unreadable) == [1]
    assert [type(row) for row in data] == [PreparedRow, dict, PreparedRow]
    assert data[2] == {"body": [1.0], "top": 3}
    assert data[2].prepared.tolist() == [1.0]


def test_preprocess_stacks_prepared_and_other_rows() -> None:
    handler = Plain()
    data: list[Any] = [{"body": encoded(upright())}, {"body": [[[1, 2, 3], [4, 5, 6]]]}]
    handler.prepare(data)
    data.append({"body": encoded(upright())})

    tensor = handler.preprocess(data)

    assert tensor.shape == (3, 1, 2, 3)
    assert len(handler.modes) == 2


class Whole(torch.nn.Module, WholeCalls):
    """Takes pixels, as a model whose graph normalises them."""

    takes_pixels = True

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images


def test_a_model_that_normalises_pixels_gets_them_and_an_explanation_does_not() -> None:
    handler, asked = Plain(), list[bool]()

    def join(rows: list[torch.Tensor], *, as_pixels: bool) -> torch.Tensor:
        asked.append(as_pixels)
        return torch.stack(rows)

    handler.join, handler.model = join, Whole()
    handler.plain = PlainModel(torch.nn.Identity)

    handler.preprocess([{"body": encoded(upright())}])
    with with_plain_model(handler):
        handler.preprocess([{"body": encoded(upright())}])

    assert asked == [True, False]


def test_prepare_leaves_a_subclass_with_its_own_preprocess_alone() -> None:
    class Reading(Plain):
        def preprocess(self, data: list[Any]) -> Any:
            return data

    data: list[Any] = [{"body": b"x"}, {"body": encoded(upright())}]

    assert Reading().prepare(data) == {}
    assert [type(row) for row in data] == [dict, dict]


@pytest.mark.parametrize(
    ("limited", "answered"), [(True, False), (False, True)], ids=["is unreadable", "is read where the operator says so"]
)
def test_an_image_of_absurdly_many_pixels(
    limited: bool, answered: bool, model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2)  # put back after the test; three times as many are an error
    write(model_dir / "net.py", "import torch\nclass Net(torch.nn.Module): pass\n")
    context = context_of(model_dir, {"modelFile": "net.py"})
    context.system_properties["limit_max_image_pixels"] = limited
    handler = Plain()
    handler.initialize(context)

    unreadable = handler.prepare([{"body": encoded(upright())}])

    assert ["decompression bomb" in str(why) for why in unreadable.values()] == [True] * (not answered)


def test_processes_that_read_images_inherit_that_pillow_has_no_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inherited: list[int | None] = []
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    monkeypatch.setattr(
        VisionHandler, "_start_readers", lambda self, rows, gpu: inherited.append(Image.MAX_IMAGE_PIXELS)
    )
    monkeypatch.setattr(BaseHandler, "initialize", lambda self, context: None)
    context = context_of(tmp_path)
    context.system_properties |= {"gpu_id": 0, "limit_max_image_pixels": False}

    VisionHandler().initialize(context)

    assert inherited == [None]
