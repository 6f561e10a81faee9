"""A release is refused until its tag, version, changelog and addresses agree."""

import pytest

from tests.release import ADDRESSES, missing

PROJECT = {"version": "1.2.3", "urls": {name: f"https://example.org/{name}" for name in ADDRESSES}}
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2030-01-31\n"


def test_a_release_whose_parts_agree_is_ready() -> None:
    assert list(missing("v1.2.3", PROJECT, CHANGELOG)) == []


@pytest.mark.parametrize(
    ("tag", "project", "changelog", "told"),
    [
        pytest.param("v1.2.4", PROJECT, CHANGELOG, "The tag is `v1.2.4`", id="another tag"),
        pytest.param("", PROJECT, CHANGELOG, "expected `v1.2.3`", id="no tag"),
        pytest.param("v1.2.3", PROJECT, CHANGELOG.replace(" - 2030-01-31", ""), "YYYY-MM-DD", id="no date"),
        pytest.param("v1.2.3", PROJECT, CHANGELOG.replace("1.2.3", "1x2x3"), "`## [1.2.3]", id="another version"),
        pytest.param(
            "v1.2.3", PROJECT, CHANGELOG.replace("Unreleased", "Next"), "what comes next", id="no new section"
        ),
        pytest.param("v1.2.3", {"version": "1.2.3"}, CHANGELOG, "`Source`", id="no addresses"),
    ],
)
def test_what_is_missing_is_named(tag: str, project: dict[str, object], changelog: str, told: str) -> None:
    assert told in " ".join(missing(tag, project, changelog))
