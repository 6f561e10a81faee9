"""The workloads for each server, by name."""

from tests.lab.benchmarks.workloads.workload import BESIDE, GRPC, KILL, LOADS, Workload

WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in (*LOADS, GRPC, BESIDE, KILL)}
