"""A shop of Odoo with the module of this tree, on a database of the tests."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests

from config.devstack import ports
from tests import database_template
from tests.stack import ROOT, wait_until

ADDONS = ROOT / "clients" / "odoo"
SETUP = Path(__file__).with_name("site") / "setup.py"
PASSWORD = "admin"
STARTS_WITHIN = 180


def odoo_program() -> list[str]:
    """Skips without Odoo: nothing downloads it."""
    python, folder = os.environ.get("ODOO_PYTHON"), os.environ.get("ODOO_FOLDER")
    if not python or not folder:
        pytest.skip("ODOO_FOLDER and ODOO_PYTHON name no Odoo (clients/odoo/README.md)")
    return [python, str(Path(folder) / "odoo-bin")]


class RefusedError(Exception):
    """The shop refuses a request."""


def json_rpc(session: requests.Session, url: str, parameters: dict[str, Any]) -> Any:
    body = {"jsonrpc": "2.0", "method": "call", "params": parameters}
    answer = session.post(url, json=body, timeout=120).json()
    if "error" in answer:
        raise RefusedError(answer["error"]["data"]["message"])
    return answer.get("result")


@dataclass
class Form:
    """What the browser of a customer sends to the payment page."""

    url: str
    fields: dict[str, str]


@dataclass
class Odoo:
    """A running shop, and the ids of what it has. Tests use it as browsers do."""

    folder: Path
    url: str
    ids: dict[str, int]
    session: requests.Session = field(default_factory=requests.Session)

    def log_in(self) -> None:
        given = {"db": self.folder.name, "login": "admin", "password": PASSWORD}
        json_rpc(self.session, f"{self.url}/web/session/authenticate", given)

    def call(self, model: str, method: str, *arguments: Any, **options: Any) -> Any:
        """Call a method as the page of a member of staff does."""
        given = {"model": model, "method": method, "args": arguments, "kwargs": options}
        return json_rpc(self.session, f"{self.url}/web/dataset/call_kw/{model}/{method}", given)

    def read(self, model: str, row_id: int, *names: str) -> dict[str, Any]:
        (row,) = self.call(model, "read", [row_id], list(names))
        found: dict[str, Any] = row
        return found

    def run_cron(self, name: str) -> None:
        """Run a scheduled action now, or as soon as Odoo does not run it by itself."""

        def runs() -> bool:
            try:
                self.call("ir.cron", "method_direct_trigger", [self.ids[name]])
            except RefusedError as error:
                if "currently being executed" not in str(error):
                    raise
                return False
            return True

        wait_until(runs, 60)

    @property
    def log(self) -> str:
        return (self.folder / "odoo.log").read_text()


def form_of(html: str) -> Form:
    """The form that sends the customer to the payment page."""
    (action,) = re.findall(r'<form[^>]* action="([^"]+)"', html)
    fields = dict(re.findall(r'name="(\w+)"[^>]* value="([^"]*)"', html))
    return Form(unescape(action), {name: unescape(value) for name, value in fields.items()})


@contextmanager
def running_shop(folder: Path) -> Iterator[Odoo]:
    """Install and serve a shop for the block."""
    port = ports.pick()
    name, url = f"odoo_{port}", f"http://127.0.0.1:{port}"
    database = urlsplit(database_template.new_database(name, template="template1"))
    folder = folder / name
    folder.mkdir()
    program = odoo_program()
    core = Path(program[1]).parent
    settings = folder / "odoo.conf"
    settings.write_text(
        f"""[options]
db_host = {database.hostname}
db_port = {database.port}
db_user = {database.username}
db_password = {database.password}
addons_path = {core / "addons"},{core / "odoo" / "addons"},{ADDONS}
data_dir = {folder / "data"}
http_interface = 127.0.0.1
http_port = {port}
without_demo = all
max_cron_threads = 1
log_level = warn
"""
    )
    shared = ["-c", str(settings), "-d", name]
    modules = ["-i", "sale,payment_thai_qr", "--stop-after-init"]
    run([*program, *shared, *modules])
    script = SETUP.read_text().replace("URL)", f'"{url}")')
    printed = run([*program, "shell", *shared, "--no-http"], script)
    shop = Odoo(folder, url, json.loads(printed.partition("made ")[2].splitlines()[0]))
    with (folder / "odoo.log").open("w") as log:
        process = subprocess.Popen([*program, *shared, "--log-level", "info"], stdout=log, stderr=log)
    try:
        wait_until(lambda: answers(url) or process.poll() is not None, STARTS_WITHIN)
        assert process.poll() is None, shop.log
        shop.log_in()
        yield shop
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()


def run(command: list[str], given: str = "") -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " ERROR " not in done.stderr, done.stderr
    return done.stdout


def answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/web/health", timeout=10).status_code == 200
    except requests.RequestException:
        return False
