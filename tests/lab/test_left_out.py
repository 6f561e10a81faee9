"""What is left of the pages and of the list, where an extension is left out."""

import pytest

from tests.lab.left_out import LIST, unlinked, without
from tests.places import ROOT


def test_links_to_its_guide_and_paths_of_its_folders_become_text() -> None:
    page = (
        "See [the cache](guides/cache.md#promised), `docs/guides/cache.md`, `tests/extensions/cache/test_served.py`,"
        " `tests/extensions/cached.py` and [keys](guides/keys.md)."
    )

    assert unlinked(page, "cache") == (
        "See the cache, docs/guides/cache.md, tests/extensions/cache/test_served.py, `tests/extensions/cached.py` and"
        " [keys](guides/keys.md)."
    )


def test_its_words_leave_the_list() -> None:
    text = (ROOT / LIST).read_text()
    name = next(iter(line.split()[1].split(".")[-1] for line in text.splitlines() if ".extensions." in line))

    assert f".{name} import" in text and f".{name} import" not in without(text, name)
    with pytest.raises(ValueError, match="`nothing` is none of the extensions"):
        without(text, "nothing")
