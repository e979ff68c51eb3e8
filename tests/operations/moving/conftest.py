"""Two instances: the database of the tests, and a second one with other keys."""

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


@pytest.fixture
def other_instance(transactional_db: None) -> Iterator[Instance]:
    """Work in the second instance for a while. It knows the idempotency keys of the first one too."""
    name = f"{connection.settings_dict['NAME']}_other"
    template = connection.settings_dict["TEST"]["TEMPLATE"]
    parameters = connection.get_connection_params() | {"dbname": "postgres"}
    parameters.pop("cursor_factory", None)
    parameters.pop("context", None)

    def run(sql: str) -> None:
        with psycopg.connect(
            **{
                key: parameters[key]
                for key in ("host", "port", "user", "password", "dbname")
                if key in parameters
            },
            autocommit=True,
        ) as server:
            server.execute(sql)

    run(f'DROP DATABASE IF EXISTS "{name}"')
    run(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')

    @contextmanager
    def enter() -> Iterator[None]:
        own = connection.settings_dict["NAME"]
        connection.close()
        connection.settings_dict["NAME"] = name
        keys = ["the key of the other instance " * 2, *settings.IDEMPOTENCY_KEYS]
        try:
            with override_settings(FIELD_ENCRYPTION_KEYS=[OTHER_KEY], IDEMPOTENCY_KEYS=keys):
                yield
        finally:
            connection.close()
            connection.settings_dict["NAME"] = own

    yield enter
    run(f'DROP DATABASE "{name}" WITH (FORCE)')
