"""The page *Audit*, and what staff did on the pages of objects."""

from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit_trail import chain, presentation, recording
from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from core import clock
from merchants import services
from merchants.models import LateMoneyPolicy
from payments.models import Payment
from tests.conftest import Shop
from tests.console.lists.query_plans import unbounded
from tests.context import acting_as
from tests.reconciliation.builders import staff_client
from tests.staff_acts import acts_of_staff

pytestmark = pytest.mark.slow

LIST = "/admin/audit_trail/auditrecord/"


@pytest.fixture
def payment(shop: Shop) -> Payment:
    code = shop.qr_code(amount=199_950)
    return Payment.objects.get(pk=code["payment_id"])


def act(row: Any, actor: str = "staff:somsri", **values: Any) -> AuditRecord:
    with transaction.atomic(), acting_as(actor, request_id=f"req-of-{actor}"):
        return recording.write(Act.CHANGED, row, **values)


def listed(client: Client, **query: str) -> list[AuditRecord]:
    answer = client.get(LIST, query)
    assert answer.status_code == 200, answer.headers
    return list(answer.context["cl"].result_list)


def test_changes_are_readable(payment: Payment) -> None:
    record = act(
        payment,
        before={"status": "pending", "amount": 100, "expires_at": "2026-11-23T08:04:30Z"},
        after={"status": "expired", "amount": 199_950, "expires_at": None, "networks": ["a", "b"]},
    )
    assert presentation.changes(record) == [
        "Amount: 1.00 THB → 1,999.50 THB",
        "Expires at: 2026-11-23 15:04:30 → -",
        "Networks: a, b",
        "Status: pending → expired",
    ]


def test_record_of_a_new_row_does_not_repeat_its_ids(shop: Shop) -> None:
    services.issue_key(merchant=shop.merchant, now=clock.now())
    issued = AuditRecord.objects.get(act=Act.KEY_ISSUED)
    assert (issued.after["id"], issued.after["merchant"]) == (issued.object_id, shop.merchant.id)
    labels = {change.partition(":")[0] for change in presentation.changes(issued)}
    assert {"Id", "Merchant"}.isdisjoint(labels)
    assert "Scopes" in labels


def test_audit_page_is_searched_and_filtered(payment: Payment, shop: Shop, admin_client: Client) -> None:
    first = act(payment)
    second = act(shop.merchant, actor="staff:malee")
    third = act(payment, actor="staff:malee")
    today = f"{clock.now().astimezone(clock.BANGKOK):%Y-%m-%d}"
    mine = {"actor": "staff:malee"}
    assert listed(admin_client, **mine) == [third, second]
    assert listed(admin_client, **mine, object_type="payments.payment") == [third]
    assert listed(admin_client, **mine, act__exact="changed") == [third, second]
    assert listed(admin_client, **mine, act__exact="deleted") == []
    assert listed(admin_client, **mine, date="today") == listed(admin_client, **mine, date=today)
    assert listed(admin_client, **mine, date="week") == [third, second]
    assert listed(admin_client, **mine, date="2020-01-01") == listed(admin_client, date="x") == []
    assert listed(admin_client, q=payment.id) == [third, first]
    assert listed(admin_client, q="req-of-staff:somsri") == [first]
    assert set(listed(admin_client, q=shop.merchant.id)) >= {first, second, third}


def test_audit_page_shows_labels_and_links(payment: Payment, admin_client: Client) -> None:
    act(payment, before={"status": "pending"}, after={"status": "expired"}, reason="The customer called.")
    text = admin_client.get(LIST, {"q": payment.id}).content.decode()
    assert f'<a href="/admin/payments/payment/{quote(payment.id)}/change/">Payment pay_…' in text
    for shown in ("somsri", "Changed", "Status: pending → expired", "The customer called."):
        assert shown in text


def test_audit_page_names_people_and_roles(admin_client: Client) -> None:
    clerk, role = User.objects.create_user("somsri"), Group.objects.create(name="Cashiers")
    gone = Group.objects.create(name="Night shift")
    with transaction.atomic():
        recording.write(Act.DELETED, gone, before={"name": "Night shift"})
        gone.delete()
    records = [act(clerk, actor="staff:anong"), act(role, actor="staff:anong")]
    text = admin_client.get(LIST).content.decode()
    for name in ("User somsri", "Group Night shift", "Group Cashiers"):
        assert name in text
    assert "User somsri" in admin_client.get(f"{LIST}{records[0].pk}/change/").content.decode()
    with transaction.atomic():
        recording._insert(Act.EXPORTED, "auth.user")
    assert admin_client.get(LIST).status_code == 200


def test_page_of_a_record_shows_its_link_in_the_chain(payment: Payment, admin_client: Client) -> None:
    record = act(payment)
    page = f"{LIST}{record.pk}/change/"
    assert "not yet" in admin_client.get(page).content.decode()
    chain.chain_waiting()
    assert record.link.hash in admin_client.get(page).content.decode()


def test_audit_page_needs_its_permission(payment: Payment) -> None:
    assert staff_client("somsri", "view_payment").get(LIST).status_code == 403
    assert staff_client("malee", "view_auditrecord").get(LIST).status_code == 200


def test_page_of_an_object_shows_what_staff_did_newest_first(payment: Payment, admin_client: Client) -> None:
    for number in range(presentation.MAX_SHOWN + 1):
        act(payment, reason=f"call {number:03}")
    page = f"/admin/payments/payment/{quote(payment.id)}/change/"
    text = admin_client.get(page).content.decode()
    assert "What staff did" in text
    assert text.index("call 020") < text.index("call 019") < text.index("call 001")
    assert "call 000" not in text
    assert "Viewed personal data" not in admin_client.get(page).content.decode()
    assert f'href="{LIST}?q={payment.id}"' in text
    clerk = staff_client("somsri", "view_payment").get(page).content.decode()
    assert ("call 020" in clerk, LIST in clerk) == (True, False)


def test_objects_with_the_same_number_have_acts_of_their_own(admin_client: Client, admin_user: Any) -> None:
    page = f"/admin/auth/user/{admin_user.pk}/change/"
    act(admin_user, reason="of the user")
    with transaction.atomic():
        recording.viewed("auth.group", str(admin_user.pk))
        recording._insert(Act.CHANGED, "auth.group", str(admin_user.pk), reason="of the group")
    text = admin_client.get(page).content.decode().partition('id="staff-acts"')[2]
    assert ("of the user" in text, "of the group" in text) == (True, False)


def test_history_button_leads_to_the_audit_page(shop: Shop, admin_client: Client) -> None:
    with acting_as("staff:somsri"):
        services.set_policy(shop.merchant.id, late_money=LateMoneyPolicy.ACCEPT)
    history = f"/admin/merchants/merchant/{quote(shop.merchant.id)}/history/"
    answer = admin_client.get(history, follow=True)
    assert answer.redirect_chain == [(f"{LIST}?q={shop.merchant.id}", 302)]
    assert acts_of_staff().get() in answer.context["cl"].result_list


def test_acts_on_an_object_are_read_by_an_index(payment: Payment, admin_user: Any) -> None:
    with CaptureQueriesContext(connection) as captured:
        presentation.acts_on("payments.payment", payment.id)
        presentation.acts_on("auth.user", str(admin_user.pk))
    assert [unbounded(each["sql"]) for each in captured.captured_queries] == [[], []]
    plan = "EXPLAIN " + captured.captured_queries[1]["sql"]
    with connection.cursor() as cursor:
        # With few rows PostgreSQL may prefer another index.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; DROP INDEX auditrecord_of_object, auditrecord_of_type")
        cursor.execute(
            "ALTER TABLE audit_trail_auditrecord DROP CONSTRAINT audit_trail_auditrecord_pkey CASCADE"
        )
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        cursor.execute(plan)
        assert "auditrecord_changes" in str(cursor.fetchall())
