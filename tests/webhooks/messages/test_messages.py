"""Events become texts for people, in a LINE chat or an email, on the engine of the webhooks."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from django.db import IntegrityError, transaction
from pytest_django import Settings

from core import ids, vault
from tests.conftest import Shop
from tests.sqlstates import CHECK_VIOLATION, sqlstate
from tests.webhook_receiver import ReceiverConnection, Reply
from tests.webhooks.builders import NOW, claim, publish
from tests.webhooks.messages.destinations import MINUTE, TO_EMAIL, drain, errors, make, states
from tests.webhooks.messages.line_double import BLOCKED, CHAT, Line, refusal
from tests.webhooks.messages.mail_server import MailServer
from webhooks import endpoints, redelivery
from webhooks.delivery import attempt_log, dispatcher, metrics, queue
from webhooks.delivery.queue import EVENTS_PER_MESSAGE
from webhooks.http import event_loop
from webhooks.messages import texts
from webhooks.models import (
    DESTINATION_PING,
    Delivery,
    DeliveryAttempt,
    DeliveryLease,
    DisabledReason,
    Endpoint,
    EndpointAction,
    EndpointHealth,
    EndpointType,
    EventType,
    StaffEventType,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]
DATA: dict[str, Any] = {"amount": 150_000, "reference": "INV-2026-0042", "qr_code_id": "qr_1"}


def test_line_message_says_amount_end_of_reference_and_time(
    shop: Shop, line: Line, settings: Settings
) -> None:
    settings.BASE_URL = "https://pay.example"
    make(shop)
    publish(shop, **DATA)
    assert drain() == 1
    (request,) = line.requests
    assert request.json["to"] == CHAT
    name = f"{shop.merchant.name} (test)"
    assert line.texts == [
        f"{name}\nชำระแล้ว ฿1,500.00, อ้างอิง …0042, 21 พ.ย. 2569 10:04 น.\nhttps://pay.example/pay/qr_1"
    ]
    assert (states(), errors()) == (["succeeded"], [""])
    assert EndpointHealth.objects.get().verified_at == NOW


def test_email_is_sent_by_the_mail_server_in_english(shop: Shop, mail: MailServer) -> None:
    make(shop, TO_EMAIL, language="en")
    publish(shop, **DATA)
    assert (drain(), states()) == (1, ["succeeded"])
    (message,) = mail.mails
    assert message["subject"] == f"{shop.merchant.name} (test): Paid ฿1,500.00"
    assert (message["from"], message["to"]) == ("pay@operator.example", "owner@shop.example")
    assert message["message-id"] == f"<{Delivery.objects.get().id}@operator.example>"
    assert "Paid ฿1,500.00, reference …0042, 21 Nov 2026 10:04" in message.get_content()


def test_events_of_a_minute_are_one_message_and_each_has_its_attempt(shop: Shop, line: Line) -> None:
    make(shop, language="en")
    publish(shop, **DATA)
    drain()
    publish(shop, 25, at=NOW + MINUTE / 2, **DATA)
    assert (drain(NOW + MINUTE / 2), len(line.texts)) == (0, 1)
    assert (drain(NOW + MINUTE), len(line.texts)) == (1, 2)
    assert line.texts[1].count("Paid ฿1,500.00") == 10
    assert line.texts[1].endswith("\nand 15 more events")
    assert states() == ["succeeded"] * 26
    assert DeliveryAttempt.objects.count() == 26


def test_message_ends_only_the_events_that_it_tells_of(shop: Shop, line: Line) -> None:
    make(shop)
    publish(shop, EVENTS_PER_MESSAGE + 1)
    drain()
    assert states() == ["pending"] + ["succeeded"] * EVENTS_PER_MESSAGE
    drain(NOW + MINUTE)
    assert (states().count("pending"), len(line.texts)) == (0, 2)


QUIET = [
    ("22:00-07:00", "14:59", True),  # of UTC
    ("22:00-07:00", "15:00", False),
    ("22:00-07:00", "23:59", False),
    ("22:00-07:00", "00:00", True),
    ("03:00-10:30", "03:29", False),
    ("03:00-10:30", "03:30", True),
    ("00:00-23:59", "16:59", True),
    ("00:00-23:59", "17:00", False),
]


@pytest.mark.parametrize(("hours", "time", "is_sent"), QUIET)
def test_quiet_hours_of_bangkok_hold_messages_back(
    shop: Shop, line: Line, hours: str, time: str, is_sent: bool
) -> None:
    make(shop, quiet_hours=hours)
    hour, minute = map(int, time.split(":"))
    now = datetime(2026, 11, 22, hour, minute, tzinfo=UTC)
    publish(shop, at=now)
    assert drain(now) == is_sent
    backlog = metrics.backlog(now)
    assert (backlog.due, backlog.paused, metrics.oldest_due_seconds(now + MINUTE)) == (0, 1 - is_sent, 0)


def test_events_of_quiet_hours_are_one_message_at_their_end(shop: Shop, line: Line) -> None:
    make(shop, quiet_hours="22:00-07:00")
    night = datetime(2026, 11, 21, 18, tzinfo=UTC)  # 1:00 in Bangkok
    for number in range(5):
        publish(shop, at=night + number * MINUTE)
        assert drain(night + number * MINUTE) == 0
    assert drain(datetime(2026, 11, 22, 0, 0, tzinfo=UTC)) == len(line.texts) == 1
    assert states() == ["succeeded"] * 5


def test_test_message_is_sent_in_quiet_hours_but_once_a_minute(shop: Shop, line: Line) -> None:
    destination = make(shop, quiet_hours="00:00-23:59")
    for _ in range(3):
        redelivery.test(destination, now=NOW)
    assert [drain(NOW), drain(NOW + MINUTE / 2), drain(NOW + MINUTE)] == [1, 0, 1]
    assert line.texts[0].startswith(f"{shop.merchant.name} (test)\nข้อความทดสอบ")


def test_each_event_has_words_in_both_languages() -> None:
    for event_type in [*EventType, *StaffEventType, DESTINATION_PING]:
        body = orjson.dumps({"event": event_type, "data": {}, "timestamp": "2026-11-21T03:04:05.123Z"})
        thai, english = (
            texts.write([body], more=0, sender="Shop", language=language).subject for language in ("th", "en")
        )
        assert thai != english, event_type
        assert any("ก" <= each <= "๛" for each in thai), event_type


FAILURES = [
    (refusal(400, "The request body has 1 error(s)"), "http_4xx"),
    (refusal(401, "Authentication failed."), "http_4xx"),
    (refusal(403, "Not authorized"), "http_4xx"),
    (refusal(429, "You have reached your monthly limit.", **{"Retry-After": "8"}), "http_4xx"),
    (refusal(500, "Internal server error"), "http_5xx"),
    (Reply(closes=True), "reset"),
]


@pytest.mark.parametrize(("failure", "error"), FAILURES)
def test_refused_line_message_is_sent_again_with_the_same_retry_key(
    shop: Shop, line: Line, failure: Reply, error: str
) -> None:
    make(shop)
    publish(shop)
    line.failures.append(failure)
    drain()
    assert (errors(), states()) == ([error], ["pending"])
    drain(NOW + MINUTE)
    assert (errors(), states(), len(line.texts)) == ([error, ""], ["succeeded"], 1)
    first, second = (each.headers["x-line-retry-key"] for each in line.requests)
    assert first == second


def test_retry_after_of_line_is_respected(shop: Shop, line: Line) -> None:
    make(shop)
    publish(shop)
    line.failures.append(refusal(429, "slow down", **{"Retry-After": "3600"}))
    drain()
    assert Delivery.objects.get().due_at > NOW + timedelta(seconds=7)  # twice the usual wait at most


def test_lost_answer_of_line_sends_no_second_message(shop: Shop, line: Line) -> None:
    """The first attempt arrived and its answer was lost. What came meanwhile waits for the next message."""
    make(shop)
    publish(shop)
    line.failures.append(accept_and_close(line))
    drain()
    publish(shop, at=NOW + MINUTE / 2)
    drain(NOW + MINUTE)
    assert (errors(), states()) == (["reset", ""], ["pending", "succeeded"])
    drain(NOW + 2 * MINUTE)
    assert (len(line.texts), states()) == (2, ["succeeded"] * 2)


def accept_and_close(line: Line) -> Callable[[ReceiverConnection], None]:
    """LINE takes the message, and its answer is lost."""

    def reply(connection: ReceiverConnection) -> None:
        line.accept(line.requests[-1])
        Reply(closes=True)(connection)

    return reply


def test_lost_answer_of_line_sends_no_event_of_the_message_again(shop: Shop, line: Line) -> None:
    make(shop, language="en")
    publish(shop, 25, **DATA)
    line.failures.append(accept_and_close(line))
    drain()
    assert (states(), errors()) == (["pending"] * 25, ["reset"] * 25)
    publish(shop, at=NOW + MINUTE / 2)
    for minutes in range(1, 4):
        drain(NOW + minutes * MINUTE)
    assert (states(), len(line.texts)) == (["succeeded"] * 26, 2)
    assert "more event" not in line.texts[1]


def test_killed_worker_sends_no_event_of_its_message_again(shop: Shop, line: Line) -> None:
    make(shop)
    publish(shop, 600)
    (lease,) = claim()
    event_loop.run(dispatcher.post_delivery(lease, lambda: NOW))
    assert len(line.texts) == 1
    DeliveryLease.objects.update(lease_until=NOW)
    assert queue.reclaim_expired(now=NOW) == 600
    assert set(errors()) == {"worker_lost"}
    publish(shop, at=NOW + MINUTE / 2)
    for minutes in range(1, 4):
        drain(NOW + minutes * MINUTE)
    assert (states(), len(line.texts)) == (["succeeded"] * 601, 2)


def test_failed_message_of_many_events_waits_for_its_retry(shop: Shop, line: Line) -> None:
    make(shop)
    publish(shop, 5)
    line.failures += [refusal(429, "monthly limit")] * 2
    for minutes in range(4):  # the third attempt is due after 5 minutes
        drain(NOW + minutes * MINUTE)
    assert (len(line.requests), states()) == (2, ["pending"] * 5)
    drain(NOW + 9 * MINUTE)
    assert (len(line.texts), states()) == (1, ["succeeded"] * 5)


def test_disabled_destination_holds_nothing_that_its_last_message_told_of(shop: Shop, line: Line) -> None:
    destination = make(shop)
    publish(shop, 3)
    (lease,) = claim()
    endpoints.disable(endpoint_id=destination.id, reason=DisabledReason.STAFF, now=NOW)
    attempt_log.record([event_loop.run(dispatcher.post_delivery(lease, lambda: NOW))])
    endpoints.sweep_inactive(now=NOW)
    assert states() == ["succeeded"] * 3


def test_answer_that_is_not_smtp_has_no_status(shop: Shop, mail: MailServer) -> None:
    make(shop, TO_EMAIL)
    publish(shop)
    mail.greeting = b"hello\r\n"
    drain()
    assert errors() == ["protocol"]
    assert DeliveryAttempt.objects.get().status is None


def test_new_destination_to_the_same_address_waits_for_the_minute(shop: Shop, line: Line) -> None:
    sent = []
    for seconds in (0, 20, 61):
        destination, now = make(shop), NOW + timedelta(seconds=seconds)
        redelivery.test(destination, now=now)
        sent.append(drain(now))
        endpoints.delete(destination, now=now)
    assert sent == [1, 0, 1]


def test_deleted_destination_forgets_whom_it_reached_and_keeps_its_deliveries(
    shop: Shop, line: Line, mail: MailServer
) -> None:
    made = [make(shop), make(shop, TO_EMAIL)]
    publish(shop)
    mail.refuses = f"550 <{TO_EMAIL['to']}> is unknown"
    drain()
    for destination in made:
        endpoints.delete(destination, now=NOW)
        destination.refresh_from_db()
        assert (destination.recipient, destination.secret_sealed) == ("", "")
    rows = (Delivery.objects, DeliveryAttempt.objects, EndpointAction.objects, Endpoint.objects)
    stored = str([list(each.values()) for each in rows])
    assert "550 <***> is unknown" in stored
    assert CHAT not in stored
    assert "owner@shop.example" not in stored
    assert states() == ["failed", "succeeded"]


@pytest.mark.parametrize(
    "change",
    [
        "deleted_at = now()",
        "recipient = ''",
        "secret_sealed = 'sealed:x', deleted_at = now(), recipient = ''",
    ],
)
def test_only_a_deleted_destination_reaches_nobody(shop: Shop, mail: MailServer, change: str) -> None:
    make(shop, TO_EMAIL)
    assert sqlstate(f"UPDATE webhooks_endpoint SET {change}") == CHECK_VIOLATION


def test_refused_recipient_and_silent_mail_server_are_failures(
    shop: Shop, mail: MailServer, settings: Settings
) -> None:
    make(shop, TO_EMAIL)
    publish(shop)
    mail.refuses = "550 no such user"
    drain()
    settings.WEBHOOK_TIMEOUT_SECONDS, mail.is_silent = 0.2, True
    drain(NOW + MINUTE)
    assert errors() == ["smtp_5xx", "timeout"]
    assert DeliveryAttempt.objects.earliest("id").excerpt == "550 no such user"


def test_missing_mail_server_is_a_failure(shop: Shop, mail: MailServer, settings: Settings) -> None:
    make(shop, TO_EMAIL)
    publish(shop)
    settings.EMAIL_PORT = 1
    drain()
    assert errors() == ["connect_refused"]


def test_chat_that_refuses_for_days_is_paused_and_then_disabled(shop: Shop, line: Line) -> None:
    make(shop, to=BLOCKED)
    now = NOW
    while Endpoint.objects.get().status == "active":
        publish(shop, at=now)
        drain(now)
        now += timedelta(hours=6)
    assert Endpoint.objects.get().disabled_reason == "failing"
    assert "held" in states()


def test_token_is_sealed_and_in_no_log_or_attempt(
    shop: Shop, line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    destination = make(shop)
    line.failures.append(refusal(401, "Authentication failed."))
    publish(shop)
    drain()
    assert destination.secret not in caplog.text
    assert destination.secret not in str(DeliveryAttempt.objects.values_list())
    assert destination.secret not in Endpoint.objects.get().secret_sealed


BAD_ROWS = [
    {"url": "https://shop.example"},
    {"recipient": ""},
    {"language": ""},
    {"language": "de"},
    {"secret_sealed": ""},
    {"type": EndpointType.EMAIL},
    {"type": EndpointType.WEBHOOK},
    {"type": "sms"},
    {"quiet_hours": "22:00-22:00"},
    {"quiet_hours": "24:00-07:00"},
    {"quiet_hours": "22:00"},
]


@pytest.mark.parametrize("fields", BAD_ROWS)
def test_database_refuses_half_a_destination(shop: Shop, fields: dict[str, str]) -> None:
    destination = make(shop)
    with pytest.raises(IntegrityError), transaction.atomic():
        Endpoint.objects.filter(pk=destination.pk).update(**fields)


def test_database_refuses_a_webhook_without_a_merchant() -> None:
    key = ids.new("wh_", NOW)
    with pytest.raises(IntegrityError), transaction.atomic():
        Endpoint.objects.create(
            id=key,
            url="https://shop.example",
            events=[],
            secret_sealed=vault.seal("x" * 20, context=key),
            created_at=NOW,
            updated_at=NOW,
        )
