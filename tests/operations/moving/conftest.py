"""Two instances: the database of the tests, and a second one with keys of its own."""

import base64
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.test import override_settings

Instance = Callable[[], AbstractContextManager[None]]
OTHER_KEY = base64.urlsafe_b64encode(b"o" * 32).decode()
LOGIN = ("host", "port", "user", "password")


@pytest.fixture
def other_instance(transactional_db: None) -> Iterator[Instance]:
    """Work in the second instance for a while. It knows the idempotency keys of the first one too."""
    own = connection.settings_dict["NAME"]
    other, template = f"{own}_other", connection.settings_dict["TEST"]["TEMPLATE"]
    found = {name: each for name, each in connection.get_connection_params().items() if name in LOGIN}
    with psycopg.connect(**found, dbname="postgres", autocommit=True) as server:
        server.execute(f'DROP DATABASE IF EXISTS "{other}"')
        server.execute(f'CREATE DATABASE "{other}" TEMPLATE "{template}"')

        @contextmanager
        def enter() -> Iterator[None]:
            connection.close()
            connection.settings_dict["NAME"] = other
            keys = ["of the other instance", *settings.IDEMPOTENCY_KEYS]
            try:
                with override_settings(FIELD_ENCRYPTION_KEYS=[OTHER_KEY], IDEMPOTENCY_KEYS=keys):
                    yield
            finally:
                connection.close()
                connection.settings_dict["NAME"] = own

        yield enter
        server.execute(f'DROP DATABASE "{other}" WITH (FORCE)')
