"""Memory that does not suffice: how an error says so, and how there is room again."""

import gc
import sys

from tsctl.handlers.requests.excerpt import message_of

# torch's own error, of any version, and the driver's (code 2); then what the libraries beneath it say of an allocation
# of theirs: cuBLAS ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), cuDNN 8 and 9
# (status 4004), and torch's allocator of the machine's memory.
_TEXTS = (
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    "DefaultCPUAllocator: can't allocate memory",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory does not suffice, a GPU's or the machine's."""
    kind = type(error)  # not `isinstance`, which reads an instance's `__class__`, too
    if issubclass(kind, MemoryError):
        return True
    if not issubclass(kind, RuntimeError):  # as torch.OutOfMemoryError is
        return False
    text = message_of(error)
    return any(each in text for each in _TEXTS)


def make_room(*, collect: bool = False) -> None:
    """Return memory that torch has kept for later to the GPU; call without the error, whose frames hold tensors.

    Args:
        collect: first free what only circles of references hold, which takes longer.
    """
    if collect:
        gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
