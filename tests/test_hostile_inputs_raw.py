"""The hostile inputs over a real socket against a whole instance."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.examples import some
from tests.hostile_inputs import (
    BASE,
    bytes_of,
    cases,
    expected,
    faults,
    is_raw,
    name_of,
    names_for,
    request_of,
)
from tests.raw_http import RawRequest, Reply, abandon, exchange
from tests.stack import Stack, wait_until
from tests.tables import count_rows

pytestmark = pytest.mark.slow
Case = dict[str, Any]
WHOLE = [case for case in cases(raw=True) if "target" not in case]
# The web server answers malformed HTTP with these, in plain text, and closes the connection.
SERVER_REFUSALS = {400, 414, 431, 501}
ASKED = {"amount": 100, "currency": "THB"}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with Stack.on_shared_server(
        tmp_path_factory.mktemp("bad") / "data", RATE_LIMIT="0", WEBHOOK_PROBE="off"
    ) as running:
        yield running


@pytest.fixture(scope="module")
def cursor(stack: Stack) -> Iterator["psycopg.Cursor[Any]"]:
    """A cursor of the instance's database."""
    with psycopg.connect(stack.env["DATABASE_URL"], autocommit=True) as connection:
        yield connection.cursor()


@pytest.fixture(scope="module")
def names(stack: Stack) -> dict[str, str]:
    made = ask(stack, "POST", "/qr-codes", ASKED).json
    return names_for(stack.secret_key, made["payment_id"], f"127.0.0.1:{stack.port}")


def ask(stack: Stack, method: str, path: str, body: Any = None, **headers: str) -> Reply:
    headers = {"Authorization": f"Bearer {stack.secret_key}", "Content-Type": "application/json"} | headers
    request = RawRequest(method, BASE + path, headers, None if body is None else json.dumps(body).encode())
    (reply,) = exchange(stack.port, request.to_bytes())
    return reply


@pytest.mark.parametrize("case", some(cases(raw=False)) + WHOLE, ids=name_of)
def test_hostile_input_over_socket_gets_clear_error(
    case: Case, stack: Stack, names: dict[str, str], cursor: "psycopg.Cursor[Any]"
) -> None:
    before = count_rows(cursor)
    sent = bytes_of(case, names) if is_raw(case) else request_of(case, names).to_bytes()
    replies = exchange(stack.port, sent)
    assert len(replies) <= 1, "a second request was run"
    for reply in replies:
        assert not faults_of(case, reply, names)
    assert replies or expected(case).or_closed
    if not replies or replies[0].status >= 400:
        assert count_rows(cursor) == before


def faults_of(case: Case, reply: Reply, names: dict[str, str]) -> list[str]:
    """The web server itself refuses broken HTTP in plain text."""
    found = faults(case, reply.status, reply.body, names)
    is_of_server = reply.status in SERVER_REFUSALS and reply.headers.get("content-type") == "text/plain"
    return [fault for fault in found if not (is_of_server and fault.startswith("no envelope"))]


def test_client_that_closes_during_body_stores_nothing(
    stack: Stack, names: dict[str, str], cursor: "psycopg.Cursor[Any]"
) -> None:
    before = count_rows(cursor)
    whole = order(names).to_bytes()
    abandon(stack.port, whole[:-5])
    assert ask(stack, "GET", "/payments").status == 200
    assert count_rows(cursor) == before


def test_request_of_client_that_closes_early_runs_once(
    stack: Stack, names: dict[str, str], cursor: "psycopg.Cursor[Any]"
) -> None:
    before = count_rows(cursor)["payments_payment"]
    abandon(stack.port, order(names).to_bytes())
    wait_until(lambda: count_rows(cursor)["payments_payment"] > before, 60)
    (retry,) = exchange(stack.port, order(names).to_bytes())
    assert (retry.status, retry.headers["idempotent-replayed"]) == (200, "true")
    assert count_rows(cursor)["payments_payment"] == before + 1


def order(names: dict[str, str]) -> RawRequest:
    headers = {"Authorization": f"Bearer {names['$KEY']}", "Content-Type": "application/json"}
    return RawRequest(
        "POST", f"{BASE}/qr-codes", headers | {"Idempotency-Key": "hang-up"}, json.dumps(ASKED).encode()
    )
