"""Start the models: restore the last run's registrations, and load the archives that a list names.

The list is `--models`, or `load_models` or `model_snapshot` of config.properties. The list wins over the snapshot:
its archives are loaded, and a version that an earlier list loaded and this one no longer names is not restored.
Without a list the whole snapshot is restored. Later changes (`scale`, a default version) apply to both.

Versions whose unpacked directories were kept are registered, and loading, before the daemon listens; the other
archives are unpacked afterwards (`load`). A kept directory is served even if its archive is gone; an archive that was
written since is unpacked again only if a list names it. For a pinned SHA-256 the directory must be as it was unpacked:
where somebody may have written to its files they are hashed, and unpacked again if they differ. Nothing is lost
silently: a version that cannot be restored stays listed as failed, and the log names each version that a list no longer
names.
"""

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tsctl.daemon.config.config import Config
from tsctl.daemon.core.errors import Conflict, DaemonError, NotRemembered
from tsctl.daemon.marfile import UNREADABLE, manifest_in
from tsctl.daemon.models.archives.download import archives
from tsctl.daemon.models.archives.unpack import mark_of
from tsctl.daemon.models.persistence.restore import Restoring
from tsctl.daemon.models.persistence.snapshot import SnapshotEntry
from tsctl.daemon.models.registrar import Registrar
from tsctl.daemon.models.registry import Registry
from tsctl.daemon.models.request import Registration
from tsctl.daemon.models.settings import Overrides, overrides_of

_MOST_UNPACKED = 64 * 1024 * 1024  # bytes of a tar file until the manifest: 0.2 s, while nobody is answered
_log = logging.getLogger("tsctl.daemon.models")


@dataclass(frozen=True, slots=True)
class Listing:
    """One model of a list; `name` is None if the archive's manifest names the model."""

    url: str
    name: str | None = None

    def names(self, entry: SnapshotEntry, place: Callable[[str], str]) -> bool:
        """Return whether the listing is this version: its archive, under the name that it has there or is given."""
        named = entry.request.model_name == self.name or entry.name == self.name
        return named and place(entry.request.url) == place(self.url)


@dataclass(frozen=True, slots=True)
class StartupPlan:
    """The plan of a start.

    Attributes:
        restore: versions to serve as they were.
        load: models to load from their archives.
        renew: versions that a model of `load` replaces, because their archives were written since.
        forget: versions that the list no longer names.
    """

    restore: Sequence[SnapshotEntry]
    load: Sequence[Listing]
    renew: Sequence[SnapshotEntry]
    forget: Sequence[SnapshotEntry]


def parse_listings(models: Sequence[str], in_store: Sequence[str]) -> list[Listing]:
    """Parse `ALL` and `[NAME=]ARCHIVE` into listings, without repetitions.

    Args:
        in_store: the archives that `ALL` stands for.
    """
    listings = []
    for model in models:
        name, equals, url = model.partition("=")
        if equals:
            listings.append(Listing(url.strip(), name.strip()))
        elif model in ("ALL", "all"):
            listings += [Listing(archive) for archive in in_store]
        else:
            listings.append(Listing(model))
    return list(dict.fromkeys(listings))


def plan(
    entries: Sequence[SnapshotEntry],
    listings: Sequence[Listing] | None,
    *,
    place: Callable[[str], str],
    fresh: Callable[[SnapshotEntry], bool],
) -> StartupPlan:
    """Decide which versions are restored, loaded and forgotten.

    Args:
        entries: the snapshot.
        listings: None if there is no list.
        place: maps an archive's url to its path, for comparisons.
        fresh: whether an entry's archive is unchanged since the registration.
    """
    load: list[Listing] = []
    current: set[tuple[str, str]] = set()
    for listing in listings or ():
        named = [entry for entry in entries if listing.names(entry, place)]
        up_to_date = [entry for entry in named if fresh(entry)]
        current.update((entry.name, entry.version) for entry in up_to_date)
        if not up_to_date:
            load.append(listing)

    def restored(entry: SnapshotEntry) -> bool:
        return listings is None or not entry.listed or (entry.name, entry.version) in current

    def named_at_all(entry: SnapshotEntry) -> bool:
        return any(listing.names(entry, place) for listing in listings or ())

    others = [entry for entry in entries if not restored(entry)]
    return StartupPlan(
        restore=[entry for entry in entries if restored(entry)],
        load=load,
        renew=[entry for entry in others if named_at_all(entry)],
        forget=[entry for entry in others if not named_at_all(entry)],
    )


class Startup:
    """Restores and loads the models at the start of the daemon.

    Attributes:
        done: whether every model of the snapshot and the list has been registered, or has failed.

    Args:
        replacing: whether this daemon replaces one that serves the snapshot's models. Exactly those are restored,
            whatever the settings `restore` and `models`, and the file is left to the other daemon.
        handed: ephemeral versions of that daemon, which the snapshot does not hold.
    """

    def __init__(
        self,
        config: Config,
        registry: Registry,
        registrar: Registrar,
        *,
        replacing: bool = False,
        handed: Sequence[SnapshotEntry] = (),
    ) -> None:
        self.done = False
        self._named: dict[str, str | None] = {}  # archive → the model in it
        self._config = config
        self._registry = registry
        self._ledger = registrar.ledger
        self._events = registrar.events
        self._restoring = Restoring(config, registry, registrar)
        self._remember = config.restore and not replacing
        kept = registrar.ledger.memory.last.models if config.restore or replacing else ()
        self._entries = (*kept, *handed)
        if config.restore or replacing:
            registry.routes.restore(registrar.ledger.memory.last.routes)
            registrar.ledger.restore_parts()
        listings = (
            None if config.models is None or replacing else parse_listings(config.models, archives(config.model_store))
        )
        self._missing: list[SnapshotEntry] = []  # versions whose directories were not kept
        self._plan = plan(self._entries, listings, place=self._place, fresh=_is_fresh)

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to restore or load."""
        return not (self._plan.restore or self._plan.load)

    def restore(self) -> None:
        """Register the last run's versions from the directories that were kept."""
        for entry in self._plan.forget:
            _log.info("%s/%s is not restored: it was loaded from a list that no longer names it", *_names(entry))
        for entry in self._plan.restore:
            try:
                self._restoring.restore(entry)
            except (DaemonError, OSError, ValueError) as error:
                _log.info("%s/%s cannot be served from its unpacked files: %s", *_names(entry), error)
                self._missing.append(entry)
            else:
                _tell_if_changed(entry)
                self._set_default(entry.name, entry.version)
        self._ledger.pending = [*self._missing, *self._plan.renew]  # so that a change meanwhile keeps them
        for name in self._expected_names():
            self._registry.expect(name)

    async def load(self) -> None:
        """Unpack and register the rest. Errors are not raised: they are logged, or shown as a failed version."""
        try:
            for entry in self._missing:
                await self._restore_from_archive(entry)
                self._ledger.pending.remove(entry)
                self._registry.settle(entry.name)
            for listing in self._plan.load:
                failure = await self._load(listing)
                self._registry.settle(self._name_of(listing), failure)
        finally:  # where a bug has broken it off, nothing waits for the rest
            while left := self._registry.expected:
                self._registry.settle(left[0])
        self._ledger.pending = []
        self._registry.forget_missing()
        if self._remember:  # else the snapshot is ignored until the first change
            with contextlib.suppress(NotRemembered):  # logged already
                await self._ledger.save()
        self.done = True

    async def _restore_from_archive(self, entry: SnapshotEntry) -> None:
        try:
            await self._restoring.restore_from_archive(entry)
        except Conflict:
            _log.warning("%s/%s is not restored: it was registered meanwhile", *_names(entry))
        except (DaemonError, OSError, ValueError) as error:
            self._lose(entry, error)
        self._set_default(entry.name, entry.version)

    def _lose(self, entry: SnapshotEntry, error: Exception) -> None:
        reason = f"The registration of an earlier run cannot be restored: {error}"
        self._events.add("registration-failed", reason, model=entry.name, version=entry.version)
        if not self._registry.holds(entry.name, entry.version):
            self._restoring.lose(entry, reason)

    def _expected_names(self) -> list[str | None]:
        return [*(entry.name for entry in self._missing), *(self._name_of(listing) for listing in self._plan.load)]

    def _name_of(self, listing: Listing) -> str | None:
        """Return the name of a listed model; None if its archive is not in the store, or does not tell quickly."""
        if listing.name is not None or listing.url in self._named:
            return listing.name or self._named[listing.url]
        self._named[listing.url] = name_in(Path(self._place(listing.url)))
        return self._named[listing.url]

    async def _load(self, listing: Listing) -> str:
        """Register a listed model; return why that failed, or an empty string."""
        renewed = [entry for entry in self._plan.renew if listing.names(entry, self._place)]
        request = Registration(url=listing.url, model_name=listing.name, synchronous=False, local_paths=True)
        remembered = partial(self._remembered, listing.url)
        try:
            try:
                model = await self._restoring.load(request, remembered)
            except Conflict as conflict:
                if not await self._restoring.make_room(conflict.name, conflict.version):
                    raise
                model = await self._restoring.load(request, remembered)
        except (DaemonError, OSError, ValueError) as error:
            self._events.add("registration-failed", f"cannot load {listing.url}: {error}", model=listing.name or "")
            for entry in renewed:
                self._lose(entry, error)
                self._set_default(entry.name, entry.version)
            return str(error).partition("\n")[0]
        for entry in renewed:
            if _names(entry) != (model.name, model.version):
                _log.info("%s/%s is not restored: %s no longer contains this version", *_names(entry), listing.url)
        former = self._former(listing.url, model.name, model.version)
        if former not in (None, model.version):
            sentence = "%s contains version %s, and `model_snapshot` names %s of it: its settings are used"
            _log.warning(sentence, listing.url, model.version, former)
        self._set_default(model.name, model.version, former)
        return ""

    def _remembered(self, url: str, name: str, version: str) -> Overrides | None:
        said = (entry.request.overrides for entry in self._entries if (entry.name, entry.version) == (name, version))
        former = self._former(url, name, version)
        return next(said, None if former is None else overrides_of(self._config.snapshot_block[name][former]))

    def _former(self, url: str, name: str, version: str) -> str | None:
        """Return the version under which TorchServe's snapshot has this one: the same, or another of its archive.

        TorchServe registers what is in the archive now, with the settings of the snapshot (its `ModelManager`).
        """
        versions = self._config.snapshot_block.get(name, {})
        of_archive = [each for each, values in versions.items() if values.get("marName") == url]
        return version if version in versions else next(iter(of_archive), None)

    def _set_default(self, name: str, version: str, former: str | None = None) -> None:
        """Make a version the default if a client or the `models` block chose it, or it was the default.

        Args:
            former: as `_former`.
        """
        known = [entry for entry in self._entries if entry.name == name and entry.default]
        if any(entry.chosen for entry in known):
            wanted = known[0].version
        else:
            block = {**self._config.models_block.get(name, {}), **self._config.snapshot_block.get(name, {})}
            said = [each for each, values in block.items() if values.get("defaultVersion") is True]
            wanted = next(iter(said), known[0].version if known else "")
            wanted = version if wanted == former else wanted
        if version == wanted and self._registry.holds(name, version):
            if any(entry.chosen for entry in known):
                self._ledger.choose_default(name, version)
            else:
                self._registry.set_default(name, version)

    def _place(self, url: str) -> str:
        store = self._config.model_store
        return url if store is None else str(store / url)  # an absolute path stays as it is


def name_in(archive: Path) -> str | None:
    """Return the name that an archive's manifest gives the model; None if there is none that can be read quickly."""
    try:
        name = manifest_in(archive, _MOST_UNPACKED)["model"]["modelName"]
    except (*UNREADABLE, TypeError):
        return None
    return name if isinstance(name, str) else None


def _is_fresh(entry: SnapshotEntry) -> bool:
    now = None if entry.archive is None else mark_of(Path(entry.archive.file))
    return now is None or now == entry.archive


def _tell_if_changed(entry: SnapshotEntry) -> None:
    url = entry.request.url
    if not _is_fresh(entry):
        sentence = "%s has changed since %s/%s was registered from it; the old files are served; register it again"
        _log.warning(sentence, url, *_names(entry))
    elif entry.archive is not None and mark_of(Path(entry.archive.file)) is None:
        _log.warning("%s is gone; %s/%s is served from its unpacked files", url, *_names(entry))


def _names(entry: SnapshotEntry) -> tuple[str, str]:
    return entry.name, entry.version
