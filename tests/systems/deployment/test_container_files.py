"""The Dockerfile and the Compose file: pinned, without rights, and in step with the code."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from config.command_line import parser
from config.workers import WORKERS
from tests import judges
from tests.stack import ROOT
from tests.systems.deployment import dockerfiles

STAGES = dockerfiles.stages()
IMAGE = {step.instruction: step.value for step in STAGES[-1].steps}
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DIGEST = "@sha256:[0-9a-f]{64}"
OF_OTHERS = {"debian:12-slim", "postgres:18", "valkey/valkey:9", "caddy:2"}
OURS = {name for name, service in SERVICES.items() if service["image"] == "thai-qr-payments"}


def test_image_has_a_version_and_runs_without_root() -> None:
    assert [stage.base.partition("@")[0] for stage in STAGES] == ["debian:12-slim"] * 2
    assert IMAGE["USER"] == "10001:10001"
    assert "--uid 10001" in IMAGE["RUN"]
    assert json.loads(IMAGE["ENTRYPOINT"]) == ["thaiqr-server"]
    assert parser().parse_args(json.loads(IMAGE["CMD"])).run
    assert "/healthz" in IMAGE["HEALTHCHECK"]


def test_image_installs_only_packages_with_a_hash() -> None:
    steps = [step.value for stage in STAGES for step in stage.steps if step.instruction == "RUN"]
    installs = [command for step in steps for command in step.split("&&") if "pip install" in command]
    assert len(installs) == 3
    for command in installs:
        assert "--require-hashes" in command or ("--no-index" in command and "--no-deps" in command)
    assert all("rm -rf /var/lib/apt/lists/*" in step for step in steps if "apt-get" in step)


def test_build_gets_all_that_the_wheel_is_made_of_and_no_tests() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    folders = {name.split("/")[0] for name in dockerfiles.context()}
    assert folders >= {*wheel["only-include"], "README.md", "deploy", "requirements"}
    assert not folders & {"tests", "bench", "clients", ".git", ".env"}
    assert not [name for name in dockerfiles.context() if ".env" in name]


def test_compose_file_follows_the_specification() -> None:
    judges.require(judges.COMPOSE_SCHEMA)
    jsonschema.Draft202012Validator(json.loads(judges.COMPOSE_SCHEMA.read_text())).validate(COMPOSE)


def test_compose_file_runs_each_kind_of_process() -> None:
    run = {name: parser().parse_args(SERVICES[name]["command"]) for name in OURS}
    assert {options.run.__name__ for options in run.values()} == {
        "web",
        "worker",
        "beat",
        "migrate",
        "manage",
    }
    served = {run[name].queues for name in OURS if run[name].run.__name__ == "worker"}
    assert served == set(WORKERS.values())


def test_sandbox_bank_runs_only_if_its_profile_is_asked_for() -> None:
    """Test payments need it: it calls the service at BASE_URL, whose name is that of the proxy."""
    assert {name for name, service in SERVICES.items() if "profiles" in service} == {"sandbox"}
    assert SERVICES["sandbox"]["command"] == ["manage", "sandbox_bank"]
    assert SERVICES["sandbox"]["profiles"] == ["sandbox"]
    assert SERVICES["caddy"]["networks"]["inside"] == {"aliases": ["${SITE:?}"]}
    assert "inside" in SERVICES["sandbox"]["networks"]


def test_service_finds_the_sandbox_bank_for_test_cards_in_its_container() -> None:
    assert {SERVICES[name]["environment"]["SANDBOX_ACQUIRER_URL"] for name in OURS} == {"http://sandbox:8100"}
    assert SERVICES["sandbox"]["environment"]["HOST"] == "0.0.0.0"


@pytest.mark.parametrize("name", sorted(OURS))
def test_containers_of_the_service_cannot_write_and_have_no_capability(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert not service.get("privileged")
    assert not service.get("ports")


def test_only_the_worker_of_nightly_jobs_may_write_where_statements_are_put() -> None:
    folder = SERVICES["default"]["environment"]["STATEMENTS_DIR"]
    assert {name for name in OURS if "volumes" in SERVICES[name]} == {"default"}
    assert SERVICES["default"]["volumes"] == [f"statements:{folder}"]
    assert "statements" in COMPOSE["volumes"]
    assert f"install -d -o thaiqr -g thaiqr {folder}" in IMAGE["RUN"]


def test_only_the_proxy_is_open_to_the_world() -> None:
    assert {name for name, service in SERVICES.items() if service.get("ports")} == {"caddy"}
    assert COMPOSE["networks"]["inside"]["internal"]
    assert {name for name, service in SERVICES.items() if service.get("networks") == ["inside"]} == {
        "postgres", "valkey",
    }  # fmt: skip
    assert SERVICES["backups"]["network_mode"] == "none"


def test_images_of_others_have_a_major_version() -> None:
    for name in SERVICES.keys() - OURS:
        assert re.fullmatch(rf"[a-z/]+:\d+({DIGEST})?", SERVICES[name]["image"]), name


def test_release_names_each_image_of_others_by_its_digest(tmp_path: Path) -> None:
    """With a program in the place of Docker, because no registry is at hand. A second run takes new ones."""
    files = [shutil.copy(ROOT / "deploy" / name, tmp_path) for name in ("Dockerfile", "compose.yaml")]
    for letter in "ab":
        docker = tmp_path / "docker"
        docker.write_text(f'#!/bin/sh\necho "$4" >> {tmp_path}/asked\necho sha256:{letter * 64}\n')
        docker.chmod(0o700)
        environ = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        images = f"IMAGES={' '.join(map(str, files))}"
        subprocess.run(["make", "digests", images], cwd=ROOT, env=environ, check=True, capture_output=True)
        text = "".join(Path(file).read_text() for file in files)
        named = re.findall(rf"(?:image: |FROM )([a-z/]+:\S+?)({DIGEST})?(?= |$)", text, re.M)
        assert {image for image, _ in named} == OF_OTHERS
        assert {digest for _, digest in named} == {f"@sha256:{letter * 64}"}
    assert set((tmp_path / "asked").read_text().split()) == OF_OTHERS


def test_only_migrate_has_the_password_of_the_owner_of_the_tables() -> None:
    having = {name for name in OURS if "THAIQR_OWNER_PASSWORD" in json.dumps(SERVICES[name])}
    assert having == {"migrate"}
    assert SERVICES["migrate"]["environment"].items() > SERVICES["web"]["environment"].items()


def test_backups_reach_postgresql_by_its_socket_and_have_one_place() -> None:
    """`tests/systems/restores/test_compose_backups.py` runs the program."""
    server, backups = SERVICES["postgres"], SERVICES["backups"]
    assert set(backups["volumes"]) < set(server["volumes"])
    assert backups["image"] == server["image"]
    assert "${BACKUPS:?}:/backups" in backups["volumes"]
    assert backups["environment"].keys() == {"PGUSER"}, "no password"


def test_services_start_after_the_tables_are_up_to_date() -> None:
    for name in OURS - {"migrate"}:
        assert SERVICES[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"
    assert SERVICES["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"
