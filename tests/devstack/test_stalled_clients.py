"""Clients that send half a request and wait must cost others nothing."""

import time

import pytest

from config.asgi import BODY_SECONDS
from tests.devstack.raw_requests import HALF_BODY, HALF_HEADER, ask, opened
from tests.stack import Stack

STALLED = 200


@pytest.mark.slow
@pytest.mark.parametrize("half", [HALF_BODY, HALF_HEADER], ids=["half a body", "half a header"])
def test_stalled_clients_do_not_slow_others(stack: Stack, half: bytes) -> None:
    stalled = [opened(stack.port, half) for _ in range(STALLED)]
    started = time.monotonic()
    statuses = [ask(stack.port, b"GET /healthz").status for _ in range(20)]
    elapsed = time.monotonic() - started
    for connection in stalled:
        connection.close()
    assert statuses == [200] * 20
    assert elapsed < BODY_SECONDS
