"""`make affected`: the tests to which names of modules lead from a change."""

from tests.affected import THIN, breakable, distances, reads
from tests.places import ROOT

MODULES = {
    "daemon/__init__.py": '"""The house: daemon.queue, daemon.pool."""',
    "daemon/queue.py": "",
    "daemon/pool.py": "from tsctl.daemon import (\n    queue,\n)\n",
    "daemon/api.py": "def route():\n    from tsctl.daemon.pool import Pool\n",
    "handlers/worker.py": "import torch\n",
    "tests/conftest.py": "",
    "tests/api/conftest.py": "import tsctl.handlers.worker as worker\n",
    "tests/api/test_routes.py": "from tsctl.daemon.api import route\n",
    "tests/test_pool.py": "from tsctl.daemon.pool import Pool\n",
    "tests/test_queue.py": "PROGRAM = 'import tsctl.daemon.queue; print(1)'\n",
    "tests/test_page.py": "PAGE = ROOT / 'docs' / 'promises.md'\n",
    "tests/e2e/test_stopping.py": "import tsctl.daemon.queue\n",
    THIN: "import tsctl.daemon.api\n",
}


def test_the_nearest_come_first_and_those_without_a_way_to_the_change_not_at_all() -> None:
    assert list(breakable({"daemon/queue.py"}, MODULES).items()) == [
        ("tests/test_queue.py", 1),
        ("tests/test_pool.py", 2),
        ("tests/api/test_routes.py", 3),
        (THIN, 3),
    ]


def test_what_a_conftest_imports_counts_for_the_tests_beside_it() -> None:
    assert breakable({"handlers/worker.py"}, MODULES) == {"tests/api/test_routes.py": 2}


def test_a_file_that_is_no_module_counts_for_those_that_name_it() -> None:
    assert breakable({"docs/promises.md", "gone.py"}, MODULES) == {"tests/test_page.py": 1}


def test_a_text_file_counts_for_the_tests_that_read_its_folder() -> None:
    modules = {
        "tests/http/test_talks.py": '@told_in((Path(__file__).parent / "talks").glob("*.txt"))',
        "tests/workers/test_talks.py": '@told_in((Path(__file__).parent / "talks").glob("*.txt"))',
        "tests/models/test_plays.py": '@told_in(TESTS.glob("extensions/*/plays/*.txt"))',
        "tests/models/test_scenes.py": '@told_in(TESTS.glob("*/plays/*.txt"))',
    }

    assert breakable({"tests/http/talks/pipelining.txt"}, modules) == {"tests/http/test_talks.py": 1}
    assert breakable({"tests/extensions/keys/plays/rates.txt"}, modules) == {"tests/models/test_plays.py": 1}
    assert breakable({"tests/batching/plays/queue.txt"}, modules) == {"tests/models/test_scenes.py": 1}


def test_every_text_of_ours_is_read_by_a_test() -> None:
    tests = [(str(path.relative_to(ROOT)), path.read_text()) for path in (ROOT / "tests").rglob("test_*.py")]
    texts = [path for path in (ROOT / "tests").rglob("*.txt") if path.read_text().startswith("## ")]

    unread = {
        str(text.relative_to(ROOT))
        for text in texts
        if not any(reads(path, source, str(text.relative_to(ROOT))) for path, source in tests)
    }
    assert len(texts) > 60
    assert unread == set()


def test_a_test_of_real_processes_that_was_changed_runs() -> None:
    assert breakable({"tests/e2e/test_stopping.py"}, MODULES) == {"tests/e2e/test_stopping.py": 0}


def test_a_package_counts_for_the_modules_below_it() -> None:
    assert {"daemon/pool.py", "daemon/api.py", "tests/test_pool.py"} < distances({"daemon/__init__.py"}, MODULES).keys()
