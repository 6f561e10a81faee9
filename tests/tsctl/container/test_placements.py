"""Where containers serve what: each file of tests/tsctl/container/placements is compared whole."""

from pathlib import Path

from tests.kit.told import Told, told_in
from tests.tsctl.container.placements import play


@told_in((Path(__file__).parent / "placements").glob("*.txt"))
def test_a_container_serves_exactly_this(told: Told, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret")
    (tmp_path / "token").chmod(0o600)

    told.compare(play(told.lines, tmp_path))
