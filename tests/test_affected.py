"""`make affected`: the tests to which names of modules lead from a change."""

from tests.affected import THIN, breakable, distances

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


def test_a_test_of_real_processes_that_was_changed_runs() -> None:
    assert breakable({"tests/e2e/test_stopping.py"}, MODULES) == {"tests/e2e/test_stopping.py": 0}


def test_a_package_counts_for_the_modules_below_it() -> None:
    assert {"daemon/pool.py", "daemon/api.py", "tests/test_pool.py"} < distances({"daemon/__init__.py"}, MODULES).keys()
