"""Small functions and facts that handlers import from TorchServe's modules."""

import importlib
import importlib.util
import inspect
import logging
import os
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from tsctl.handlers.sdk.context import SERVER_VERSION

__version__ = SERVER_VERSION

# Of `ts.torch_handler.base_handler`: what there is to load and run models with.
ONNX_AVAILABLE = importlib.util.find_spec("onnxruntime") is not None
PROFILER_AVAILABLE = PT2_AVAILABLE = PT230_AVAILABLE = True
IPEX_AVAILABLE = XLA_AVAILABLE = False


def import_class(class_name: str, module_prefix: str | None = None) -> Any:
    """Import a class by its dotted name, below `module_prefix` if given.

    Raises:
        ImportError: the name has no module, or the module cannot be imported or lacks the class.
    """
    module, _, name = class_name.rpartition(".")
    path = ".".join(filter(None, (module_prefix, module)))
    if not name or not path:
        raise ImportError(f"`{class_name}` should name a module and a class in it, such as `package.module.Class`")
    found = getattr(importlib.import_module(path), name, None)
    if found is None:
        raise ImportError(f"the module `{path}` has no class `{name}`")
    return found


def list_classes_from_module(module: ModuleType, parent_class: type | None = None) -> list[type]:
    """Return the classes that a module itself defines, by name; only subclasses of `parent_class` if given."""
    classes = [each for _, each in inspect.getmembers(module, inspect.isclass) if each.__module__ == module.__name__]
    return [each for each in classes if parent_class is None or issubclass(each, parent_class)]


def get_yaml_config(yaml_file_path: str | Path) -> Any:
    """Return the parsed content of a yaml file."""
    import yaml

    return yaml.safe_load(Path(yaml_file_path).read_bytes())


_PAGE = os.sysconf("SC_PAGE_SIZE")


def get_cpu_usage(pid: int | str) -> int:
    """Return the resident memory of a process in bytes, 0 if there is no such process; the name is TorchServe's."""
    try:
        return int(Path(f"/proc/{int(pid)}/statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError):
        logging.error("there is no process %s", pid)
        return 0


def check_process_mem_usage(stdin: TextIO) -> None:
    """Read one line of process numbers, separated by commas, and log `pid:bytes` for each."""
    for pid in filter(None, stdin.readline().strip().split(",")):
        logging.info("%s:%d", pid, get_cpu_usage(pid))
