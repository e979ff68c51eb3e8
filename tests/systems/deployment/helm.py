"""Renders the Helm chart, and lets helm judge it."""

import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests import judges
from tests.stack import ROOT

FOLDER = ROOT / "deploy" / "helm"
CHART = FOLDER / "thai-qr-payments"
VALUES = sorted(FOLDER.glob("*.yaml"))
RELEASE = "pay"
KUBERNETES = "1.37.0"
Object = dict[str, Any]


def run(program: Path, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """Skips the test if the program is not installed."""
    judges.require(program)
    return subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=judges.SECONDS,
    )


def render(*values: Path, more: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    """The manifests of a release with these values; the last file wins. more: such as `web.replicas=3`."""
    files = [argument for path in values for argument in ("--values", path)]
    settings = [argument for each in more for argument in ("--set-json", each)]
    return run(judges.HELM, "template", RELEASE, CHART, "--kube-version", KUBERNETES, *files, *settings)


@cache
def manifests(values: Path) -> str:
    done = render(values)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(values: Path) -> list[Object]:
    return [each for each in yaml.safe_load_all(manifests(values)) if each]


def of_kind(values: Path, kind: str) -> dict[str, Object]:
    """By name, without that of the release."""
    return {
        each["metadata"]["name"].removeprefix(f"{RELEASE}-"): each
        for each in objects(values)
        if each["kind"] == kind
    }


def pods(values: Path) -> dict[str, Object]:
    """The specifications of all pods, by the name of their Deployment or Job."""
    made = of_kind(values, "Deployment") | of_kind(values, "Job")
    return {name: each["spec"]["template"]["spec"] for name, each in made.items()}


def containers(values: Path) -> dict[str, Object]:
    """Each pod has one."""
    found = {}
    for name, pod in pods(values).items():
        (found[name],) = pod["containers"]
        assert "initContainers" not in pod
    return found


def variables(container: Object) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"]}
