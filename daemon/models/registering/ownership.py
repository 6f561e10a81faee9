"""Ephemeral versions, and their owners: a program that serves a model as long as it runs itself (`tsctl serve`).

The owner is a random token. An ephemeral registration takes no name that is registered, unless it replaces its own
version; and a program unregisters with its token, so that a model that an operator has put there since stays.
Commands without a token (`tsctl unregister`, `register --replace`) are the operator's, and never refused for this.
"""

from collections.abc import Iterable, Sequence

from tsctl.daemon.core.errors import BadRequest, Conflict
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.version import ModelVersion

MOST_OWNER = 200  # characters


def check_owner_token(owner: str) -> None:
    """Raise BadRequest if the token is too long."""
    if len(owner) > MOST_OWNER:
        raise BadRequest(f"owner has {len(owner)} characters; at most {MOST_OWNER} are allowed.")


def check_name(
    request: Registration, name: str, registered: Sequence[ModelVersion], pending: Iterable[str], *, replace: bool
) -> None:
    """Raise Conflict if an ephemeral registration would take a name that is not its owner's.

    Args:
        registered: all versions of this name.
        pending: names that an earlier run registered and that are not restored yet.
    """
    if not request.ephemeral:
        return
    for model in registered:
        if not (replace and model.request.ephemeral and model.request.owner == request.owner):
            taken = f"Model {name} is already registered: version {model.version}, from {model.source.url}."
            raise Conflict(name, model.version, f"{taken} {_remedy(name)}")
    if name in pending:
        raise Conflict(name, "", f"Model {name} is already registered, and is being restored. {_remedy(name)}")


def check_owner(model: ModelVersion, owner: str) -> None:
    """Raise Conflict if a token is given, and the version that serves now has another one."""
    if owner and model.request.owner != owner:
        sentence = f"Model {model.name} version {model.version} has been registered by another owner since;"
        raise Conflict(model.name, model.version, f"{sentence} it stays registered.")


def _remedy(name: str) -> str:
    return f"Use another model_name, or unregister it first: `tsctl unregister {name}`."
