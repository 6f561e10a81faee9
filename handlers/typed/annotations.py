"""From an annotation to the kind of input.

Libraries are recognised by name, so that nothing is imported that the handler has not imported itself.
"""

import inspect
import types
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import msgspec

from tsctl.handlers.wire import InputKind

LISTS = (list, Sequence)
FILES = ("image", "audio", "tensor", "array")  # kinds of which each value may be a part of its own
_NO_OBJECTS = (
    msgspec.inspect.NoneType, msgspec.inspect.BoolType, msgspec.inspect.IntType, msgspec.inspect.FloatType,
    msgspec.inspect.StrType, msgspec.inspect.BytesType, msgspec.inspect.ListType, msgspec.inspect.VarTupleType,
    msgspec.inspect.TupleType, msgspec.inspect.SetType, msgspec.inspect.LiteralType, msgspec.inspect.EnumType,
    msgspec.inspect.DateTimeType, msgspec.inspect.DateType, msgspec.inspect.TimeType, msgspec.inspect.UUIDType,
    msgspec.inspect.DecimalType,
)  # fmt: skip

_MEANT = {
    "numpy.array": "numpy.ndarray", "numpy.asarray": "numpy.ndarray", "torch.tensor": "torch.Tensor",
    "PIL.Image.open": "PIL.Image.Image", "any": "typing.Any",
}  # fmt: skip


class Target(NamedTuple):
    """The type that one value is decoded to.

    Attributes:
        type: the annotation; without None except for JSON.
        dtype: the NumPy type of an array's values; None for any.
        optional: None is allowed: the part may be missing.
        items: of a list for each row: what its items are decoded to, which may be parts of one name; None for others.
        objects: the type's values may be JSON objects, or anything.
    """

    kind: InputKind
    type: Any
    dtype: Any = None
    optional: bool = False
    items: "Target | None" = None
    objects: bool = False


def target_of(annotation: Any) -> Target | None:
    """Return the type that one value is decoded to; None for an annotation that cannot be decoded."""
    annotation = without_alias(annotation)
    optional, whole = False, annotation
    if get_origin(annotation) in (Union, types.UnionType):
        kept = [each for each in get_args(annotation) if each is not types.NoneType]
        optional = len(kept) < len(get_args(annotation))
        if optional:
            annotation = kept[0] if len(kept) == 1 else Union[tuple(kept)]  # noqa: UP007 - members are known at run time
    plain = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    name = _full_name(plain)
    if plain is str:
        return Target("text", annotation, optional=optional)
    if plain in (bytes, bytearray):
        return Target("bytes", plain, optional=optional, objects=True)
    if name in ("PIL.Image", "PIL.Image.Image"):
        return Target("image", plain, optional=optional)
    if name == "tsctl.handlers.requests.audio.Audio":
        return Target("audio", plain, optional=optional)
    if name == "torch.Tensor":
        return Target("tensor", plain, optional=optional)
    if name == "numpy.ndarray" or _full_name(get_origin(plain)) == "numpy.ndarray":
        return Target("array", plain, _dtype_of(plain), optional)
    if is_pydantic(annotation):
        return Target("json", annotation, optional=optional, objects=True)
    items = target_of(get_args(annotation)[0]) if get_origin(annotation) in LISTS and get_args(annotation) else None
    if items is not None and items.kind in FILES:
        return Target(items.kind, annotation, optional=optional, items=items)
    if not is_json(annotation):
        return None
    return Target("json", whole, optional=optional, items=items, objects=_takes_objects(annotation))


def _takes_objects(annotation: Any) -> bool:
    """Return whether a JSON object may be a value of a type, or of a member of a union."""
    info = msgspec.inspect.type_info(annotation)
    kinds = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    return not all(isinstance(each, _NO_OBJECTS) for each in kinds)


def without_alias(annotation: Any) -> Any:
    """Return the type that a `type` statement names: NumPy 2.5 on Python 3.12 and later defines `NDArray` so."""
    origin = get_origin(annotation) or annotation
    value = origin.__value__ if _is_alias(origin) else None
    if value is None:
        return annotation
    return without_alias(value[get_args(annotation)] if get_args(annotation) else value)


def is_json(annotation: Any) -> bool:
    """Return whether a type can be decoded from JSON: by msgspec, or by the type itself as pydantic's models do."""
    if is_pydantic(annotation):
        return True
    try:
        return not _has_custom(msgspec.inspect.type_info(annotation))
    except Exception:  # noqa: BLE001 - anything may stand in an annotation
        return False


def is_pydantic(annotation: Any) -> bool:
    """Return whether a class validates JSON itself, by the methods of pydantic's models."""
    return isinstance(annotation, type) and callable(getattr(annotation, "model_validate_json", None))


def written(annotation: Any) -> str:
    """Return an annotation as people write it: `list[Image]`."""
    if isinstance(annotation, str):
        return annotation
    if annotation in (None, types.NoneType):
        return "None"
    if isinstance(annotation, types.ModuleType):
        return annotation.__name__.rpartition(".")[2]
    if inspect.isroutine(annotation):
        return f"{annotation.__module__}.{annotation.__name__}".removeprefix("builtins.")
    origin, arguments = get_origin(annotation), get_args(annotation)
    if arguments and (origin is list or _is_alias(origin)):
        return f"{origin.__name__}[{', '.join(map(written, arguments))}]"
    if arguments and _full_name(origin) == "numpy.ndarray":  # `NDArray` is no name that can be read back
        dtype = _dtype_of(annotation)
        return f"NDArray[{'Any' if dtype is None else dtype.__name__}]"
    if isinstance(annotation, type) and not arguments:
        return annotation.__qualname__ if "<locals>" not in annotation.__qualname__ else annotation.__name__
    return str(annotation).replace("typing.", "")


def meant_by(annotation: Any) -> str:
    """Return the type that a function stands for where it is a hint by mistake, as `np.array`; empty for others."""
    return _MEANT.get(written(annotation), "") if inspect.isroutine(annotation) else ""


def _is_alias(annotation: Any) -> bool:
    return type(annotation).__name__ == "TypeAliasType"


def _full_name(annotation: Any) -> str:
    if isinstance(annotation, types.ModuleType):
        return annotation.__name__
    return f"{getattr(annotation, '__module__', '')}.{getattr(annotation, '__qualname__', '')}"


def _dtype_of(annotation: Any) -> Any:
    """Return the dtype of `numpy.typing.NDArray[np.float32]`; None if it names none."""
    for argument in get_args(annotation)[1:]:
        inner = get_args(argument)
        if inner and isinstance(inner[0], type):
            return inner[0]
    return None


def _has_custom(info: Any) -> bool:
    """Return whether a type, or one that it contains, is unknown to msgspec."""
    seen: set[int] = set()
    waiting = [info]
    while waiting:
        each = waiting.pop()
        if isinstance(each, msgspec.inspect.CustomType):
            return True
        if isinstance(each, (list, tuple)):
            waiting.extend(each)
        elif isinstance(each, (msgspec.inspect.Type, msgspec.inspect.Field)) and id(each) not in seen:
            seen.add(id(each))
            waiting.extend(getattr(each, name) for name in each.__struct_fields__ if name not in ("cls", "default"))
    return False
