"""Which files of the core name a capability."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tests.lab.counter.capabilities import CAPABILITIES, Capability
from tests.lab.counter.tree import TUPLE, texts_of


class Hit(NamedTuple):
    """A line that names a capability."""

    capability: str
    file: str
    line: int


def hits(sources: Mapping[str, str], capabilities: Iterable[Capability] = CAPABILITIES) -> list[Hit]:
    """Return the lines of these sources that name one; one for each capability, though a line may name it twice.

    Args:
        sources: of the core; the tuple of extensions may name all.
    """
    found = {
        Hit(capability.name, file, text.line)
        for capability in capabilities
        for file, source in sources.items()
        if file != TUPLE and not file.startswith(capability.elsewhere or ("\n",))
        for text in texts_of(source)
        if capability.words.search(text.text)
    }
    return sorted(found)
