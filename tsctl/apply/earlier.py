"""The state that a rollback returns to."""

from dataclasses import replace

from tsctl.apply.state import ModelSpec, VersionSpec


def restored(earlier: ModelSpec, now: ModelSpec | None) -> ModelSpec:
    """Return the earlier state, with the present numbers of workers of versions that are registered."""
    registered = {} if now is None else now.versions
    return replace(
        earlier,
        versions={version: _with_workers(spec, registered.get(version)) for version, spec in earlier.versions.items()},
    )


def _with_workers(spec: VersionSpec, now: VersionSpec | None) -> VersionSpec:
    return spec if now is None or now.workers is None else replace(spec, workers=now.workers)
