"""The settings that the processes of an instance share, and their file for `manage.py`."""

import os
import secrets
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from config.devstack import StartError
from config.devstack.instance import Instance, data_dir, private, write_private
from config.devstack.ports import LOOPBACK
from core import vault

ENV_FILE = "instance.env"
# Developers receive their first webhooks on the same machine.
LOOPBACK_WEBHOOK_SETTINGS = {"WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128", "WEBHOOK_ALLOW_HTTP": "1"}


def port() -> int:
    """PORT, or 8000. Raises StartError for an invalid port."""
    value = os.environ.get("PORT") or "8000"
    if not value.isdecimal() or not 1 <= int(value) <= 65_535:
        raise StartError(f"PORT={value} is not a port: 1 to 65535.")
    return int(value)


def has_separate_workers() -> bool:
    """Whether each worker has a process: SEPARATE_WORKERS, 0 or 1. Raises StartError for another value."""
    value = os.environ.get("SEPARATE_WORKERS") or "0"
    if value not in {"0", "1"}:
        raise StartError(f"SEPARATE_WORKERS={value} is neither 0 nor 1.")
    return value == "1"


def environment(instance: Instance, databases: Mapping[str, str], redis_url: str) -> dict[str, str]:
    """Return the settings: from the environment, or else those that the instance stores."""
    long_secret = partial(secrets.token_urlsafe, 50)
    settings = {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "BASE_URL": f"http://127.0.0.1:{port()}",
        "ALLOWED_HOSTS": "*",
        "SECRET_KEY": instance.secret("SECRET_KEY", long_secret),
        "IDEMPOTENCY_KEYS": instance.secret("IDEMPOTENCY_KEYS", long_secret),
        "FIELD_ENCRYPTION_KEYS": instance.secret("FIELD_ENCRYPTION_KEYS", vault.new_key),
        "CLOSE_SIGNING_KEY": instance.secret("CLOSE_SIGNING_KEY", vault.new_key),
        "SANDBOX_BANK_SECRET": instance.secret("SANDBOX_BANK_SECRET", lambda: secrets.token_urlsafe(32)),
        "SANDBOX_ACQUIRER_URL": f"http://{LOOPBACK}:{instance.port('acquirer')}",
        "REQUIRE_TWO_FACTOR": "0",
        "ACCESS_LOG": str(private(instance.folder / "access.log")),
        **LOOPBACK_WEBHOOK_SETTINGS,
    }
    value = {name: os.environ[name] for name in settings if name in os.environ}
    own = {"REDIS_URL": redis_url, "PORT": str(port()), "DATA_DIR": str(instance.folder)}
    return {**settings, **value, **databases, **own}


def write_env_file(folder: Path, environ: Mapping[str, str]) -> None:
    """Write the settings where only the owner can read them."""
    write_private(folder / ENV_FILE, "".join(f"{name}={value}\n" for name, value in sorted(environ.items())))


def read_env_file(folder: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (folder / ENV_FILE).read_text().splitlines())


def load_env_file() -> None:
    """Set missing variables to the settings of the instance in DATA_DIR.

    If DATABASE_URL names another database, nothing changes: it belongs to another deployment.
    """
    path = data_dir() / ENV_FILE
    if "DATABASE_URL_FILE" in os.environ:
        return
    if not path.exists():
        if "DATABASE_URL" not in os.environ:
            print(f"There is no instance in {path.parent}: start it with `make run`.", file=sys.stderr)
        return
    known = read_env_file(path.parent)
    if os.environ.get("DATABASE_URL") in (None, known.get("DATABASE_URL")):
        for name, value in known.items():
            os.environ.setdefault(name, value)
