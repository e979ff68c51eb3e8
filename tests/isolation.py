"""Fixtures that no test names: each test starts with an empty service, and a busy machine is no failure."""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import TransactionTestCase, override_settings
from django.test.client import ClientHandler
from hypothesis import HealthCheck, settings as hypothesis
from psycopg._preparing import PrepareManager
from redis.connection import AbstractConnection

from core import request_context
from core.http import api
from core.observing import security_log
from core.observing.logs import LogRateLimit
from core.work import decoders, redis
from merchants.refused_keys import refused_keys
from tests import concurrency, tables
from tests.examples import BY_DEFAULT, examples
from tests.lock_order import LockOrderRecorder

# A slow machine must not fail an example, so there is no deadline.
hypothesis.register_profile(
    "patient", max_examples=examples(BY_DEFAULT), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis.load_profile("patient")

# Time-outs in seconds that are raised to 60 for all tests: a busy machine must not reach them by itself.
TIMEOUT_SETTINGS = [
    "banks.parallel.CALL_SECONDS",
    "banks.oauth.CONNECT_SECONDS",
    "banks.oauth.READ_SECONDS",
    "banks.omise.CONNECT_SECONDS",
    "banks.omise.READ_SECONDS",
    "banks.omise.SEARCH_SECONDS",
    "banks.sandbox.CONNECT_SECONDS",
    "banks.sandbox.READ_SECONDS",
    "banks.sandbox_cards.CONNECT_SECONDS",
    "banks.sandbox_cards.READ_SECONDS",
    "core.work.due_work.RUN_SECONDS",
    "core.work.redis.CALL_TIMEOUT_SECONDS",
    "idempotency.services.WAIT_SECONDS",
    "idempotency.services.SHORT_WAIT_SECONDS",
    "reconciliation.inquiries.scan.PATIENCE_SECONDS",
    "reconciliation.inquiries.rate_limit.PATIENCE_SECONDS",
    "sandbox.callbacks.CONNECT_SECONDS",
    "sandbox.callbacks.READ_SECONDS",
    "ledger.services.ROLL_UP_SECONDS",
]


@pytest.fixture(autouse=True)
def no_actor() -> None:
    """Forget the actor of the test before."""
    request_context.begin()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Raise the time limits of sessions: threads of a race wait for each other's locks."""
    if "TEST_TEMPLATE" in os.environ:
        connection.settings_dict["TEST"]["TEMPLATE"] = os.environ["TEST_TEMPLATE"]
    options = settings.DATABASES["default"]["OPTIONS"]
    options["options"] += " -c lock_timeout=60000 -c idle_in_transaction_session_timeout=120000"


@pytest.fixture(scope="session", autouse=True)
def long_timeouts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for limit in TIMEOUT_SETTINGS:
            patch.setattr(limit, 60.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def fast_table_cleanup() -> Iterator[None]:
    """Empty tables by DELETE. Django uses TRUNCATE, which append-only tables refuse."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda case: tables.delete_all_rows())
        # Django would reconnect after a rollback to restore session settings. Ours come at connect time.
        patch.setattr(TransactionTestCase, "_should_reload_connections", lambda case: False)
        yield


@pytest.fixture(scope="session", autouse=True)
def lasting_prepared_statements() -> Iterator[None]:
    """Keep them after a rollback, which ends most tests. To plan the audit again takes 25 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrepareManager, "clear", lambda manager: False)
        patch.setattr(PrepareManager, "prepared_max", 1000)
        yield


@pytest.fixture(scope="session", autouse=True)
def values_of_the_moment() -> Iterator[None]:
    """Compute `/readyz` and `/metrics` anew for each request."""
    caches = {**settings.CACHES, "process": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    with override_settings(CACHES=caches):
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_middleware() -> Iterator[None]:
    """Build the middleware once, not for each client."""
    handler: Any = ClientHandler()
    handler.load_middleware()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientHandler, "_middleware_chain", staticmethod(handler._middleware_chain))
        yield


@pytest.fixture(scope="session", autouse=True)
def fast_password_hasher() -> Iterator[None]:
    """Hash passwords with MD5: the real hasher takes 0.2 s."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture(scope="session")
def redis_commands() -> Iterator[list[str]]:
    """Record the commands that this process sent to Redis since the last test."""
    sent: list[str] = []
    send: Callable[..., None] = AbstractConnection.send_packed_command

    def recording(connection: AbstractConnection, command: Any, *args: Any, **kwargs: Any) -> None:
        sent.append("command")
        send(connection, command, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AbstractConnection, "send_packed_command", recording)
        yield sent


@pytest.fixture(autouse=True)
def reset_rate_limits(request: pytest.FixtureRequest, redis_commands: list[str]) -> Iterator[None]:
    """Empty Redis and close its circuit breaker after each test that used it. Forget what is limited here."""
    yield
    redis._breaker = redis.RedisBreaker()
    refused_keys.forget()
    # Otherwise the log lines of a test would depend on those of earlier tests in the same second.
    security_log._denied_log_limit = LogRateLimit(security_log.REFUSALS_PER_SECOND)
    api._bad_request_log_limit = LogRateLimit(1)
    # Slow tests start processes, which use Redis too.
    if redis_commands or request.node.get_closest_marker("slow"):
        redis.try_call(lambda client: client.flushdb())
        redis_commands.clear()


@pytest.fixture(scope="session")
def lock_recorder() -> Iterator[LockOrderRecorder]:
    recorder = LockOrderRecorder()
    with recorder.watching():
        yield recorder


@pytest.fixture(autouse=True)
def locks_are_taken_in_order(lock_recorder: LockOrderRecorder) -> Iterator[None]:
    """Fail a test if a transaction takes locks in another order than `tests/lock_order.py` declares."""
    lock_recorder.inversions.clear()
    yield
    assert not lock_recorder.inversions


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """End the connections of races before the database goes."""
    yield
    concurrency.shut_down()


@pytest.fixture(autouse=True, scope="session")
def _own_locks_of_decoders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The tests run in several processes, which do not wait for each other."""
    decoders.LOCKS = tmp_path_factory.mktemp("locks")
