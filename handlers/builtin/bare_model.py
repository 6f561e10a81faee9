"""A model whose weights are about to be read from a file, constructed without drawing random ones first.

ResNet-152: 0.03 s instead of 0.4 s. Every parameter whose random values were left out must have got others afterwards.
Where one has not, the model is constructed and loaded once more, with all that its class does.
"""

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

# Those of nn.init that a mode sees as a whole, and what the others call. Constants are cheap, and are set.
_RANDOM = frozenset({
    nn.init.kaiming_uniform_, nn.init.normal_, nn.init.uniform_, torch.Tensor.normal_, torch.Tensor.uniform_,
})  # fmt: skip


class _WithoutRandomValues(TorchFunctionMode):
    """Leaves parameters as they are where random values would be drawn for them.

    Attributes:
        left_out: these parameters, as long as anything refers to them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.left_out: list[weakref.ref[nn.Parameter]] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function in _RANDOM:
            tensor = args[0] if args else kwargs.get("tensor")
            if isinstance(tensor, nn.Parameter):
                self.left_out.append(weakref.ref(tensor))
                return tensor
        return function(*args, **kwargs)


def construct_and_load(make: Callable[[], nn.Module], load: Callable[[nn.Module], Any]) -> nn.Module:
    """Construct a model, and load its weights into it.

    Args:
        make: constructs the model, with random weights; maybe called twice.
        load: overwrites the weights; called for each model.
    """
    with _WithoutRandomValues() as mode:
        model = make()
    left_out = [parameter for each in mode.left_out if (parameter := each()) is not None]
    # torch counts the changes of a tensor in place.
    versions = [(parameter, parameter._version) for parameter in (*left_out, *model.parameters())]
    load(model)
    present = {id(parameter) for parameter in (*left_out, *model.parameters())}
    if not left_out or all(each._version > version or id(each) not in present for each, version in versions):
        return model
    model = make()
    load(model)
    return model


def copies_weights(model: nn.Module) -> bool:
    """Return whether `load_state_dict` copies all values, as torch's own modules do.

    Then a file may be mapped while it is read. A class with its own ways may keep the tensors, and so the mapping of a
    file that may change.
    """
    return all(
        _is_torchs(type(module), "load_state_dict", "_load_from_state_dict", "set_extra_state")
        and not (module._load_state_dict_pre_hooks or module._load_state_dict_post_hooks)
        for module in model.modules()
    )


def _is_torchs(module_class: type[nn.Module], *names: str) -> bool:
    return all(str(getattr(module_class, name).__module__).startswith("torch.nn.") for name in names)
