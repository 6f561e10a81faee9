"""The facts of `tsctl doctor`, read from files that look like the kernel's."""

import json
import os
import resource
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tsctl.conftest import Invoke
from tests.tsctl.fake_daemon import FakeDaemon
from tsctl.daemon.core.machine.cards import Card, FoundCards, find_cards
from tsctl.doctor import places
from tsctl.doctor.checks import examine
from tsctl.doctor.facts import MemoryFacts, TriedGpu
from tsctl.doctor.machine import Machine, installed, try_gpus
from tsctl.doctor.places import access_of, gather, holder_of, listeners, user_of

MEMINFO = "MemTotal:       8388608 kB\nMemFree: 1 kB\nMemAvailable:   4194304 kB\n"
GROUPS_2 = "0::/box\n"
MOUNTS_2 = "30 1 0:26 / {}/groups rw - cgroup2 cgroup2 rw\n"
GROUPS_1 = "4:memory:/box\n2:cpu,cpuacct:/box\n8:pids:/box\n"
MOUNTS_1 = "".join(
    f"3{index} 1 0:2{index} / {{}}/groups/{name} rw - cgroup cgroup rw,{name}\n"
    for index, name in enumerate(("memory", "cpu,cpuacct", "pids"))
)


def write(root: Path, **texts: str) -> Machine:
    """Write files, with the root for `{}`; `__` in a name stands for `/`."""
    for name, text in texts.items():
        file = root / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("{}", str(root)))
    return Machine(root)


def test_directories_of_a_daemon_belong_to_its_user_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)

    assert (user_of(os.getpid()), user_of(0)) == (own, own + 1)


def test_limits_of_a_cgroup_of_version_2_are_found(tmp_path: Path) -> None:
    machine = write(
        tmp_path, proc__self__cgroup=GROUPS_2, proc__self__mountinfo=MOUNTS_2, proc__meminfo=MEMINFO,
        **{
            "groups__box__cpu.max": "150000 100000\n", "groups__box__memory.max": f"{2**30}\n",
            "groups__box__memory.current": f"{2**29}\n", "groups__box__memory.stat": "anon 5\ninactive_file 1024\n",
            "groups__box__pids.max": "100\n", "groups__memory.max": "max\n",
            "groups__memory.current": "5\n", "groups__memory.stat": "",
        },
    )  # fmt: skip

    memory = machine.memory()

    assert machine.processors().quota == 1.5
    assert memory == MemoryFacts(total=2**30, left=2**29 + 1024, cgroup=f"the cgroup {tmp_path}/groups/box")
    assert machine.limits().cgroup_processes == 100


def test_limits_of_cgroups_of_version_1_are_found(tmp_path: Path) -> None:
    unlimited = "9223372036854771712\n"
    machine = write(
        tmp_path, proc__self__cgroup=GROUPS_1, proc__self__mountinfo=MOUNTS_1, proc__meminfo=MEMINFO,
        **{
            "groups__cpu,cpuacct__box__cpu.cfs_quota_us": "50000\n",
            "groups__cpu,cpuacct__box__cpu.cfs_period_us": "100000\n",
            "groups__memory__box__memory.limit_in_bytes": f"{2**28}\n",
            "groups__memory__box__memory.usage_in_bytes": f"{2**27}\n",
            "groups__memory__box__memory.stat": "inactive_file 7\ntotal_inactive_file 4096\n",
            "groups__memory__memory.limit_in_bytes": unlimited,
            "groups__memory__memory.usage_in_bytes": "5\n", "groups__memory__memory.stat": "",
            "groups__pids__box__pids.max": "max\n",
        },
    )  # fmt: skip

    assert machine.processors().quota == 0.5
    assert (machine.memory().left, machine.memory().total) == (2**27 + 4096, 2**28)
    assert machine.limits().cgroup_processes is None


def test_a_machine_without_those_files_has_no_limits(tmp_path: Path) -> None:
    machine = write(tmp_path, proc__meminfo=MEMINFO)

    assert (machine.processors().quota, machine.limits().cgroup_processes) == (None, None)
    assert machine.memory() == MemoryFacts(total=8 * 2**30, left=4 * 2**30)
    assert machine.shared_memory() is None
    assert (machine.gpus().devices, machine.gpus().driver, machine.clocks().booted) == (0, "", None)


def test_the_first_processor_s_model_and_flags_are_read(tmp_path: Path) -> None:
    cpuinfo = "processor : 0\nmodel name : Xeon\nflags : fpu amx_bf16\n\nprocessor : 1\nmodel name : other\n"

    found = write(tmp_path, proc__cpuinfo=cpuinfo).processors()

    assert (found.model, found.flags) == ("Xeon", frozenset({"fpu", "amx_bf16"}))


def counted(directory: Path) -> FoundCards:
    """Count the GPUs of the kernel module, as on a machine without NVML."""
    return find_cards(FoundCards, lambda: False, directory)


def test_gpus_and_their_driver_are_found_without_cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"
    pci = "sys__bus__pci__devices__0000:"
    write(
        tmp_path, proc__driver__nvidia__version=version,
        **{
            "proc__driver__nvidia__gpus__0000:01:00.0__information": "", f"{pci}01:00.0__vendor": "0x10de\n",
            f"{pci}01:00.0__class": "0x030200\n", f"{pci}01:00.1__vendor": "0x10de\n",
            f"{pci}01:00.1__class": "0x040300\n", f"{pci}02:00.0__vendor": "0x8086\n",
            f"{pci}02:00.0__class": "0x030000\n",
        },
    )  # fmt: skip
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")

    found = Machine(tmp_path, counted, lambda names: pytest.fail("hidden GPUs are not tried")).gpus()

    assert (found.devices, found.driver, found.found, found.visible) == (1, "550.54.15", 1, 0)


def test_torch_tries_each_visible_gpu_under_its_name_for_cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    cards = [Card(index=index, uuid=f"GPU-{index}", name="H100", total=2**30) for index in range(2)]
    asked: list[str] = []

    def tries(names: Sequence[str]) -> tuple[str, float]:
        asked.extend(names)
        return '{"gpu": 0, "reason": "too old", "remedy": "update it"}\n', 60.0

    found = Machine(tmp_path, lambda directory: FoundCards(cards, "580.1", 13000), tries).gpus()

    assert asked == ["1", "0"]
    assert (found.driver, found.names) == ("580.1", ("H100 (1.0 GiB)", "H100 (1.0 GiB)"))
    assert (found.tried, found.hung) == ((TriedGpu(0, "too old", "update it"),), 60.0)


def test_a_gpu_that_is_not_there_is_told_with_torchs_reason() -> None:
    told, hung = try_gpus(["99"])

    found = json.loads(told)
    assert (found["gpu"], hung) == (0, 0.0)
    assert found["reason"]


def test_this_machine_can_be_read() -> None:
    machine = Machine()
    table = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 777 1\n"
        "   1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 778 1\n"
    )

    assert machine.processors().allowed >= 1
    assert 0 < machine.memory().left <= machine.memory().total
    assert machine.clocks().now > 1.7e9
    assert installed().python.startswith("3.")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert machine.limits().files == (None if hard == resource.RLIM_INFINITY else hard)
    assert listeners(table) == {8080: "777"}, "only those that listen"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert holder_of(port).endswith(f", pid {os.getpid()}")
    assert holder_of(port) == ""


def test_a_directory_that_is_missing_is_judged_by_the_one_above(tmp_path: Path) -> None:
    found = access_of("state directory", tmp_path / "a" / "b", os.R_OK)

    assert (found.exists, found.directory, found.usable, found.owner) == (False, True, True, os.getuid())


def test_without_a_daemon_the_configured_address_is_tried(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        environment = {
            "TSCTL_INFERENCE_ADDRESS": f"127.0.0.1:{port}", "TSCTL_STATE_DIR": str(tmp_path / "state"),
        }  # fmt: skip

        taken = gather(tmp_path / "c.sock", environment)
    free = gather(tmp_path / "c.sock", environment)

    assert (taken.addresses[0].refusal, free.addresses[0].refusal) == ("EADDRINUSE", "")
    assert taken.addresses[0].holder.endswith(f"pid {os.getpid()}")
    assert taken.invalid == "" and taken.disks[0].place == str(tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_a_machine_on_which_nothing_can_be_written_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(tempfile, "gettempdir", none)

    found = gather(tmp_path / "c.sock", {"TSCTL_STATE_DIR": str(tmp_path)})

    assert [each.free > 0 for each in found.disks] == [False, True]
    assert examine(found)["disk"].state == "problem"


def test_an_invalid_setting_is_told_with_its_remedy(tmp_path: Path) -> None:
    found = gather(tmp_path / "c.sock", {"TSCTL_MODEL_STORE": str(tmp_path / "none")})

    assert found.invalid.startswith("no model store at")
    assert "--model-store" in found.invalid_remedy


def test_a_running_daemon_s_own_addresses_and_directories_are_checked(
    tmp_path: Path, daemon: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "user_of", {42: 998}.get)
    status = {
        "pid": 42, "version": "9.9", "compiled": True, "inferenceAddress": "http://127.0.0.1:8080",
        "managementAddress": None, "metricsAddress": None, "stateDir": str(tmp_path), "modelStore": None,
        "models": [{"wanted": 2, "threads": 8}, {"wanted": 1, "threads": 0}, {"wanted": 0, "threads": 0}],
    }  # fmt: skip
    daemon.answer("GET /tsctl/status", status)

    found = gather(daemon.path, {})

    assert (found.daemon.pid, found.daemon.version, found.daemon.threads) == (42, "9.9", ((4, 8),))
    assert found.user == 998
    assert [(each.address, each.own) for each in found.addresses] == [("127.0.0.1:8080", True)]
    assert [each.path for each in found.accesses] == [str(daemon.path.parent), str(tmp_path)]


def test_the_exit_code_says_whether_it_would_serve(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TSCTL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # no GPU of this machine is tried
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setenv("TSCTL_INFERENCE_ADDRESS", f"127.0.0.1:{listening.getsockname()[1]}")
        broken, text = invoke("doctor", "--json"), invoke("doctor")
    fine = invoke("doctor", "--json")

    document = json.loads(broken.stdout)
    (problem,) = (each for each in document["checks"] if each["state"] == "problem")
    assert (broken.exit_code, text.exit_code, document["serves"]) == (1, 1, False)
    assert problem["check"] == "addresses" and "--inference-address" in problem["remedy"]
    assert "→ end it, or choose another `--inference-address`" in text.stdout
    assert (fine.exit_code, json.loads(fine.stdout)["serves"]) == (0, True), fine.stdout
