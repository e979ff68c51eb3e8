"""Fixtures of all tests: two merchants, the sandbox bank, and what makes tests fast and isolated."""

import gc
import hashlib
import hmac
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.db import connection
from django.test import Client, TransactionTestCase, override_settings
from django.test.client import ClientHandler
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis
from psycopg._preparing import PrepareManager
from redis.connection import AbstractConnection
from xdist.scheduler import LoadScopeScheduling

from core import api, clock, decoders, ids, kept_value, money, redis, request_context, security_log, thaiqr
from core.clock import BANGKOK
from core.logs import LogRateLimit
from merchants import services
from merchants.models import Merchant
from merchants.refused_keys import refused_keys
from payments.models import Payment
from tests import concurrency, tables, webhook_receiver
from tests.audit import differences
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
    "core.due_work.RUN_SECONDS",
    "core.redis.CALL_TIMEOUT_SECONDS",
    "idempotency.services.WAIT_SECONDS",
    "idempotency.services.SHORT_WAIT_SECONDS",
    "reconciliation.inquiries.scan.PATIENCE_SECONDS",
    "reconciliation.inquiries.rate_limit.PATIENCE_SECONDS",
    "sandbox.callbacks.CONNECT_SECONDS",
    "sandbox.callbacks.READ_SECONDS",
    "ledger.services.ROLL_UP_SECONDS",
]

SHARED_INSTANCE_FOLDERS = {
    "tests/browser",
    "tests/flows",
    "tests/systems/deployment",
    "tests/systems/devstack",
    "tests/systems/faults",
}

# These take minutes each. They start first, so that no worker waits for the last one. A worker of xdist gets
# another file with a file of one test, so one with more tests follows.
SLOWEST_FIRST = [
    "tests/flows/",
    "tests/systems/deployment/",
    "tests/browser/",
    "tests/systems/chaos/",
    "tests/systems/devstack/",
    "tests/systems/restores/",
    "tests/counts/",
    "tests/systems/failover/",
    "tests/reconciliation/",
    "tests/test_schemathesis.py",
    "tests/console/",
    "tests/state_machine/",
    "tests/operations/",
    "tests/systems/replica/",
    "tests/test_hostile_inputs_raw.py",
]


# For a value of `-m`, what is in each file with tests for it. In files of the last one all tests are slow.
FILES_BY_MARKERS = {
    "slow": re.compile(r"mark\.slow"),
    "alone": re.compile(r"mark\.alone"),
    "not slow": re.compile(r"\A(?!.*^pytestmark = \[?\s*pytest\.mark\.slow\b)", re.MULTILINE | re.DOTALL),
}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files without tests that `make test` asks for. Collecting all takes 6 s of CPU per process."""
    needed = FILES_BY_MARKERS.get(config.getoption("markexpr"))
    if needed is None or not collection_path.match("test_*.py"):
        return None
    return needed.search(collection_path.read_text()) is None or None


class _ByInstance(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Tests of one file, and of one folder where they share an instance, run in one of xdist's workers."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = file.rpartition("/")[0]
        return folder if folder in SHARED_INSTANCE_FOLDERS else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return _ByInstance(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort slow tests, the longest first. Quick tests keep the order of pytest-django."""

    def place(item: pytest.Item) -> int:
        if item.get_closest_marker("slow") is None:
            return 0
        places = [at for at, path in enumerate(SLOWEST_FIRST, 1) if item.nodeid.startswith(path)]
        return places[0] if places else len(SLOWEST_FIRST) + 1

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Exclude tests and modules from garbage collection: they live until the end."""
    gc.collect()
    gc.freeze()


@dataclass
class Shop:
    """A merchant that calls the API with its key.

    codes_made_at: a time in the past, for money that was paid before the test began. Such a code expires as
    if it were made now.
    """

    merchant: Merchant
    secret_key: str
    http: Client
    codes_made_at: datetime | None = None

    def get(self, path: str, **headers: str) -> Any:
        return self.http.get(path, headers=self._headers(headers))

    def delete(self, path: str, **headers: str) -> Any:
        return self.http.delete(path, headers=self._headers(headers))

    def patch(self, path: str, body: Any, **headers: str) -> Any:
        data = body if isinstance(body, bytes | str) else json.dumps(body)
        return self.http.patch(path, data, content_type="application/json", headers=self._headers(headers))

    def post(self, path: str, body: Any = None, *, key: str | None = None, **headers: str) -> Any:
        if key is not None:
            headers["Idempotency-Key"] = key
        data = "" if body is None else body if isinstance(body, bytes | str) else json.dumps(body)
        return self.http.post(path, data, content_type="application/json", headers=self._headers(headers))

    def qr_code(self, **fields: Any) -> dict[str, Any]:
        with time_machine.travel(self.codes_made_at) if self.codes_made_at else nullcontext():
            response = self.post("/Thai/v1/qr-codes", {"amount": 150_000, "currency": "THB"} | fields)
        assert response.status_code == 200, response.content
        made: dict[str, Any] = response.json()
        if self.codes_made_at:
            lasts = timedelta(minutes=fields.get("expiry_minutes", 15))
            Payment.objects.filter(pk=made["payment_id"]).update(expires_at=clock.now() + lasts)
        return made

    def payment(self, payment_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/Thai/v1/payments/{payment_id}").json()
        return found

    def _headers(self, more: dict[str, str]) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret_key}"} | more


def new_client() -> Client:
    return Client(raise_request_exception=False)


def open_shop(name: str, mode: str = "test") -> Shop:
    merchant, secret_key = services.create_merchant(name=name, mode=mode, now=clock.now())
    return Shop(merchant, secret_key, new_client())


@pytest.fixture(autouse=True)
def no_actor() -> None:
    """Forget the actor of the test before."""
    request_context.begin()


@pytest.fixture
def shop(db: None) -> Shop:
    return open_shop("Somtam House")


@pytest.fixture
def other_shop(db: None) -> Shop:
    return open_shop("Larb Palace")


@dataclass
class SandboxBankClient:
    """Sends the signed notifications of the sandbox bank."""

    http: Client

    def notify(self, qr_code: dict[str, Any], **changes: Any) -> Any:
        return self.post(self.notification(qr_code, **changes))

    def notification(self, qr_code: dict[str, Any], **changes: Any) -> dict[str, Any]:
        code = thaiqr.parse(qr_code["qr_data"])
        paid_at: datetime = changes.pop("paid_at", clock.now())
        return {
            "transaction_id": ids.random_text(20),
            "type": "credit",
            "biller_id": code.biller_id,
            "reference1": code.reference1,
            "reference2": code.reference2 or "",
            "reference3": code.reference3 or "",
            "amount": money.baht(changes.pop("satang", qr_code["amount"])),
            "currency": "THB",
            "paid_at": paid_at.astimezone(BANGKOK).isoformat(timespec="milliseconds"),
            "payer_name": "Somchai Jaidee",
            "payer_bank_code": "014",
            "payer_account": "1234567890",
        } | changes

    def post(self, notification: dict[str, Any] | bytes, signature: str | None = None) -> Any:
        body = notification if isinstance(notification, bytes) else json.dumps(notification).encode()
        return self.http.post(
            "/banks/sandbox/notices",
            body,
            content_type="application/json",
            headers={"Sandbox-Bank-Signature": self.sign(body) if signature is None else signature},
        )

    def sign(self, body: bytes) -> str:
        at = str(int(time.time()))
        digest = hmac.new(settings.SANDBOX_BANK_SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256)
        return f"t={at},v1={digest.hexdigest()}"


@pytest.fixture
def bank(db: None) -> SandboxBankClient:
    return SandboxBankClient(new_client())


@pytest.fixture
def endpoint() -> Iterator[webhook_receiver.Receiver]:
    """A server that gets webhooks and answers 200."""
    with webhook_receiver.running_receiver() as listening:
        yield listening


@pytest.fixture
def audit_is_clean(db: None) -> Iterator[None]:
    """Fail the test if the audit finds a difference at its end."""
    yield
    assert not differences()


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_value, "KEPT_SECONDS", 0.0)
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


@pytest.fixture(autouse=True)
def shut_down_threads() -> Iterator[None]:
    yield
    concurrency.shut_down()


@pytest.fixture
def noon() -> datetime:
    return datetime(2026, 11, 21, 5, 0, tzinfo=UTC)


@pytest.fixture(autouse=True, scope="session")
def _own_locks_of_decoders(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The tests run in several processes, which do not wait for each other."""
    decoders.LOCKS = tmp_path_factory.mktemp("locks")
