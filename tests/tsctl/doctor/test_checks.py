"""The checks of `tsctl doctor`: facts in, a verdict with its remedy out."""

import re
from typing import Any

import pytest

from tests.tsctl.doctor.facts import FINE, GIB, facts
from tsctl.doctor.checks import CHECKS, OK, PROBLEM, WARNING, Verdict, breaks_serving, examine, worst
from tsctl.doctor.facts import (
    ConfiguredAddress,
    DoctorFacts,
    InstalledService,
    PathAccess,
    RunningDaemon,
    Space,
    TriedGpu,
)

MIB = 2**20
GPU = {"devices": 1, "driver": "550.54.15", "found": 1, "visible": 1}
DRIVEN = {"version": "1.0", "python": "3.11", "compiled": True, "torch": "2.6.0+cu124"}


def address(refusal: str = "", holder: str = "", *, own: bool = False) -> DoctorFacts:
    return facts(addresses=(ConfiguredAddress("--inference-address", "127.0.0.1:8080", refusal, holder, own),))


def access(what: str = "state directory", **values: Any) -> DoctorFacts:
    return facts(accesses=(PathAccess(what, "/here", True, True, 1000, 0o700, True)._replace(**values),))


def disk(free: int, inodes: int | None = 10**6) -> DoctorFacts:
    return facts(disks=(Space("/state", 100 * GIB, free, inodes),))


def service(*, runs: bool) -> DoctorFacts:
    unit = "/etc/systemd/system/tsctl.service"
    return facts(services=(InstalledService(unit, "/opt/tsctl/bin/tsctl", runs),))


CASES = [
    ("installation", facts("installation", compiled=False), WARNING, "not compiled"),
    ("installation", facts("installation", torch=""), WARNING, "no torch"),
    ("daemon", facts(daemon=RunningDaemon(pid=7, version="1.0", compiled=True)), OK, "pid 7"),
    ("daemon", facts(daemon=RunningDaemon(pid=7, version="0.9", compiled=True)), WARNING, "1.0 (compiled) is"),
    ("daemon", facts(daemon=RunningDaemon(trouble="the daemon does not answer")), PROBLEM, "does not answer"),
    ("service", facts(), OK, "none; `tsctl install-service`"),
    ("service", service(runs=True), OK, "tsctl.service` runs `/opt/tsctl/bin/tsctl`"),
    ("service", service(runs=False), WARNING, "which is not there, or not for this user"),
    ("configuration", facts(invalid="no model store at `/x`", invalid_remedy="make it"), PROBLEM, "no model store"),
    ("addresses", facts(addresses=()), OK, "no TCP address"),
    ("configuration", facts(invalid="`x` is no port", addresses=()), PROBLEM, "no port"),
    ("addresses", address(own=True), OK, "the daemon's"),
    ("addresses", address("EADDRINUSE", "nginx, pid 12"), PROBLEM, "in use by nginx, pid 12"),
    ("addresses", address("EADDRINUSE"), PROBLEM, "in use by another process"),
    ("addresses", address("EACCES"), PROBLEM, "may not listen"),
    ("addresses", address("EADDRNOTAVAIL"), PROBLEM, "no address of this machine"),
    ("addresses", address("ENOBUFS"), PROBLEM, "ENOBUFS"),
    ("permissions", facts(accesses=()), OK, "no directory"),
    ("permissions", facts(socket="/" + 107 * "x"), PROBLEM, "108 bytes"),
    ("permissions", access(exists=False), OK, "will be made"),
    ("permissions", access(exists=False, usable=False), PROBLEM, "cannot make it"),
    ("permissions", access(directory=False), PROBLEM, "is no directory"),
    ("permissions", access(owner=33), PROBLEM, "belongs to user 33"),
    ("permissions", access(owner=0), OK, "state directory"),
    ("permissions", access(owner=0, private=True), PROBLEM, "belongs to user 0"),
    ("permissions", access(mode=0o755, private=True), PROBLEM, "others can enter (mode 755)"),
    ("permissions", access(mode=0o755), OK, "state directory"),
    ("permissions", access(usable=False), PROBLEM, "user 1000 may not use it"),
    ("permissions", access("model store", owner=33, mode=0o755), OK, "model store"),
    ("permissions", access("model store", owner=33, usable=False), PROBLEM, "user 1000 may not use it"),
    ("permissions", access("model store", exists=False), PROBLEM, "is not there"),
    ("permissions", access("model store", mode=0o777), WARNING, "every user can change the code"),
    ("permissions", access("socket directory", private=False, mode=0o777), WARNING, "every user can put a socket in"),
    ("permissions", access("socket directory", private=False, owner=0, mode=0o1777), OK, "socket directory"),
    ("disk", disk(500 * MIB), WARNING, "500.0 MiB free"),
    ("disk", disk(10 * MIB), PROBLEM, "no archive can be unpacked"),
    ("disk", disk(50 * GIB, 0), PROBLEM, "0 inodes free"),
    ("disk", disk(50 * GIB, 10), WARNING, "10 inodes free"),
    ("disk", disk(50 * GIB, None), OK, "50.0 GiB free"),
    ("cores", facts("processors", allowed=2), OK, "8 cores, 2 allowed by the affinity"),
    ("cores", facts("processors", quota=1.5), OK, "1.5 by the cgroup's quota"),
    ("cores", facts("processors", quota=0.5), WARNING, "waits for its share"),
    ("cores", facts("processors", threads=16), WARNING, "OMP_NUM_THREADS is 16"),
    ("cores", facts("daemon", threads=((8, 8), (8, 8))), WARNING, "8 cores; 2 models share 8 cores with 16 threads"),
    ("cores", facts("daemon", threads=((8, 8),)), OK, "8 cores"),
    ("processor", FINE, OK, "fast bfloat16: amx_bf16"),
    ("processor", facts("processors", flags=frozenset({"avx2"})), OK, "no fast bfloat16"),
    (
        "memory", facts("memory", left=300 * MIB, cgroup="the cgroup /x"), WARNING,
        "300.0 MiB free of 16.0 GiB, the limit of the cgroup /x: two or three workers",
    ),
    ("memory", facts("memory", left=50 * MIB), PROBLEM, "no worker can start"),
    ("GPU", facts("gpus", devices=2), WARNING, "2 NVIDIA GPUs without a driver"),
    (
        "GPU", facts("gpus", **GPU, tried=(TriedGpu(0), *(TriedGpu(gpu, "no kernel", "x") for gpu in (1, 2)))),
        PROBLEM, "torch 2.6.0+cpu runs no kernel on GPU 1, GPU 2: no kernel: workers on a GPU fail",
    ),
    ("GPU", facts("gpus", **GPU, tried=(TriedGpu(0),), hung=60.0), PROBLEM, "torch has hung for 60 s on GPU 1"),
    ("GPU", facts("gpus", **GPU, troubles=("GPU 1 is not used: x",)), WARNING, "GPU 1 is not used: x"),
    ("GPU", facts("gpus", troubles=("NVML does not answer: x",)), WARNING, "x: models run on the processor"),
    ("GPU", facts("gpus", **GPU, closed=("/dev/nvidia0",)), PROBLEM, "may not open /dev/nvidia0"),
    ("GPU", facts("gpus", **(GPU | {"visible": 0})), WARNING, "0 left by CUDA_VISIBLE_DEVICES"),
    ("shared memory", facts(shared_memory=None), WARNING, "no /dev/shm"),
    ("shared memory", facts(shared_memory=Space("/dev/shm", 64 * MIB, 64 * MIB, None)), WARNING, "64.0 MiB"),
    ("open files", facts("limits", files=None), OK, "no limit"),
    ("open files", facts("limits", files=1024), WARNING, "at most 1024"),
    ("open files", facts("limits", files=128), PROBLEM, "at most 128"),
    ("processes", facts("limits", processes=4000, cgroup_processes=100), WARNING, "at most 100"),
    ("processes", facts("limits", cgroup_processes=20), PROBLEM, "at most 20"),
    ("clock", facts("clocks", now=1.8e9), WARNING, "in the past"),
    ("clock", facts("clocks", booted=2.1e9), WARNING, "in the past"),
    ("clock", facts("clocks", source="hpet"), WARNING, "clock source hpet"),
    ("clock", facts("clocks", source="", booted=None, installed=0.0), OK, "sane"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "given", "state", "text"), CASES, ids=[f"{case[0]}: {case[3]}" for case in CASES])
def test_a_check_judges_its_facts_alone(check: str, given: DoctorFacts, state: str, text: str) -> None:
    verdicts = examine(given)

    assert verdicts[check].state == state
    assert text in verdicts[check].text
    assert bool(verdicts[check].remedy) == (state != OK)
    assert {name for name, each in verdicts.items() if each.state != OK} <= {check}
    assert breaks_serving(verdicts) == (state == PROBLEM)


def test_each_check_has_a_case_and_a_fine_machine_serves() -> None:
    verdicts = examine(FINE)

    assert {case[0] for case in CASES} == set(CHECKS)
    assert {each.state for each in verdicts.values()} == {OK}
    assert not breaks_serving(verdicts)


def test_a_gpu_with_its_driver_and_torch_is_fine_and_its_parts_are_called_so() -> None:
    gpus = facts("gpus", **GPU, names=("NVIDIA H100 (79.6 GiB)",), tried=(TriedGpu(0),)).gpus
    given = facts(gpus=gpus, installation=facts("installation", **DRIVEN).installation)
    parts = facts("gpus", **(GPU | {"found": 2, "visible": 2}), parts=True)

    assert examine(given)["GPU"] == Verdict(OK, "1 NVIDIA GPU, driver 550.54.15: NVIDIA H100 (79.6 GiB)")
    assert examine(parts)["GPU"] == Verdict(OK, "2 NVIDIA GPUs, driver 550.54.15, parts (MIG) as one each")


def test_of_several_answers_the_worst_ones_count() -> None:
    fine, warning, problem = Verdict(OK, "a"), Verdict(WARNING, "b", "x"), Verdict(PROBLEM, "c", "y")

    assert worst([fine, problem, warning]) == problem
    assert worst([fine, warning]) == warning
    assert worst([fine, Verdict(OK, "d")]) == Verdict(OK, "a; d")


def test_what_is_not_compiled_is_installed_again_from_the_clone_and_no_package_that_may_be_a_strangers() -> None:
    remedy = CHECKS["installation"](facts("installation", compiled=False)).remedy

    assert re.findall("pip install ([^`]*)", remedy) == ["."] and "TSCTL_COMPILE=1" in remedy
