"""The settings of the measured processes: those of this deployment, without its secrets and addresses."""

import os
import re
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from config.capacity.database import Addresses
from config.env import FILE_SUFFIX, OWNER_URL, SECRETS, env
from core import vault

ADDRESS = re.compile(r".*_URL|.*_DSN|.*_ENDPOINT")
# The limit of a key is never reached. With the usual burst web takes two requests from Redis at once.
FIXED = {
    "DJANGO_SETTINGS_MODULE": "config.settings",
    "HOST": "127.0.0.1",
    "ALLOWED_HOSTS": "127.0.0.1",
    "PROXY_HOPS": "0",
    "DATABASE_PREPARE": "1",
    "RATE_LIMIT": "1000000",
    "RATE_LIMIT_BURST": "200",
    "WEBHOOK_PROBE": "off",
    "WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
    "WEBHOOK_ALLOW_HTTP": "1",
    "WEBHOOKS_PER_MERCHANT": "20",
    "NIGHTLY_JOBS": "",
    "STATEMENTS_DIR": "",
    "LOG_STREAM": "stderr",
    "SPEEDUP": "1",
    "DEBUG": "0",
}


@dataclass(frozen=True)
class Ports:
    """web: of the measured server. bank: of a second one, where the workers find the sandbox bank."""

    web: int
    bank: int


def environment(databases: Addresses, redis_url: str, ports: Ports) -> dict[str, str]:
    """No process reaches the data, banks or reports of this deployment, or opens its secrets."""
    kept = {name: value for name, value in os.environ.items() if not _is_of_deployment(name)}
    return {
        **kept,
        **FIXED,
        "DATABASE_URL": databases.service,
        OWNER_URL: databases.owner,
        "REDIS_URL": redis_url,
        "PORT": str(ports.web),
        "BASE_URL": f"http://127.0.0.1:{ports.bank}",
        "SECRET_KEY": secrets.token_urlsafe(50),
        "IDEMPOTENCY_KEYS": secrets.token_urlsafe(50),
        "FIELD_ENCRYPTION_KEYS": vault.new_key(),
        "SANDBOX_BANK_SECRET": secrets.token_urlsafe(32),
        "MONITORING_TOKEN": secrets.token_urlsafe(32),
    }


def _is_of_deployment(name: str) -> bool:
    plain = name.removesuffix(FILE_SUFFIX)
    return plain in SECRETS or ADDRESS.fullmatch(plain) is not None


def free_ports() -> Ports:
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        return Ports(one.getsockname()[1], other.getsockname()[1])


def take_over(settings: Mapping[str, str]) -> None:
    """Let this process have exactly these settings. Nothing may have read others yet."""
    os.environ.clear()
    os.environ.update(settings)
    env.ENVIRON = os.environ
