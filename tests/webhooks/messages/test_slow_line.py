"""LINE and mail servers that do not answer delay no webhook of another merchant."""

import threading
from collections.abc import Callable

import pytest

from tests.concurrency import run_concurrently
from tests.conftest import Shop
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.builders import NOW, make_endpoint, publish
from tests.webhooks.messages.destinations import TO_EMAIL, make, states
from tests.webhooks.messages.line_double import Line
from tests.webhooks.messages.mail_server import MailServer
from webhooks.delivery.dispatcher import Dispatcher

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loopback")]


def test_silent_line_and_mail_server_do_not_delay_webhooks(
    shop: Shop,
    other_shop: Shop,
    line: Line,
    mail: MailServer,
    receiver: Receiver,
    new_dispatcher: Callable[[int], Dispatcher],
) -> None:
    release = threading.Event()
    line.failures, mail.is_silent = [Reply(status=500, after=release)] * 3, True
    for _ in range(3):
        make(shop)
        make(shop, TO_EMAIL)
    make_endpoint(other_shop, receiver.url(), latency_ms=20)
    publish(shop, 20)
    publish(other_shop, 20)

    def watch() -> None:
        try:
            line.wait_for(bool)
            receiver.wait_for(lambda requests: len(requests) == 20)
        finally:
            release.set()
            mail.closing.set()

    run_concurrently(lambda: new_dispatcher(16).drain(lambda: NOW), watch)
    assert states().count("succeeded") == 20
