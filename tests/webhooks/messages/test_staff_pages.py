"""Staff add destinations for themselves in the console, test and delete them."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.conftest import Shop
from tests.reconciliation.builders import staff_client
from tests.staff_acts import act_form, acts_of_staff, run_act, send_act
from tests.webhooks.messages.destinations import drain, make
from tests.webhooks.messages.line_double import CHAT, TOKEN, Line
from webhooks.models import Delivery, Endpoint, StaffEventType

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]
FORM: dict[str, Any] = {
    "type": "line",
    "to": CHAT,
    "line_token": TOKEN,
    "events": ["approval.requested", "job.failed"],
    "language": "th",
    "quiet_hours": "22:00-07:00",
}


@pytest.fixture
def malee(db: None) -> Client:
    return staff_client("malee", "view_endpoint", "manage_destinations", "resend_delivery")


def add(client: Client, **changes: Any) -> str:
    page = reverse("admin:webhooks_endpoint_list_act", args=["add-destination"])
    answer = client.post(page, act_form(**FORM | changes), follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def test_staff_add_a_destination_and_its_token_is_in_no_record(malee: Client) -> None:
    page = add(malee)
    destination = Endpoint.objects.get()
    assert (destination.merchant, destination.recipient, destination.events) == (None, CHAT, FORM["events"])
    assert CHAT in page
    assert "Send a test event" in page
    record = acts_of_staff().get()
    assert (record.act, record.object_id, record.after["recipient"]) == (
        "endpoint_added",
        destination.id,
        "U***",
    )
    assert TOKEN not in page + str(record.after) + str(record.before)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"to": "somebody"}, "to must be"),
        ({"line_token": ""}, "token must be"),
        ({"quiet_hours": "22"}, "quiet_hours must be"),
        ({"type": "email"}, "cannot send emails"),
        ({"events": []}, "This field is required"),
    ],
)
def test_wrong_field_is_named_and_nothing_is_stored(
    malee: Client, changes: dict[str, Any], words: str
) -> None:
    assert words in add(malee, **changes)
    assert not Endpoint.objects.exists()
    assert not acts_of_staff().exists()


def test_staff_test_and_delete_their_destination(malee: Client, line: Line) -> None:
    destination = make(None, events=list(StaffEventType))
    run_act(malee, Endpoint, destination.pk, "test")
    assert drain(Delivery.objects.get().due_at) == 1
    assert line.texts[0].startswith("Thai QR Payments\nข้อความทดสอบ")
    run_act(malee, Endpoint, destination.pk, "delete")
    assert Endpoint.objects.get().deleted_at is not None
    assert list(acts_of_staff().values_list("act", flat=True)) == ["endpoint_tested", "endpoint_deleted"]


def test_staff_cannot_delete_the_destination_of_a_merchant(malee: Client, shop: Shop) -> None:
    destination = make(shop)
    send_act(malee, Endpoint, destination.pk, "delete")
    assert Endpoint.objects.get().deleted_at is None


def test_staff_without_the_permission_cannot_add_a_destination() -> None:
    other = staff_client("other", "view_endpoint", "resend_delivery")
    page = reverse("admin:webhooks_endpoint_list_act", args=["add-destination"])
    assert other.post(page, act_form(**FORM)).status_code == 403
