"""Adding a setting is one row: whatever is made of the table has it then.

A fresh interpreter adds the row before anything else has read the table.
"""

import json
import subprocess
import sys

import pytest

from tests.places import ROOT

PROGRAM = """
import asyncio, json, sys
from pathlib import Path

import tsctl.daemon.model_settings as model_settings
import tsctl.daemon.tables as tables
from tsctl.daemon.model_settings.kinds import Integer

row = model_settings.ModelSetting(
    name="shelves", kind=Integer(1, 9), help="Shelves that a model stands on.", label="number of shelves",
    yaml="shelfCount", rest="shelves", flag="--shelves", default=3, changes="from the next shelf on",
)
tables.MODEL_SETTINGS += (row,)

from click.testing import CliRunner
from tsctl.daemon.models.persistence.snapshot import read_snapshot
from docs.generate.model_settings import page
from tests.api.house import House
from tsctl.commands.register import command as register
from tsctl.commands.set import command as set_

root = Path(sys.argv[1])
house = House(root)
house.put("m", config="shelfCount: 4")
house.put("n", config="shelfCount: 10")
ask = lambda method, target: asyncio.run(house.tell(method, target))
settings = lambda: [each for each in ask("GET", "/models/m")[1][0]["tsctl"]["settings"] if each["name"] == "shelfCount"]
described = ask("OPTIONS", "/models")[1]["paths"]
schema = lambda path, method: [
    each["schema"] for each in described[path][method]["parameters"] if each["name"] == "shelves"
]
print(json.dumps({
    "register --help": CliRunner().invoke(register, ["--help"]).output,
    "set --help": CliRunner().invoke(set_, ["--help"]).output,
    "refused option": CliRunner().invoke(register, ["m", "--shelves", "10"]).output,
    "openapi": [schema("/models", "post"), schema("/models/{model_name}", "patch")],
    "refused yaml": ask("POST", "/models?url=n")[1]["message"],
    "refused": ask("POST", "/models?url=m&shelves=10")[1]["message"],
    "archive": [ask("POST", "/models?url=m")[0], settings()],
    "patch": [ask("PATCH", "/models/m?shelves=7")[1]["changes"], settings()],
    "snapshot": read_snapshot(root / "snapshot.json").models[0].request.overrides.said,
    "removed": ask("DELETE", "/models/m")[0],
    "register": [ask("POST", "/models?url=m&shelves=5")[0], settings()],
    "page": page(),
}))
"""


@pytest.mark.slow
def test_a_row_is_all_that_a_new_setting_needs(tmp_path_factory: pytest.TempPathFactory) -> None:
    arguments = [sys.executable, "-c", PROGRAM, str(tmp_path_factory.mktemp("house"))]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)

    help_line = "--shelves N Shelves that a model stands on."
    assert f"{help_line} [default: 3]" in " ".join(told["register --help"].split())
    assert f"{help_line} Counts from the next shelf on." in " ".join(told["set --help"].split())
    assert "'--shelves': `10`; expected a whole number from 1 to 9" in told["refused option"]
    assert told["openapi"] == [[{"type": "integer", "minimum": 1, "maximum": 9}]] * 2
    sentence = "expected a whole number from 1 to 9."
    assert told["refused yaml"] == f"model-config.yaml: `shelfCount` is `10`; {sentence}"
    assert told["refused"] == f"shelves is '10'; {sentence}"

    def shown(value: int, origin: str) -> list[dict[str, object]]:
        return [{"name": "shelfCount", "value": value, "origin": origin, "changes": "from the next shelf on"}]

    assert told["archive"] == [200, shown(4, "model-config.yaml")]
    assert told["patch"] == [[{"name": "shelfCount", "from": 4, "to": 7}], shown(7, "set")]
    assert told["snapshot"] == {"shelves": 7}
    assert told["register"] == [200, shown(5, "register")]
    assert "| `shelfCount` | `--shelves` | `shelves` | a whole number from 1 to 9 | 3 | yes |" in told["page"]
