"""A database that cannot be reached, for one thread."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from django.db import connection

from tests.webhooks.misbehaving_receivers import unused_port

T = TypeVar("T")


def without_database(action: Callable[[], T]) -> T:
    """Run `action` in a thread that can open no connection. The caller's own connection stays open."""
    connection.ensure_connection()
    with unused_port() as port, pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as other:
        patch.setitem(connection.settings_dict, "PORT", port)
        return other.submit(action).result()
