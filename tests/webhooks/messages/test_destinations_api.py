"""Merchants add, change, test and delete destinations by the API."""

from typing import Any

import pytest

from tests.conftest import Shop
from tests.error_messages import check_error
from tests.webhooks.api_calls import error_code
from tests.webhooks.builders import NOW, make_endpoint, publish
from tests.webhooks.messages.destinations import PATH, TO_EMAIL, TO_LINE, drain, make
from tests.webhooks.messages.line_double import CHAT, TOKEN, Line
from tests.webhooks.messages.mail_server import MailServer
from webhooks.models import Delivery, Endpoint, EndpointAction

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]
USER = "U" + "0" * 32


def test_destination_is_created_and_read_without_its_token(shop: Shop) -> None:
    created = shop.post(PATH, TO_LINE | {"quiet_hours": "22:00-07:00"})
    assert created.status_code == 200
    shown = created.json()
    assert shown == {
        "destination_id": Endpoint.objects.get().id,
        "type": "line",
        "to": CHAT,
        "events": ["payment.succeeded"],
        "language": "th",
        "quiet_hours": "22:00-07:00",
        "status": "active",
        "disabled_reason": None,
        "health": {
            "state": "healthy",
            "consecutive_failures": 0,
            "failing_since": None,
            "paused_until": None,
            "last_error": None,
        },
        "created_at": shown["created_at"],
    }
    assert shop.get(f"{PATH}/{shown['destination_id']}").json() == shown
    assert shop.get(PATH).json()["destinations"] == [shown]
    assert Endpoint.objects.get().secret == TOKEN


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"type": "sms"}, "invalid_type"),
    ({"type": "webhook"}, "invalid_type"),
    ({"to": "owner@shop.example"}, "invalid_to"),
    ({"to": ""}, "invalid_to"),
    ({"to": CHAT.upper()}, "invalid_to"),
    ({"type": "email", "token": None}, "invalid_to"),
    ({"type": "email", "token": None, "to": "a@b.example\r\nBcc: x@y.example"}, "invalid_to"),
    ({"type": "email", "token": None, "to": "a@[127.0.0.1]"}, "invalid_to"),
    ({"type": "email", "token": None, "to": "root@localhost"}, "invalid_to"),
    ({"type": "email", "token": None, "to": '"a,b"@d.example'}, "invalid_to"),
    ({"type": "email", "token": None, "to": "ร้าน@shop.example"}, "invalid_to"),
    ({"type": "email", "to": "a@b.example"}, "invalid_token"),
    ({"token": None}, "invalid_token"),
    ({"token": "short"}, "invalid_token"),
    ({"token": "x" * 30 + "\r\nX: y"}, "invalid_token"),
    ({"events": []}, "invalid_events"),
    ({"events": ["approval.requested"]}, "invalid_events"),
    ({"language": "de"}, "invalid_language"),
    ({"quiet_hours": "22:00"}, "invalid_quiet_hours"),
    ({"quiet_hours": "22:00-22:00"}, "invalid_quiet_hours"),
    ({"quiet_hours": "25:00-07:00"}, "invalid_quiet_hours"),
    ({"quiet_hours": "๒๒:๐๐-๐๗:๐๐"}, "invalid_quiet_hours"),
]


@pytest.mark.usefixtures("mail")
@pytest.mark.parametrize(("fields", "code"), WRONG)
def test_wrong_field_of_a_destination_is_named(shop: Shop, fields: dict[str, Any], code: str) -> None:
    answer = shop.post(PATH, TO_LINE | fields)
    assert error_code(answer) == (400, code)
    assert answer.json()["error"]["param"] == code.removeprefix("invalid_")
    assert TOKEN not in answer.text if hasattr(answer, "text") else TOKEN.encode() not in answer.content
    assert not Endpoint.objects.exists()


def test_email_needs_a_mail_server_of_the_operator(shop: Shop) -> None:
    answer = shop.post(PATH, TO_EMAIL)
    assert answer.status_code == 400
    check_error(answer.json(), "email_not_configured")


@pytest.mark.usefixtures("audit_is_clean")
def test_destination_is_changed_and_each_change_recorded(shop: Shop, line: Line) -> None:
    path = f"{PATH}/{make(shop, quiet_hours='22:00-07:00').id}"
    fields = {"to": USER, "language": "en", "quiet_hours": "", "events": ["refund.failed"]}
    changed = shop.patch(path, fields).json()
    assert changed["quiet_hours"] is None
    assert {name: changed[name] for name in ("to", "language", "events")} == {
        "to": USER,
        "language": "en",
        "events": ["refund.failed"],
    }
    assert error_code(shop.patch(path, {"type": "email"})) == (400, "field_not_changeable")
    assert error_code(shop.patch(path, {"to": "x@y.example"})) == (400, "invalid_to")
    shop.patch(path, {"status": "disabled"})
    assert error_code(shop.post(f"{path}/test")) == (400, "webhook_not_testable")
    assert shop.delete(path).status_code == 204
    assert shop.get(path).status_code == 404
    check_error(shop.get(path).json(), "destination_not_found", id=path[-31:])
    recorded = EndpointAction.objects.order_by("id").values_list("type", flat=True)
    assert list(recorded) == ["created", "events_changed", "changed", "disabled", "deleted"]


@pytest.mark.usefixtures("audit_is_clean")
def test_test_button_sends_a_message_and_the_log_shows_it(shop: Shop, mail: MailServer) -> None:
    path = f"{PATH}/{make(shop, TO_EMAIL).id}"
    made = shop.post(f"{path}/test").json()
    assert (made["event"], made["state"], made["webhook_id"]) == (
        "destination.ping",
        "pending",
        path[-31:],
    )
    drain(Delivery.objects.get().due_at)
    assert "ข้อความทดสอบ" in mail.mails[0]["subject"]
    (shown,) = shop.get(f"{path}/deliveries?state=succeeded").json()["deliveries"]
    assert (shown["delivery_id"], len(shown["attempts"])) == (made["delivery_id"], 1)


def test_webhooks_and_destinations_do_not_see_each_other(shop: Shop, other_shop: Shop) -> None:
    destination, webhook = make(shop), make_endpoint(shop)
    for tail in ("", "/deliveries"):
        assert error_code(shop.get(f"/Thai/v1/webhooks/{destination.id}{tail}")) == (404, "webhook_not_found")
        assert error_code(shop.get(f"{PATH}/{webhook.id}{tail}")) == (404, "destination_not_found")
        assert error_code(other_shop.get(f"{PATH}/{destination.id}{tail}")) == (404, "destination_not_found")
    assert error_code(shop.get(f"/Thai/v1/webhooks/{destination.id}/secret")) == (404, "webhook_not_found")
    assert error_code(other_shop.post(f"{PATH}/{destination.id}/test")) == (404, "destination_not_found")
    assert (shop.get("/Thai/v1/webhooks").json()["total"], shop.get(PATH).json()["total"]) == (1, 1)


def test_destinations_have_a_limit_of_their_own(shop: Shop, settings: Any) -> None:
    settings.WEBHOOKS_PER_MERCHANT = 1
    make_endpoint(shop)
    assert shop.post(PATH, TO_LINE).status_code == 200
    answer = shop.post(PATH, TO_LINE)
    assert answer.status_code == 422
    check_error(answer.json(), "too_many_destinations", limit=1)


def test_destination_gets_events_of_its_merchant_only(shop: Shop, other_shop: Shop, line: Line) -> None:
    make(shop)
    publish(other_shop)
    assert drain(NOW) == 0
