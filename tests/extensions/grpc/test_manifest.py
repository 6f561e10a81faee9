"""The deployment of docs/deploy/kubernetes serves gRPC at the port that its service names."""

from tests.deploy.test_manifests import DEPLOYMENT
from tsctl.daemon.extensions.grpc import GrpcExtension


def test_the_deployment_opens_the_port_that_it_names() -> None:
    (container,) = DEPLOYMENT["spec"]["template"]["spec"]["containers"]
    said = {each["name"]: each.get("value") for each in container["env"]}
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    address = next(row for row in GrpcExtension.settings if row.name == "grpc_address")

    assert said[address.variable] == f"0.0.0.0:{ports['grpc']}"
