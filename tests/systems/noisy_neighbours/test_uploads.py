"""Slow uploads with invented session cookies do not delay uploads of staff."""

import socket
import threading
import time
from urllib.parse import urlsplit

import pytest

from tests.flows.staff_browser import StaffBrowser
from tests.stack import Stack
from tests.systems.noisy_neighbours.conftest import Neighbour, check_undisturbed, quantile

pytestmark = [pytest.mark.slow, pytest.mark.alone]

PATH = "/admin/reconciliation/slipcheck/check/"
UPLOADS = 15
STRANGERS = 6


def drip(base_url: str, number: int, stopped: threading.Event) -> None:
    """Start an upload with an invented session, and send a byte every 0.2 s."""
    at = urlsplit(base_url)
    while not stopped.is_set():
        with socket.create_connection((str(at.hostname), int(at.port or 80)), timeout=60) as connection:
            head = (
                f"POST {PATH} HTTP/1.1\r\nHost: {at.netloc}\r\nContent-Type: text/plain\r\n"
                f"Cookie: sessionid={number:032d}\r\nContent-Length: 1000000\r\n\r\n"
            )
            try:
                connection.sendall(head.encode())
                while not stopped.wait(0.2):
                    connection.sendall(b"x")
            except OSError:
                stopped.wait(0.1)


def test_uploads_with_a_forged_session_cookie_do_not_delay_staff_uploads(
    stack: Stack, neighbour: Neighbour
) -> None:
    """With the defect they held all upload slots for 118 s."""
    desk = StaffBrowser(stack.base_url, stack.demo["admin_user"], stack.demo["admin_password"])
    numbers = iter(range(STRANGERS))

    def p95_of_uploads() -> float:
        taken = []
        for _ in range(UPLOADS):
            started = time.perf_counter()
            page = desk.submit(PATH, {"text": "0" * 40})
            taken.append(time.perf_counter() - started)
            assert "slip" in page.lower()
        return quantile(taken, 0.95)

    def drip_until_stopped(stopped: threading.Event) -> None:
        drip(stack.base_url, next(numbers), stopped)

    check_undisturbed(p95_of_uploads, drip_until_stopped, clients=STRANGERS)
    numbers = iter(range(STRANGERS))
    neighbour.is_undisturbed_by(drip_until_stopped, clients=STRANGERS)
