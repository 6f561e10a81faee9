"""The manifests of docs/deploy fit each other, the daemon and, where the tools are there, the schemas of Kubernetes."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.manifests import FOLDER, documents, expand, files, start_of
from tests.e2e.served import TSCTL
from tests.kit.shelf import needs
from tsctl.container.__main__ import Program, read_words
from tsctl.container.torchserve import torchserve
from tsctl.daemon.api.inference.openapi import describe_api
from tsctl.daemon.server.extensions import EXTENSIONS
from tsctl.daemon.tables import SETTINGS

PROGRAMS = Path(__file__).parent / "programs"
PYTHON = Path(__file__).parents[2] / ".deploy" / "manifests" / "bin" / "python"
GROUPS = {"serving.kserve.io": "KSERVE_CHECKOUT", "keda.sh": "KEDA_CHECKOUT"}
COMPOSE = FOLDER / "compose" / "compose.yaml"
NO_RESOURCES = ("kustomization.yaml", "prometheus-adapter.yaml")  # of kustomize and of a chart
RESOURCES = [path for path in files() if path.name not in NO_RESOURCES]
(RUNTIME,) = documents(FOLDER / "kserve" / "clusterservingruntime.yaml")
(SERVICE,) = documents(FOLDER / "kserve" / "inferenceservice.yaml")
(DEPLOYMENT,) = documents(FOLDER / "kubernetes" / "deployment.yaml")
QUEUE = "tsctl_queue_jobs"


def name_of(path: Path) -> str:
    return path.name


def pods() -> dict[str, dict[str, Any]]:
    """The pods that the manifests describe."""
    return {"runtime": RUNTIME["spec"], "deployment": DEPLOYMENT["spec"]["template"]["spec"]}


def services() -> dict[str, dict[str, Any]]:
    """The services of the compose file."""
    found: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text())["services"]
    return found


def probes(container: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (probe["httpGet"] for name, probe in container.items() if name.endswith("Probe"))


def definitions(path: Path) -> list[Path]:
    """Return the CustomResourceDefinitions for a file; skip the test where no checkout with them is named."""
    group = documents(path)[0]["apiVersion"].partition("/")[0]
    variable = GROUPS.get(group)
    if variable is None:
        return []
    checkout = os.environ.get(variable, "")
    found = sorted(each for each in Path(checkout).glob(f"config/crd/**/{group}_*.yaml") if "minimal" not in each.parts)
    if not checkout or not found:
        pytest.skip(f"{variable} names no checkout with the definitions of {group}")
    kinds = {document["kind"].lower() + "s.yaml" for document in documents(path)}
    return [each for each in found if each.name.partition("_")[2] in kinds]


def validate(path: Path, crds: list[Path]) -> subprocess.CompletedProcess[str]:
    if not PYTHON.exists():
        pytest.skip("`python -m tests.lab deploy-tools` installs kubernetes-validate")
    command = [PYTHON, PROGRAMS / "validate.py", path, *crds]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.heavy
@pytest.mark.parametrize("path", RESOURCES, ids=name_of)
def test_a_manifest_is_valid(path: Path) -> None:
    done = validate(path, definitions(path))

    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "field", "typo"),
    [
        ("kserve/clusterservingruntime.yaml", "protocolVersions:", "protocolVersion:"),
        ("kserve/clusterservingruntime.yaml", "readinessProbe:", "readynessProbe:"),
        ("kubernetes/deployment.yaml", "terminationGracePeriodSeconds:", "terminationGraceSeconds:"),
        ("kubernetes/hpa.yaml", "averageValue:", "avgValue:"),
        ("kubernetes/keda.yaml", "pollingInterval:", "pollInterval:"),
    ],
)
def test_a_typo_in_a_manifest_is_found(tmp_path: Path, name: str, field: str, typo: str) -> None:
    path = FOLDER / name
    crds = definitions(path)
    wrong = tmp_path / path.name
    wrong.write_text(path.read_text().replace(field, typo))
    done = validate(wrong, crds)

    assert done.returncode == 1
    assert typo.removesuffix(":") in done.stdout


@pytest.mark.heavy
def test_kserves_own_runtime_is_valid_by_the_same_rules() -> None:
    path = Path(os.environ.get("KSERVE_CHECKOUT", "")) / "config" / "runtimes" / "kserve-torchserve.yaml"
    if not path.is_file():
        pytest.skip("KSERVE_CHECKOUT names no checkout with the runtime kserve-torchserve")
    done = validate(path, definitions(path))

    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    (theirs,) = documents(path)
    assert RUNTIME["metadata"]["annotations"] == theirs["metadata"]["annotations"]
    assert RUNTIME["spec"]["containers"][0]["args"] == theirs["spec"]["containers"][0]["args"]
    formats = {each["name"]: each for each in RUNTIME["spec"]["supportedModelFormats"]}
    assert formats["pytorch"]["priority"] > theirs["spec"]["supportedModelFormats"][0]["priority"]


@pytest.mark.slow
@pytest.mark.parametrize(("field", "typo", "code"), [("", "", 0), ("read_only:", "readonly:", 1)])
def test_the_compose_file_is_checked(tmp_path: Path, field: str, typo: str, code: int) -> None:
    if not PYTHON.exists():
        pytest.skip("`python -m tests.lab deploy-tools` installs compose-spec")
    copy = tmp_path / "compose.yaml"
    copy.write_text(COMPOSE.read_text().replace(field, typo) if field else COMPOSE.read_text())
    done = subprocess.run([PYTHON, PROGRAMS / "compose.py", copy], capture_output=True, text=True)

    assert done.returncode == code, done.stderr
    assert typo.removesuffix(":") in done.stderr


@pytest.mark.slow
def test_the_deployment_is_a_whole_for_kustomize() -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl")
    done = subprocess.run([kubectl, "kustomize", FOLDER / "kubernetes"], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    kinds = {document["kind"]: document for document in yaml.safe_load_all(done.stdout)}
    assert kinds.keys() == {"Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget"}
    image = kinds["Deployment"]["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == "registry.example.com/tsctl:0.1.0"


@pytest.mark.parametrize("name", ["runtime", "deployment"])
def test_a_container_is_started_with_what_tsctl_knows(name: str) -> None:
    container = pods()[name]["containers"][0]
    known = {setting.variable for setting in SETTINGS}
    program, words = read_words(container["args"])

    assert program is not Program.OTHER
    torchserve.make_context("torchserve", words)  # raises on a flag that does not exist
    said = {each["name"] for each in container["env"] if each["name"].startswith("TSCTL_")}
    # A daemon that does without the extension does not heed its variable.
    text = (FOLDER / "kubernetes/deployment.yaml").read_text()
    assert said - known <= set(re.findall(r"name: (\w+) # of an extension\n", text))
    paths = describe_api()["paths"]
    assert {probe["path"] for probe in probes(container)} <= paths.keys()


@pytest.mark.parametrize("name", ["runtime", "deployment"])
def test_a_container_needs_no_privilege_and_writes_to_tmp_only(name: str) -> None:
    pod = pods()[name]
    container = pod["containers"][0]
    security = pod.get("securityContext", {}) | container["securityContext"]

    assert (security["runAsUser"], security["runAsNonRoot"]) == (1000, True)
    assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
    assert writable == ["/tmp"]


def test_kubernetes_waits_longer_than_the_daemon_drains() -> None:
    pod = DEPLOYMENT["spec"]["template"]["spec"]
    container = pod["containers"][0]
    grace = {each["name"]: each["value"] for each in container["env"]}["TSCTL_GRACE"]
    pause = container["lifecycle"]["preStop"]["exec"]["command"][1]

    assert pod["terminationGracePeriodSeconds"] >= float(pause) + float(grace) + 15
    runtime = {each["name"]: each["value"] for each in RUNTIME["spec"]["containers"][0]["env"]}
    assert float(runtime["TSCTL_GRACE"]) < 30  # KServe leaves Kubernetes' own 30


def test_the_service_has_the_ports_of_the_deployment() -> None:
    (service,) = documents(FOLDER / "kubernetes" / "service.yaml")
    container = DEPLOYMENT["spec"]["template"]["spec"]["containers"][0]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}

    assert {each["targetPort"]: each["port"] for each in service["spec"]["ports"]} == ports
    assert service["spec"]["selector"].items() <= DEPLOYMENT["spec"]["template"]["metadata"]["labels"].items()
    assert DEPLOYMENT["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"] == str(ports["metrics"])


@needs("prometheus")
def test_the_metric_of_the_autoscalers_is_there() -> None:
    assert QUEUE in [row.name for extension in EXTENSIONS for row in extension.metrics]


def test_the_autoscalers_ask_for_the_metric_of_the_queue() -> None:
    (hpa,) = documents(FOLDER / "kubernetes" / "hpa.yaml")
    (keda,) = documents(FOLDER / "kubernetes" / "keda.yaml")
    (adapter,) = documents(FOLDER / "kubernetes" / "prometheus-adapter.yaml")
    (rule,) = adapter["rules"]["custom"]

    assert hpa["spec"]["metrics"][0]["pods"]["metric"]["name"] == rule["name"]["as"] == QUEUE
    assert QUEUE in keda["spec"]["triggers"][0]["metadata"]["query"]
    assert rule["seriesQuery"].startswith(QUEUE)


@pytest.mark.parametrize("protocol", ["v1", "v2", "grpc-v2"])
def test_kserves_placeholders_are_filled(protocol: str) -> None:
    container = start_of(RUNTIME, SERVICE, protocol)

    assert container.environment["TS_SERVICE_ENVELOPE"] == {"v1": "kserve"}.get(protocol, "kservev2")
    assert container.environment["PROTOCOL_VERSION"] == protocol
    assert container.args[-2:] == ["--disable-token-auth", "--enable-model-api"]
    assert not re.search(r"\{\{", " ".join([*container.args, *container.environment.values()]))


def test_a_placeholder_without_a_label_is_filled_as_by_go() -> None:
    assert expand({"env": "{{.Labels.x}} {{ .Name }}"}, {"name": "m"}) == {"env": "<no value> m"}


@needs("prometheus")
@pytest.mark.slow
def test_prometheus_takes_the_configuration_of_compose_with_our_rules(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("`python -m tests.lab system-packages` installs promtool")
    (tmp_path / "tsctl").mkdir()
    rules = subprocess.run([TSCTL, "metrics", "--rules"], capture_output=True, text=True, check=True).stdout
    (tmp_path / "tsctl" / "rules.yml").write_text(rules)
    shutil.copy(FOLDER / "compose" / "prometheus.yml", tmp_path)
    done = subprocess.run([promtool, "check", "config", tmp_path / "prometheus.yml"], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    config = yaml.safe_load((tmp_path / "prometheus.yml").read_text())
    port = services()["tsctl"]["environment"]["TSCTL_METRICS_ADDRESS"].rpartition(":")[2]
    assert config["scrape_configs"][0]["static_configs"] == [{"targets": [f"tsctl:{port}"]}]


def test_compose_publishes_on_this_machine_only_and_mounts_files_that_exist() -> None:
    published = [port for service in services().values() for port in service.get("ports", ())]
    mounted = [volume.partition(":")[0] for service in services().values() for volume in service.get("volumes", ())]
    absent = {each for each in mounted if each.startswith("./") and not (COMPOSE.parent / each).exists()}

    assert all(port.startswith("127.0.0.1:") for port in published)
    assert absent <= {"./model-store"}
