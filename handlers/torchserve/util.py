"""Small functions that handlers import from `ts.utils.util` and `ts.handler_utils.utils`."""

import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any


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
