"""A shop of WordPress and WooCommerce with the plug-in of this tree, on a MariaDB of its own."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from config.devstack import ports
from tests.stack import ROOT, wait_until
from tests.system_programs import find_program

PLUGIN = ROOT / "clients" / "woocommerce"
SITE = Path(__file__).with_name("site")
PASSWORD = "only-for-tests"
ANSWERS_WITHIN = 60
WORKERS = "4"
"""Of PHP's server: a checkout waits for the service, whose webhook needs another one."""


def unpacked(variable: str) -> Path:
    """The folder that an environment variable names. Skips without it: nothing downloads these programs."""
    folder = os.environ.get(variable)
    if not folder:
        pytest.skip(f"{variable} names no folder: the shop needs WordPress and WooCommerce, unpacked")
    return Path(folder)


@dataclass
class WordPress:
    """A running shop. Tests read and change it by its own functions, as its other extensions do."""

    folder: Path
    url: str

    def php(self, expression: str, *arguments: Any) -> Any:
        """Run PHP inside WordPress, with `$arguments`; return what it returns."""
        given = json.dumps({"code": expression, "arguments": arguments})
        run = [*php_command(), str(SITE / "run.php"), str(self.folder)]
        done = subprocess.run(run, input=given, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.rpartition("\n")[2])

    def order(self, order_id: int) -> dict[str, Any]:
        """What the shop knows of an order."""
        found: dict[str, Any] = self.php("return shown( wc_get_order( $arguments[0] ) );", order_id)
        return found

    def wait_for_status(self, order_id: int, status: str, seconds: float = 60) -> dict[str, Any]:
        wait_until(lambda: bool(self.order(order_id)["status"] == status), seconds)
        return self.order(order_id)

    def wait_for_note(self, order_id: int, text: str, seconds: float = 60) -> dict[str, Any]:
        wait_until(lambda: has_note(self.order(order_id), text), seconds)
        return self.order(order_id)

    @contextmanager
    def extended(self, code: str) -> Iterator[None]:
        """Another extension with this code is active during the block."""
        file = self.folder / "wp-content" / "mu-plugins" / "another.php"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"<?php {code}")
        try:
            yield
        finally:
            file.unlink()

    def follow(self) -> None:
        """Read the feed of events now, as its action does each minute."""
        self.php("do_action( 'thaiqr_follow' );")


def has_note(order: dict[str, Any], text: str) -> bool:
    return any(text in note for note in order["notes"])


def php_command() -> list[str]:
    return [find_program("php", "php-cli"), "-d", "memory_limit=512M", "-d", "display_errors=stderr"]


@contextmanager
def running_database(folder: Path) -> Iterator[Path]:
    """Run MariaDB for the block; yield its socket."""
    server, install = (find_program(name, "mariadb-server") for name in ("mariadbd", "mariadb-install-db"))
    account = ["--user=root"] if os.geteuid() == 0 else []
    data, socket = folder / "mariadb", folder / "mariadb.sock"
    made = [
        install,
        "--no-defaults",
        f"--datadir={data}",
        "--auth-root-authentication-method=normal",
        *account,
    ]
    subprocess.run(made, check=True, capture_output=True, timeout=180)
    options = ["--skip-networking", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"]
    with (folder / "mariadb.log").open("w") as log:
        command = [server, "--no-defaults", f"--datadir={data}", f"--socket={socket}", *options, *account]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until(lambda: socket.exists() or process.poll() is not None, 60)
        assert process.poll() is None, (folder / "mariadb.log").read_text()
        yield socket
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def running_shop(folder: Path) -> Iterator[WordPress]:
    """Install and serve a shop for the block."""
    wordpress, woocommerce = unpacked("WORDPRESS_FOLDER"), unpacked("WOOCOMMERCE_FOLDER")
    site = folder / "site"
    shutil.copytree(wordpress, site, ignore=shutil.ignore_patterns("wp-config.php"))
    plugins = site / "wp-content" / "plugins"
    shutil.copytree(woocommerce, plugins / "woocommerce")
    (plugins / "thai-qr-payments").symlink_to(PLUGIN)
    port = ports.pick()
    url = f"http://127.0.0.1:{port}"
    with running_database(folder) as socket:
        install = [*php_command(), str(SITE / "install.php"), str(site), url, str(socket), PASSWORD]
        done = subprocess.run(install, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        with serving(site, port, folder / "php.log"):
            wait_until(lambda: answers(url), ANSWERS_WITHIN)
            yield WordPress(site, url)


@contextmanager
def serving(site: Path, port: int, log: Path) -> Iterator[None]:
    """Serve a site by PHP's own server for the block."""
    with log.open("w") as lines:
        process = subprocess.Popen(
            [*php_command(), "-S", f"127.0.0.1:{port}", "-t", str(site), str(SITE / "router.php")],
            env=os.environ | {"PHP_CLI_SERVER_WORKERS": WORKERS},
            stdout=lines,
            stderr=lines,
            start_new_session=True,
        )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)  # its workers, too
        process.wait(30)


def answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=60).status_code == 200
    except requests.RequestException:
        return False
