"""What staff do is recorded in the transaction of the act, and the database keeps the records."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client

from audit_trail import recording, values
from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from audit_trail.recording import NotInTransaction, recorded
from core import clock, request_context
from merchants import services
from merchants.models import ApiKey, LateMoneyPolicy, Merchant
from payments.models import Payment
from tests.conftest import Shop
from tests.context import acting_as
from tests.reconciliation.builders import staff_client
from tests.staff_acts import REASON, acts_of_staff

PASSWORD = "rambutan-durian-42"
MERCHANTS = "/admin/merchants/merchant/"


class Broken(Exception):
    """An act fails after its service."""


@pytest.fixture
def record(shop: Shop) -> AuditRecord:
    with acting_as("staff:somsri"):
        services.set_policy(shop.merchant.id, late_money=LateMoneyPolicy.ACCEPT)
    made: AuditRecord = acts_of_staff().get()
    return made


@pytest.mark.parametrize("table", ["audit_trail_auditrecord", "audit_trail_chainlink"])
@pytest.mark.parametrize("sql", ["UPDATE {} SET {}", "DELETE FROM {}", "TRUNCATE {} CASCADE"])
def test_records_and_links_cannot_be_changed_or_deleted(record: AuditRecord, table: str, sql: str) -> None:
    column = "reason = ''" if table.endswith("record") else "hash = ''"
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.format(table, column))


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM audit_trail_unchainedrecord",
        "UPDATE audit_trail_unchainedrecord SET record_id = record_id + 1",
        "TRUNCATE audit_trail_unchainedrecord",
    ],
)
def test_unchained_record_waits_until_it_has_a_link(record: AuditRecord, sql: str) -> None:
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


def test_log_of_django_refuses_entries(admin_user: User) -> None:
    with pytest.raises(DatabaseError, match="audit_trail"), transaction.atomic():
        LogEntry.objects.create(user=admin_user, action_flag=1, object_repr="x")


@pytest.mark.django_db(transaction=True)
def test_act_and_its_record_are_rolled_back_together(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    known = AuditRecord.objects.count()

    def fail(*args: Any, **kwargs: Any) -> None:
        raise Broken

    with pytest.raises(Broken), recorded(Act.LATE_MONEY_CHANGED, shop.merchant):
        Merchant.objects.update(late_money=LateMoneyPolicy.ACCEPT)
        fail()
    # The record cannot be written: then there is no act.
    monkeypatch.setattr(recording, "write", fail)
    with pytest.raises(Broken):
        services.set_policy(shop.merchant.id, late_money=LateMoneyPolicy.ACCEPT)
    assert Merchant.objects.get().late_money == LateMoneyPolicy.REVIEW
    assert AuditRecord.objects.count() == known


def test_record_outside_of_a_transaction_is_refused(shop: Shop) -> None:
    with pytest.raises(NotInTransaction):
        recording.write(Act.CHANGED, shop.merchant)


def test_record_has_who_what_before_after_and_from_where(shop: Shop) -> None:
    client = staff_client("somsri", "view_merchant", "set_late_money")
    page = f"{MERCHANTS}{quote(shop.merchant.pk)}/do/accept-late-money/"
    form = {"reason": REASON, "token": str(uuid4())}
    client.post(page, form, REMOTE_ADDR="203.0.113.7", headers={"X-Request-Id": "req-1"})
    found = acts_of_staff().get()
    assert (found.actor, found.act) == ("staff:somsri", Act.LATE_MONEY_CHANGED)
    assert (found.reason, str(found.form_token)) == (REASON, form["token"])
    assert (found.object_type, found.object_id) == ("merchants.merchant", shop.merchant.id)
    assert found.merchant_id == shop.merchant.id
    assert (found.before, found.after) == ({"late_money": "review"}, {"late_money": "accept"})
    assert (found.address, found.request_id) == ("203.0.113.7", "req-1")
    assert len(found.session) == 16
    assert str(client.session.session_key) not in str(found.__dict__)


def test_commands_that_act_are_recorded(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    key = ApiKey.objects.get()
    with acting_as("command:revoke_key"):
        call_command("revoke_key", key.pk)
    found = AuditRecord.objects.get(act=Act.KEY_REVOKED)
    assert (found.actor, found.object_id) == ("command:revoke_key", key.pk)
    assert found.after["revoked_by"] == "command:revoke_key"


def test_records_contain_no_secrets_names_or_account_numbers(shop: Shop) -> None:
    code = shop.qr_code(client_bank_account="1234567890", client_name="Somchai Jaidee")
    payment = Payment.objects.get(pk=code["payment_id"])
    stored = values.of_row(payment)
    assert stored["client_name"] == "S*** J***"
    assert "1234567890" not in str(stored)
    _key, secret = services.issue_key(merchant=shop.merchant, now=clock.now())
    issued = AuditRecord.objects.get(act=Act.KEY_ISSUED)
    assert secret not in str(issued.after)
    assert {"digest", "secret"}.isdisjoint(issued.after)


def test_stored_values_have_times_in_utc_and_amounts_in_satang(shop: Shop) -> None:
    code = shop.qr_code(amount=199_950)
    payment: Any = Payment.objects.get(pk=code["payment_id"])
    stored = values.of_row(payment)
    assert stored["amount"] == 199_950
    assert stored["expires_at"] == payment.expires_at.isoformat().replace("+00:00", "Z")
    assert values.changes(stored, stored | {"amount": 1}) == ({"amount": 199_950}, {"amount": 1})


def user_form(user: User, **changes: Any) -> dict[str, Any]:
    joined = user.date_joined
    given = {"is_active": "on", "is_staff": "on", "date_joined_0": f"{joined:%Y-%m-%d}"}
    return given | {"date_joined_1": f"{joined:%H:%M:%S}"} | changes


@pytest.mark.slow
def test_forms_of_staff_and_groups_are_recorded_with_changes(admin_client: Client) -> None:
    new = {"username": "somsri", "password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    admin_client.post("/admin/auth/user/add/", new)
    clerk, cashiers = User.objects.get(username="somsri"), Group.objects.create(name="Cashiers")
    page = f"/admin/auth/user/{clerk.pk}/"
    admin_client.post(f"{page}change/", user_form(clerk, groups=[cashiers.pk], last_name="Jaidee"))
    admin_client.post(f"{page}password/", new)
    admin_client.post(f"/admin/auth/group/{cashiers.pk}/delete/", {"post": "yes"})
    added, changed, password, deleted = acts_of_staff()
    assert (added.act, added.object_id, added.after["username"]) == ("added", str(clerk.pk), "somsri")
    assert (changed.before["groups"], changed.after["groups"]) == ([], ["Cashiers"])
    assert changed.after["last_name"] == "J***"
    assert (password.act, set(password.after.values())) == ("changed", {"***"})
    assert (deleted.act, deleted.before["name"]) == ("deleted", "Cashiers")
    assert PASSWORD not in str([added.after, password.after])


@pytest.mark.slow
def test_change_of_the_own_password_is_recorded(db: None) -> None:
    clerk, client = User.objects.create_user("somsri", password=PASSWORD, is_staff=True), Client()
    client.force_login(clerk)
    form = {"old_password": PASSWORD, "new_password1": "mangosteen-53", "new_password2": "mangosteen-54"}
    assert client.post("/admin/password_change/", form).status_code == 200
    assert not acts_of_staff().exists()
    form["new_password2"] = form["new_password1"]
    assert client.post("/admin/password_change/", form).status_code == 302
    record = acts_of_staff().get()
    assert (record.act, record.actor, record.after) == (Act.PASSWORD_CHANGED, "staff:somsri", {})


def test_groups_are_deleted_one_by_one_so_that_each_has_its_record(admin_client: Client) -> None:
    group = Group.objects.create(name="Cashiers")
    chosen = {"action": "delete_selected", "_selected_action": [group.pk], "post": "yes"}
    admin_client.post("/admin/auth/group/", chosen)
    assert Group.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_change_of_a_password_without_its_record_is_rolled_back(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(User.objects.create_superuser("admin"))
    clerk = User.objects.create_user("somsri", is_staff=True, password="!")

    def fail(*args: Any, **kwargs: Any) -> None:
        raise Broken

    monkeypatch.setattr(recording, "write", fail)
    form = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    with pytest.raises(Broken):
        client.post(f"/admin/auth/user/{clerk.pk}/password/", form)
    before = clerk.password
    clerk.refresh_from_db()
    assert clerk.password == before


@pytest.mark.slow
def test_view_of_personal_data_is_a_record(shop: Shop, admin_client: Client) -> None:
    code = shop.qr_code()
    page = f"/admin/payments/payment/{quote(code['payment_id'])}/change/"
    assert admin_client.get(page).status_code == 200
    viewed = AuditRecord.objects.get(act=Act.VIEWED)
    assert (viewed.actor, viewed.object_id) == ("staff:admin", code["payment_id"])
    stranger = staff_client("stranger")
    assert stranger.get(page).status_code == 403
    assert AuditRecord.objects.filter(act=Act.VIEWED).count() == 1


def test_every_act_has_a_label() -> None:
    assert all(str(act.label) for act in Act)
    assert len({act.label for act in Act}) == len(Act)


def test_time_of_a_record_is_that_of_the_database(record: AuditRecord) -> None:
    assert abs(record.created_at - clock.now()) < timedelta(minutes=5)
    assert Permission.objects.filter(codename="view_personal_data").exists()
    assert request_context.current().session == ""
