"""The wheel and the sdist contain what runs, and the installed wheel runs."""

import json
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import requests

from tests import judges
from tests.stack import ROOT
from tests.systems.deployment.installation import Installation
from tests.webhook_receiver import Receiver, running_receiver

pytestmark = pytest.mark.slow

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
APPS = PROJECT["tool"]["importlinter"]["root_packages"]
FOLDER = "thai_qr_payments/"
DEVELOPMENT = ("config/devstack/",)
MORE = {"pyproject.toml", "start.py"}
NOT_INSTALLED = {"tests", "bench", "clients", "requirements", "deploy", "manage.py", ".ci"}


def names_in(wheel: Path) -> set[str]:
    """The files of the service in a wheel."""
    with zipfile.ZipFile(wheel) as opened:
        return {name.removeprefix(FOLDER) for name in opened.namelist() if name.startswith(FOLDER)}


def tracked_files() -> set[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(listed.stdout.splitlines())


def test_wheel_has_each_tracked_file_of_the_apps_and_nothing_else(wheel: Path) -> None:
    code = {name for name in tracked_files() if name.startswith(tuple(f"{app}/" for app in APPS))}
    texts = {name for name in tracked_files() if name.startswith(("templates/", "locale/"))}
    expected = {
        name for name in code | texts if not name.startswith(DEVELOPMENT) and not name.endswith(".po")
    }
    found = names_in(wheel)
    assert {name for name in found if not name.startswith("docs/")} == expected | MORE
    assert not NOT_INSTALLED & {name.partition("/")[0] for name in found}


def test_wheel_built_from_the_sdist_has_the_same_files(dist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(next(dist.glob("*.tar.gz"))) as opened:
        opened.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    assert names_in(next(tmp_path.glob("*.whl"))) == names_in(wheel)
    assert not {"tests", "bench", "clients"} & {path.name for path in source.iterdir()}


def test_list_of_packages_is_that_of_the_lock_file_with_versions_and_hashes(dist: Path) -> None:
    (file,) = dist.glob("*.cdx.json")
    assert file.name == f"thai_qr_payments-{PROJECT['project']['version']}.cdx.json"
    found = json.loads(file.read_text())
    assert (found["bomFormat"], found["metadata"]["component"]["name"]) == ("CycloneDX", "thai-qr-payments")
    listed = {(each["name"], each["version"]) for each in found["components"]}
    lock = (ROOT / "requirements" / "production.lock").read_text()
    assert listed == set(re.findall(r"^([\w.-]+)==([^ ;]+)", lock, re.M))
    assert all(each["purl"].startswith("pkg:pypi/") for each in found["components"])
    assert all(each["externalReferences"][0]["hashes"] for each in found["components"])


def test_plugin_for_woocommerce_is_one_folder_that_wordpress_takes(dist: Path) -> None:
    with zipfile.ZipFile(dist / "thai-qr-payments-woocommerce.zip") as opened:
        found = {name for name in opened.namelist() if not name.endswith("/")}
    tracked = {name for name in tracked_files() if name.startswith("clients/woocommerce/")}
    assert found == {name.replace("clients/woocommerce/", "thai-qr-payments/") for name in tracked}


def test_module_for_odoo_is_one_folder_of_its_name(dist: Path) -> None:
    with zipfile.ZipFile(dist / "thai-qr-payments-odoo.zip") as opened:
        found = {name for name in opened.namelist() if not name.endswith("/")}
    tracked = {name for name in tracked_files() if name.startswith("clients/odoo/payment_thai_qr/")}
    assert found == {name.removeprefix("clients/odoo/") for name in tracked}


def test_plugin_for_medusa_holds_its_client(dist: Path) -> None:
    judges.require(judges.TYPESCRIPT)
    manifest = json.loads((ROOT / "clients" / "medusa" / "package.json").read_text())
    with tarfile.open(dist / f"{manifest['name']}-{manifest['version']}.tgz") as opened:
        found = {name.removeprefix("package/") for name in opened.getnames()}
    compiled = {
        name.replace("clients/medusa/", ".medusa/server/").replace(".ts", ".js")
        for name in tracked_files()
        if name.startswith("clients/medusa/src/")
    }
    assert compiled <= found
    client = "node_modules/thai-qr-payments"
    assert {f"{client}/package.json", f"{client}/dist/index.js", f"{client}/cjs/dist/index.js"} <= found
    assert not [name for name in found if name.endswith(".ts") and not name.startswith(client)]


def test_installed_service_takes_payments_and_shows_its_pages(installed: Installation) -> None:
    created = installed.run("manage", "create_merchant", "--name", "Somtam House", "--mode", "test", "--json")
    key = {"Authorization": f"Bearer {json.loads(created.stdout)['secret_key']}"}
    with (
        running_receiver() as collector,
        installed.running("web", **reporting_to(collector)),
        installed.running("worker", **reporting_to(collector)),
        installed.running("beat"),
    ):
        installed.wait_for("/readyz")  # the database has its tables, and a worker serves each queue
        body = {"amount": 150_000, "currency": "THB"}
        code = requests.post(f"{installed.base_url}/v1/qr-codes", json=body, headers=key, timeout=60).json()
        for path, content, expected in (
            (f"/pay/{code['qr_code_id']}?lang=th", "text/html", "สแกน"),
            ("/static/qrcodes/pay.css", "text/css", "{"),
            (f"/v1/qr-codes/{code['qr_code_id']}/card?format=pdf", "application/pdf", "%PDF"),
            ("/admin/login/", "text/html", "/static/console/console.css"),
            ("/static/console/console.css", "text/css", "{"),
            ("/static/admin/css/base.css", "text/css", "{"),
            ("/docs", "text/html", "redoc"),
            ("/guide/integration", "text/html", "<h1"),
            ("/guide/examples/receiver.py", "text/plain", "import"),
            ("/openapi.json", "application/json", '"openapi"'),
        ):
            response = requests.get(f"{installed.base_url}{path}", headers=key, timeout=60)
            assert response.status_code == 200, path
            assert response.headers["Content-Type"].startswith(content), path
            assert expected in response.text, path
        collector.wait_for(lambda found: any(each.path == "/v1/traces" for each in found))
    assert list(installed.home.iterdir()) == []  # no process writes into its folder


def reporting_to(collector: Receiver) -> dict[str, str]:
    """Traces and error reports. The lock file has the packages that they need."""
    sentry = f"http://key@127.0.0.1:{collector.port}/1"
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url(""), "SENTRY_DSN": sentry}


def test_help_names_each_command_and_its_program(installed: Installation) -> None:
    shown = installed.run("--help").stdout
    for name, program in {
        "web": "gunicorn", "worker": "Celery worker", "beat": "Celery beat", "migrate": "migrate",
        "manage": "manage.py",
    }.items():  # fmt: skip
        assert name in shown
        assert program in shown
    assert "createsuperuser" in installed.run("manage", "help").stdout
    assert installed.run("--version").stdout.strip() == f"thaiqr-server {PROJECT['project']['version']}"


def test_unknown_queue_is_refused_with_the_names_of_all(installed: Installation) -> None:
    done = installed.run("worker", "--queues", "mail", is_checked=False)
    assert done.returncode == 2
    assert "'mail' is unknown. Queues: webhooks, banks, default, cards" in done.stderr


def test_migrate_without_a_database_says_so(installed: Installation) -> None:
    done = installed.run("migrate", is_checked=False, DATABASE_URL="postgresql://u:p4ssw0rd@127.0.0.1:1/qr")
    assert done.returncode == 1
    assert "The database does not answer" in done.stderr
    assert "p4ssw0rd" not in done.stderr


def test_env_file_gives_settings_and_the_environment_wins(installed: Installation, tmp_path: Path) -> None:
    file = tmp_path / "settings.env"
    file.write_text('# the database\n\nLOG_LEVEL="nonsense"\nRATE_LIMIT=many\n')
    done = installed.run("--env-file", str(file), "web", is_checked=False, RATE_LIMIT="5")
    assert "LOG_LEVEL is unknown" in done.stderr
    assert "RATE_LIMIT" not in done.stderr


@pytest.mark.parametrize(
    ("content", "reason"),
    [("SECRET_KEY = hunter2hunter2\n", "line 1 is not NAME=value"), (None, "No such file or directory")],
)
def test_unreadable_env_file_is_refused_without_showing_values(
    installed: Installation, tmp_path: Path, content: str | None, reason: str
) -> None:
    file = tmp_path / "settings.env"
    if content is not None:
        file.write_text(content)
    done = installed.run("--env-file", str(file), "web", is_checked=False)
    assert done.returncode == 1
    assert f"{file} cannot be read: {reason}" in done.stderr
    assert "hunter2" not in done.stderr
