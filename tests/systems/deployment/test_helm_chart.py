"""The Helm chart: helm and Kubernetes accept it, and it keeps the rules of the other deployments."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from config import urls
from config.command_line import parser
from config.env import SECRETS
from config.workers import ALL
from core.work import redis_urls
from tests import judges
from tests.stack import ROOT
from tests.systems.deployment import helm

pytestmark = pytest.mark.slow

SETTINGS = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "settings.md").read_text(), re.M))
SMALL, NATIONAL = helm.FOLDER / "small-shop.yaml", helm.FOLDER / "national-scheme.yaml"
each_values = pytest.mark.parametrize("values", helm.VALUES, ids=lambda path: path.stem)
# Not for the internet: staff have an Ingress of their own, Prometheus and the kubelet call web itself.
INSIDE = {"admin", "readyz", "metrics", "healthz", ""}


def test_there_are_values_for_a_small_shop_and_for_a_national_scheme() -> None:
    assert {SMALL, NATIONAL} == set(helm.VALUES)


@each_values
def test_helm_finds_nothing_wrong(values: Path) -> None:
    done = helm.run(
        judges.HELM, "lint", "--strict", "--kube-version", helm.KUBERNETES, "--values", values, helm.CHART
    )
    assert done.returncode == 0, done.stdout + done.stderr


@each_values
def test_objects_follow_the_schemas_of_kubernetes(values: Path) -> None:
    done = judge(helm.manifests(values))
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("INFO ") == len(done.stdout.splitlines()) == len(helm.objects(values))


def test_wrong_objects_are_refused() -> None:
    wrong = helm.manifests(SMALL).replace("revisionHistoryLimit", "revisionHistoryLmit")
    done = judge(wrong)
    assert done.returncode == 1
    assert "'revisionHistoryLmit' was unexpected" in done.stdout


def judge(manifests: str) -> "subprocess.CompletedProcess[str]":
    judges.require(judges.KUBERNETES_VALIDATE)
    return subprocess.run(
        [sys.executable, "-m", "kubernetes_validate", "--strict", "-k", helm.KUBERNETES, "-"],
        env={"PYTHONPATH": str(judges.KUBERNETES_VALIDATE.parent)},
        input=manifests,
        capture_output=True,
        text=True,
        check=False,
        timeout=judges.SECONDS,
    )


@each_values
def test_each_container_has_no_rights_cannot_write_and_is_limited(values: Path) -> None:
    for name, container in helm.containers(values).items():
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
        }, name
        for kind in ("requests", "limits"):
            assert set(container["resources"][kind]) == {"cpu", "memory"}, name
    for name, pod in helm.pods(values).items():
        security = pod["securityContext"]
        assert (security["runAsNonRoot"], security["runAsUser"]) == (True, 10001), name
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert pod["automountServiceAccountToken"] is False, name


@each_values
def test_each_process_is_probed(values: Path) -> None:
    """Web by HTTP. The others touch a file, which is that of the probe."""
    made = helm.of_kind(values, "Deployment")
    for name, container in helm.containers(values).items():
        if name == "web":
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                assert container[probe]["httpGet"]["path"] == "/healthz"
        elif name in made:
            file = helm.variables(container)["ALIVE_FILE"]
            assert file in " ".join(container["livenessProbe"]["exec"]["command"]), name
            assert file.startswith("/tmp/"), name
        else:  # the job has a deadline
            assert helm.of_kind(values, "Job")[name]["spec"]["activeDeadlineSeconds"] > 0


@each_values
def test_processes_are_those_of_the_program_and_each_queue_is_served(values: Path) -> None:
    served: set[str] = set()
    for name, container in helm.containers(values).items():
        options = parser().parse_args(container["args"])
        assert name == "migrate" or options.run.__name__ != "migrate"
        served |= set(options.queues.queues) if options.run.__name__ == "worker" else set()
    assert served == set(ALL.queues)
    assert {"web", "beat", "migrate"} <= helm.containers(values).keys()


@each_values
def test_settings_are_documented_and_secrets_are_files(values: Path) -> None:
    for name, container in helm.containers(values).items():
        given = helm.variables(container)
        assert {each.removesuffix("_FILE") if each not in SETTINGS else each for each in given} <= SETTINGS
        assert not set(given) & set(SECRETS), name
        for variable, value in given.items():
            if variable.endswith("_FILE") and variable not in SETTINGS:
                assert variable.removesuffix("_FILE") in SECRETS
                folders = {each["mountPath"] for each in container["volumeMounts"]}
                assert str(Path(value).parent) in folders, name
    for made in helm.objects(values):
        assert made["kind"] not in {"ConfigMap", "Secret"}  # settings are variables, the Secret is yours


@pytest.mark.parametrize("name", ["SECRET_KEY", "DATABASE_URL", "OMISE_SECRET_KEY"])
def test_secret_among_the_settings_is_refused_without_its_value(name: str) -> None:
    done = helm.render(SMALL, more=(f'settings.{name}="p4ssw0rd"',))
    assert done.returncode != 0
    assert f"settings.{name} is a secret" in done.stderr
    assert "p4ssw0rd" not in done.stderr


@pytest.mark.parametrize("value", ["5000000", "0.5", "0", '"00:15"', '"a,b"'])
def test_setting_reaches_the_process_as_it_is_written(value: str) -> None:
    done = helm.render(SMALL, more=(f"settings.APPROVAL_ITEM_LIMIT={value}",))
    (web,) = [
        each
        for each in yaml.safe_load_all(done.stdout)
        if each["metadata"]["name"] == "pay-web" and each["kind"] == "Deployment"
    ]
    (container,) = web["spec"]["template"]["spec"]["containers"]
    assert helm.variables(container)["APPROVAL_ITEM_LIMIT"] == value.strip('"')


def test_chart_refuses_every_secret() -> None:
    text = (helm.CHART / "templates" / "_helpers.tpl").read_text()
    (line,) = re.findall(r'range \$name := list ("DATABASE_URL".*?) }}', text)
    assert set(re.findall(r'"(\w+)"', line)) == set(SECRETS)


def test_missing_address_is_refused() -> None:
    done = helm.render(helm.CHART / "values.yaml")
    assert "settings.ALLOWED_HOSTS is missing" in done.stderr or "settings.BASE_URL is missing" in done.stderr


@each_values
def test_only_the_migration_gets_the_owner_of_the_tables(values: Path) -> None:
    for name, pod in helm.pods(values).items():
        secrets = {each["secret"]["secretName"] for each in pod["volumes"] if "secret" in each}
        assert ("thaiqr-owner" in secrets) == (name == "migrate")


@each_values
def test_migration_ends_before_new_processes_start(values: Path) -> None:
    annotations = helm.of_kind(values, "Job")["migrate"]["metadata"]["annotations"]
    assert annotations["helm.sh/hook"] == "pre-install,pre-upgrade"


@each_values
def test_budgets_policies_and_scalers_select_real_pods(values: Path) -> None:
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in workloads(values)]

    def selected(selector: dict[str, dict[str, str]]) -> int:
        return sum(selector["matchLabels"].items() <= each.items() for each in labels)

    deployments = helm.of_kind(values, "Deployment")
    assert helm.of_kind(values, "PodDisruptionBudget").keys() == deployments.keys() - {"sandbox"}
    for budget in helm.of_kind(values, "PodDisruptionBudget").values():
        assert selected(budget["spec"]["selector"]) == 1
    policies = helm.of_kind(values, "NetworkPolicy")
    assert selected(policies["pay"]["spec"]["podSelector"]) == len(labels)
    assert policies["pay"]["spec"]["ingress"] == []
    assert selected(policies["web"]["spec"]["podSelector"]) == 1
    for name, scaler in helm.of_kind(values, "HorizontalPodAutoscaler").items():
        assert "replicas" not in deployments[name]["spec"]  # an upgrade would undo the scaling
        assert scaler["spec"]["minReplicas"] < scaler["spec"]["maxReplicas"]


def workloads(values: Path) -> Iterator[helm.Object]:
    yield from helm.of_kind(values, "Deployment").values()
    yield from helm.of_kind(values, "Job").values()


def test_pods_reach_each_server_that_a_setting_can_name() -> None:
    assert ports_by_namespace(helm.manifests(SMALL)) == {
        "kube-system": {53},
        "databases": {5432, 6432, 6379, redis_urls.SENTINEL_PORT},
        "monitoring": {4318, 9000},
    }


def test_values_name_other_servers_or_none() -> None:
    rule = '[{"to": [{"namespaceSelector": {}}], "ports": [{"port": 15672}]}]'
    done = helm.render(SMALL, more=(f"networkPolicy.backends={rule}", "networkPolicy.collectors=[]"))
    assert ports_by_namespace(done.stdout) == {"kube-system": {53}, "": {15672}}
    assert judge(done.stdout).returncode == 0
    none = helm.render(SMALL, more=("networkPolicy.backends=[]", "networkPolicy.collectors=[]"))
    assert ports_by_namespace(none.stdout) == {"kube-system": {53}}


def test_sandbox_bank_reaches_the_service_by_its_ingress() -> None:
    done = helm.render(SMALL, more=("sandboxBank.enabled=true",))
    assert ports_by_namespace(done.stdout)["ingress-nginx"] == {443, 8443}
    assert judge(done.stdout).returncode == 0


def test_worker_of_the_import_has_the_files_and_web_says_that_it_runs() -> None:
    done = helm.render(SMALL, more=('statementsClaim="files"',))
    assert judge(done.stdout).returncode == 0
    pods = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in yaml.safe_load_all(done.stdout)
        if each and each["kind"] == "Deployment"
    }
    assert {helm.variables(pod["containers"][0])["STATEMENTS_DIR"] for pod in pods.values()} == {
        "/statements"
    }
    claims = {
        name for name, pod in pods.items() if any("persistentVolumeClaim" in each for each in pod["volumes"])
    }
    assert claims == {"pay-default"}
    mounts = pods["pay-default"]["containers"][0]["volumeMounts"]
    assert {"name": "statements", "mountPath": "/statements"} in mounts


def test_pods_reach_the_sandbox_bank_for_test_cards() -> None:
    done = helm.render(SMALL, more=("sandboxBank.enabled=true",))
    found = {
        (each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(done.stdout) if each
    }
    pods = [each["spec"]["template"] for each in found.values() if each["kind"] in ("Deployment", "Job")]
    assert {helm.variables(pod["spec"]["containers"][0])["SANDBOX_ACQUIRER_URL"] for pod in pods} == {
        "http://pay-sandbox:8100"
    }
    service, policy = found["Service", "pay-sandbox"]["spec"], found["NetworkPolicy", "pay-sandbox"]["spec"]
    (sandbox,) = [pod for pod in pods if service["selector"].items() <= pod["metadata"]["labels"].items()]
    assert helm.variables(sandbox["spec"]["containers"][0])["HOST"] == "0.0.0.0"
    assert policy["podSelector"]["matchLabels"] == service["selector"]
    (entry,) = policy["ingress"]
    (way,) = [rule for rule in egress(done.stdout) if "podSelector" in rule["to"][0]]
    assert way["to"][0]["podSelector"]["matchLabels"] == service["selector"]
    assert [each["port"] for each in (*service["ports"], *entry["ports"], *way["ports"])] == [8100] * 3
    callers = entry["from"][0]["podSelector"]["matchLabels"].items()
    assert all(callers <= pod["metadata"]["labels"].items() for pod in pods)


LISTS = ("ingressNamespaces", "internetPorts", "backends", "collectors")


@pytest.mark.parametrize("emptied", [*((name,) for name in LISTS), LISTS, ()], ids=",".join)
@pytest.mark.parametrize("nothing", ["[]", "null"])
def test_empty_list_of_a_policy_opens_nothing(emptied: tuple[str, ...], nothing: str) -> None:
    """A rule without peers or ports would be for all addresses or all ports."""
    more = [f"networkPolicy.{name}={nothing}" for name in emptied]
    done = helm.render(SMALL, more=(*more, "sandboxBank.enabled=true"))
    assert done.returncode == 0, done.stderr
    for policy in policies_in(done.stdout):
        for direction, peers in (("ingress", "from"), ("egress", "to")):
            for rule in policy.get(direction, []):
                assert rule[peers], (policy["podSelector"], rule)
                assert all(each != {} for each in rule[peers])
                assert rule["ports"], (policy["podSelector"], rule)


def test_nobody_reaches_web_without_namespaces_that_may() -> None:
    done = helm.render(SMALL, more=("networkPolicy.ingressNamespaces=[]",))
    (web,) = [
        each
        for each in policies_in(done.stdout)
        if each["podSelector"]["matchLabels"].get("app.kubernetes.io/component") == "web"
    ]
    assert (web["policyTypes"], web["ingress"]) == (["Ingress"], [])
    assert judge(done.stdout).returncode == 0


def policies_in(manifests: str) -> list[Any]:
    objects = [each for each in yaml.safe_load_all(manifests) if each]
    return [each["spec"] for each in objects if each["kind"] == "NetworkPolicy"]


def ports_by_namespace(manifests: str) -> dict[str, set[int]]:
    """To where all pods may connect in the cluster; an empty name stands for all namespaces."""
    found: dict[str, set[int]] = {}
    for rule in egress(manifests):
        for peer in rule["to"]:
            if "namespaceSelector" in peer:
                labels = peer["namespaceSelector"].get("matchLabels", {})
                name = labels.get("kubernetes.io/metadata.name", "")
                found.setdefault(name, set()).update(each["port"] for each in rule["ports"])
    return found


def egress(manifests: str) -> list[Any]:
    (policy,) = [
        each
        for each in yaml.safe_load_all(manifests)
        if each and each["kind"] == "NetworkPolicy" and each["metadata"]["name"] == helm.RELEASE
    ]
    return list(policy["spec"]["egress"])


def test_pods_reach_the_internet_and_no_private_network() -> None:
    blocks = [
        peer["ipBlock"] for rule in egress(helm.manifests(SMALL)) for peer in rule["to"] if "ipBlock" in peer
    ]
    (internet,) = blocks
    assert {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"} <= set(internet["except"])


@each_values
def test_each_public_path_has_a_rule_and_the_console_is_for_staff(values: Path) -> None:
    ingresses = helm.of_kind(values, "Ingress")
    public, staff = (
        {each["path"].strip("/") for each in ingresses[name]["spec"]["rules"][0]["http"]["paths"]}
        for name in ("pay", "staff")
    )
    routes: list[Any] = urls.urlpatterns
    first = {str(each.pattern).lstrip("^").partition("/")[0] for each in routes} | {"static"}
    assert public == first - INSIDE
    assert staff == {"admin"}
    networks = ingresses["staff"]["metadata"]["annotations"][
        "nginx.ingress.kubernetes.io/whitelist-source-range"
    ]
    assert networks.startswith("192.0.2.0/24")


def test_console_has_no_ingress_without_networks_of_staff() -> None:
    done = helm.render(SMALL, more=("ingress.staff.networks=[]",))
    assert "/admin" not in done.stdout


def test_version_of_the_chart_is_that_of_the_service() -> None:
    chart = yaml.safe_load((helm.CHART / "Chart.yaml").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    assert f'version = "{chart["appVersion"]}"' in project
