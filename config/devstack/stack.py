"""Starts an instance: servers, tables, demo merchant, services."""

import http.client
import json
import os
import secrets
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import Any

from django.conf import settings as django_settings

from config.devstack import StartError
from config.devstack.environment import environment, has_separate_workers, port, read_env_file, write_env_file
from config.devstack.instance import STATE_FILE, Instance, data_dir, private
from config.devstack.ports import LOOPBACK
from config.devstack.postgres import Cluster, make_service_role
from config.devstack.programs import Program, import_application, migrate, seed, services
from config.devstack.supervisor import Supervisor, print_text
from config.devstack.valkey import Valkey
from config.env import OWNER_URL

SAMPLE = {"amount": 10000, "currency": "THB", "reference": "order-1"}

TEXT = """
  Thai QR Payments is running.

  API        {url}/Thai/v1    (reference: {url}/docs)
  Test key   {secret_key}
  Admin      {url}/admin    user {admin_user}, password {admin_password}
  Shop       {url}/shop    user {owner_user}, the same password
  Bank       {url}/sandbox/bank    plays the customer's bank
  Guide      {url}/guide    quickstarts, recipes, errors

  A QR code for 100.00 baht:

curl -sS -X POST {url}/Thai/v1/qr-codes \\
  -H "Authorization: Bearer {secret_key}" \\
  -H "Content-Type: application/json" \\
  -d '{sample}'

  Ctrl-C stops everything; the data stays in {folder}, where access.log has the requests.
  `make key` shows this again.
"""


def banner(url: str, folder: str, demo: Mapping[str, str]) -> str:
    return TEXT.format(url=url, folder=folder, sample=json.dumps(SAMPLE), **demo)


def show_again() -> str:
    """Return the banner of the instance in DATA_DIR. Raises StartError if it has not run yet."""
    folder = data_dir()
    try:
        demo = json.loads((folder / STATE_FILE).read_text())["demo"]
        return banner(read_env_file(folder)["BASE_URL"], str(folder), demo)
    except (OSError, KeyError):
        raise StartError(f"No instance has run in {folder} yet: start it with `make run`.") from None


# Of web, workers and commands; of `migrate`.
DATABASE_SETTINGS = ("DATABASE_URL", OWNER_URL)
SERVER_SECONDS = 30.0
READY_SECONDS = 60.0
# The most sessions: web and worker threads, tools, and room for a second web server.
POSTGRES_OPTIONS = ("-c", "max_connections=200")


class Stack:
    """One instance under a supervisor."""

    def __init__(self, instance: Instance, supervisor: Supervisor) -> None:
        self.instance = instance
        self.supervisor = supervisor

    def start(self) -> None:
        """Start everything and say how to use it. Raises StartError."""
        # Of the service, and of the owner if that is another.
        given = {name: os.environ[name] for name in DATABASE_SETTINGS if os.environ.get(name)}
        databases, redis_url = given or self._postgres(), os.environ.get("REDIS_URL") or self._valkey()
        environ = environment(self.instance, databases, redis_url)
        write_env_file(self.instance.folder, environ)
        import_application(environ)
        self.supervisor.run(Program("migrate", target=migrate))
        demo = self._demo()
        django_settings.SAMPLE_KEY = demo["secret_key"]  # of the services, which are copies of this process
        for program in services(has_separate_workers()):
            self.supervisor.keep(program)
        self.supervisor.wait_until(_is_ready, READY_SECONDS, "The service")
        print_text(banner(environ["BASE_URL"], str(self.instance.folder), demo))

    def _postgres(self) -> dict[str, str]:
        self.instance.check_room()
        names = ("postgres_password", "postgres_service_password")
        owner, service = (self.instance.secret(name, secrets.token_hex) for name in names)
        port = self.instance.port("postgres")
        cluster = Cluster(self.instance.folder, port, owner, POSTGRES_OPTIONS, service)
        self.supervisor.keep(cluster.prepare())
        self.supervisor.wait_until(cluster.is_ready, SERVER_SECONDS, "PostgreSQL")
        make_service_role(cluster.url, service)
        return dict(zip(DATABASE_SETTINGS, (cluster.service_url, cluster.url), strict=True))

    def _valkey(self) -> str:
        password = self.instance.secret("valkey_password", secrets.token_hex)
        valkey = Valkey(self.instance.folder, self.instance.port("valkey"), password)
        self.supervisor.keep(valkey.prepare())
        self.supervisor.wait_until(valkey.is_ready, SERVER_SECONDS, "Valkey")
        return valkey.url

    def _demo(self) -> dict[str, str]:
        """The demo merchant and staff user of this database, made on the first start."""
        database = sha256(os.environ.get("DATABASE_URL", "own").encode()).hexdigest()[:16]
        demo: dict[str, Any] = self.instance.state.get("demo", {})
        if demo.get("database") != database:
            password = self.instance.secret("admin_password", lambda: secrets.token_urlsafe(15))
            secrets_file = private(self.instance.folder / "demo.json")
            self.supervisor.run(Program("seed", target=partial(seed, password, secrets_file)))
            demo = {**json.loads(secrets_file.read_text()), "database": database}
            self.instance.remember("demo", demo)
            secrets_file.unlink()
        return demo


def _is_ready() -> bool:
    """Whether the web server, the database and the workers of all queues answer."""
    connection = http.client.HTTPConnection(os.environ.get("HOST", LOOPBACK), port(), timeout=5)
    try:
        token = os.environ.get("MONITORING_TOKEN", "")
        connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()
