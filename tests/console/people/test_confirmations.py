"""Before acts that move money or rights, staff confirm who they are, if they have not within ten minutes."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.db.models import F
from django.test import Client
from django.urls import reverse

from audit_trail.acts import Act
from audit_trail.confirmation import CONFIRMED_ACTS
from banks import TransferResult
from console.people import sign_in
from payments.models import Payment
from reconciliation.exceptions import resolution_records
from reconciliation.models import Resolution, ResolutionType
from refunds.models import Refund
from tests.authenticator_app import APP, set_up
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop
from tests.console.people import test_role_matrix as matrix
from tests.console.people.test_role_matrix import World, world  # noqa: F401 (a fixture)
from tests.console.test_acts import act_url, refund, token_of
from tests.reconciliation.builders import Seller, staff_client
from tests.reconciliation.exceptions.test_acts_in_console import act_page
from tests.staff_acts import act_form, acts_of_staff
from tests.transfers.builders import Bank
from tests.transfers.conftest import served_by  # noqa: F401 (a fixture)
from tests.withdrawals.builders import send_due_withdrawals, withdrawn
from transfers.models import Transfer
from transfers.schedule import OVERDUE_AFTER

QUESTION, BY_CODE = "/admin/confirm/", "/admin/confirm/code/"
PASSWORD = "three-elephants-crossing"
FAILURES = 10
pytestmark = [pytest.mark.slow, pytest.mark.django_db]

# Acts before which nobody is asked, because they move neither money nor rights. A new act belongs here or in
# CONFIRMED_ACTS.
UNCONFIRMED_ACTS = {
    Act.VIEWED, Act.SEARCHED, Act.CODE_EXPIRED, Act.DELIVERY_RESENT, Act.REFUND_CANCELED,
    Act.HOLD_LIFTED, Act.HELD_PAYERS_CHANGED,
    Act.CLAIM_LINK_REVOKED, Act.LINK_CREATED, Act.LINK_DEACTIVATED,
    Act.WITHDRAWAL_CANCELED, Act.TRANSFER_CANCELED, Act.EXCEPTION_RESOLVED,
    Act.STATEMENT_IMPORTED, Act.BANK_ASKED, Act.ENDPOINT_DISABLED, Act.ENDPOINT_ENABLED, Act.PAUSE_SKIPPED,
    Act.ENDPOINT_DELETED,
    Act.DELIVERIES_REPLAYED, Act.LATE_MONEY_CHANGED, Act.OPEN_REFERENCES_CHANGED, Act.PASSWORD_CHANGED,
    Act.TAX_DETAILS_SET, Act.CONNECTION_TESTED, Act.TRANSFERS_PAUSED, Act.COMPANY_CONNECTED,
    Act.INVITATION_ACCEPTED, Act.SHOP_VIEWED, Act.SESSIONS_ENDED, Act.EXPORTED, Act.ENDPOINT_TESTED,
    Act.PROOF_SWITCHED, Act.LOCKOUT_LIFTED, Act.NOTED, Act.HANDED_OVER, Act.ANSWERED,
    Act.ERASED, Act.CODES_MOVED,  # only by a command or the clock
    Act.MERCHANT_MOVED, Act.MOVE_CANCELED, Act.MERCHANT_IMPORTED,  # only by commands
    Act.RESTORE_DRILLED,  # only by a command
}  # fmt: skip
# Decisions about exceptions: money goes where it was meant to go, or stays where it is.
UNCONFIRMED_TYPES = {
    ResolutionType.ACCEPTED, ResolutionType.ATTACHED, ResolutionType.MERGED, ResolutionType.DISMISSED,
    ResolutionType.BOOKED_FAILED, ResolutionType.REOPENED, ResolutionType.ACQUIRER,
    ResolutionType.UNDONE,  # with its import, which is confirmed
}  # fmt: skip
# Of the acts that the matrix of roles tries by a request that changes something.
CONFIRMED_PERMISSIONS = {
    "refunds.create_refund", "approvals.decide_approval", "approvals.add_payoutaccount",
    "approvals.delete_payoutaccount", "approvals.change_payoutpolicy",
    "withdrawals.change_payoutschedule",
    "merchants.create_merchant", "merchants.connect_bank", "merchants.rename_merchant",
    "merchants.set_page_origins", "merchants.set_page_settings", "merchants.set_unsettled",
    "merchants.suspend_merchant", "payments.set_fees", "shop.invite_owner",
    "merchants.issue_key", "merchants.roll_key", "merchants.revoke_key", "console.reset_second_factor",
    "reconciliation.send_back_exception", "reconciliation.send_to_exception",
    "reconciliation.manual_return_exception", "reconciliation.write_off_exception",
    "reconciliation.credit_exception", "reconciliation.return_excess_exception",
    "reconciliation.returned_exception",
    "reconciliation.confirm_banktransaction", "reconciliation.import_statement",
    "transfers.complete_transfer", "transfers.resume_transfers",
    "webhooks.manage_destinations", "operations.close_month", "settlements.close_question",
    "auth.change_user",
}  # fmt: skip


def make_stale(client: Client) -> Client:
    """As if the last confirmation was an hour ago."""
    session = client.session
    session["proven_at"] -= 3600
    for record in session.get("account_authentication_methods", []):
        record["at"] -= 3600
    session.save()
    return client


@pytest.fixture
def malee() -> User:
    user = User.objects.create_user("malee", password=PASSWORD, is_staff=True)
    wanted = ["view_payment", "create_refund", "view_user", "change_user", "add_user"]
    wanted += ["view_banktransaction", "send_back_exception", "accept_exception"]
    user.user_permissions.set(Permission.objects.filter(codename__in=wanted))
    return user


@pytest.fixture
def client(malee: User) -> Client:
    client = Client()
    client.force_login(malee)
    return client


@pytest.fixture
def paid(shop: Shop, bank: SandboxBankClient) -> str:
    return Seller(shop, bank).paid()


def asked(response: Any) -> bool:
    """Whether the answer leads to the question "Is it you?"."""
    places = (QUESTION, "/admin/login/company/")
    return bool(response.status_code == 302 and response.headers["Location"].startswith(places))


def confirm(client: Client, question: Any, **answer: str) -> Any:
    """Answer the question to which a response leads, and go on."""
    answered = client.post(question.headers["Location"], answer or {"password": PASSWORD})
    onward = answered.headers.get("Location", "")
    return client.get(onward) if "/go-on/" in onward else answered


def test_each_act_is_confirmed_or_listed_here() -> None:
    assert set(Act) - CONFIRMED_ACTS == UNCONFIRMED_ACTS
    assert set(ResolutionType) - resolution_records.CONFIRMED_TYPES == UNCONFIRMED_TYPES


def test_permissions_that_need_a_confirmation(world: World, admin_client: Client) -> None:  # noqa: F811
    """Each act of the console is tried with an old confirmation."""
    found = set()
    for probe in matrix.probes(world):
        make_stale(admin_client)
        before = matrix.rows_now()
        sent = admin_client.get if probe.data is None else admin_client.post
        if asked(sent(probe.path, probe.data or {})):
            found.add(probe.permission)
            assert matrix.rows_now() == before, probe
    assert found == CONFIRMED_PERMISSIONS


def test_login_is_a_confirmation_for_ten_minutes(clock: Any, client: Client, paid: str) -> None:
    assert refund(client, paid, "1").status_code == 302
    clock.shift(sign_in.PERIOD - timedelta(seconds=1))
    token = token_of(client, act_url(paid, "refund"))
    assert refund(client, paid, "1", token=token).status_code == 302
    clock.shift(timedelta(seconds=1))
    assert asked(client.get(act_url(paid, "refund")))
    assert Refund.objects.count() == 2


def test_act_goes_on_after_the_answer_with_all_its_fields(client: Client, paid: str) -> None:
    url = act_url(paid, "refund")
    form = {
        "amount": "1.50",
        "kind": "other",
        "reason": 'Soup & "fork" <cold>',
        "token": token_of(client, url),
    }
    question = make_stale(client).post(url, form)
    assert asked(question)
    assert not Refund.objects.exists()
    done = confirm(client, question)
    assert (done.status_code, asked(done)) == (302, False)
    made = Refund.objects.get()
    assert (made.amount, acts_of_staff().get(act="refund_created").reason) == (150, form["reason"])
    assert token_of(client, url), "nobody is asked again"
    confirm(make_stale(client), question)
    assert Refund.objects.count() == 1


def test_act_that_its_sender_gave_up_does_not_run_after_another_question(client: Client, paid: str) -> None:
    """Otherwise whoever finds an unattended screen plants an amount, and its owner confirms it later."""
    url = act_url(paid, "refund")
    form = {"amount": "1.50", "kind": "other", "reason": "x", "token": token_of(client, url)}
    planted = make_stale(client).post(url, form)
    assert asked(planted)
    assert confirm(client, client.get(url)).headers["Location"] == url
    assert not Refund.objects.exists()


def test_form_that_waited_too_long_does_not_go_on(clock: Any, client: Client, paid: str) -> None:
    url = act_url(paid, "refund")
    form = {"amount": "1.50", "kind": "other", "reason": "x", "token": token_of(client, url)}
    question = make_stale(client).post(url, form)
    clock.shift(sign_in.PERIOD)
    assert confirm(client, question).headers["Location"] == url
    assert not Refund.objects.exists()


def test_form_at_an_address_with_a_query_goes_on(client: Client, paid: str) -> None:
    url = act_url(paid, "refund")
    form = {"amount": "1.50", "kind": "other", "reason": "x", "token": token_of(client, url)}
    confirm(client, make_stale(client).post(f"{url}?_changelist_filters=q%3D1", form))
    assert Refund.objects.get().amount == 150


def test_form_that_is_refused_after_the_question_can_be_sent_again(
    client: Client, shop: Shop, paid: str
) -> None:
    url = act_url(paid, "refund")
    form = {"amount": "1.50", "kind": "other", "reason": "x", "token": token_of(client, url)}
    question = make_stale(client).post(url, form)
    almost_everything = {"payment_id": paid, "amount": Payment.objects.get().amount - 149}
    assert shop.post("/v1/refunds", almost_everything, key="1").status_code == 200
    onward = client.post(question.headers["Location"], {"password": PASSWORD}).headers["Location"]
    for sent in (client.get(onward), client.post(onward, form)):
        assert (sent.status_code, "errorlist" in sent.content.decode()) == (200, True)
    assert client.get(onward).headers["Location"] == url
    assert Refund.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_form_goes_on_once_for_two_requests_at_once(malee: User) -> None:
    client = Client()
    client.force_login(malee)
    form = {"username": "somsri", "password1": "four-geckos-asleep", "password2": "four-geckos-asleep"}
    question = make_stale(client).post("/admin/auth/user/add/", form | {"usable_password": "true"})
    onward = client.post(question.headers["Location"], {"password": PASSWORD}).headers["Location"]
    answers = run_concurrently(*[lambda: client.get(onward)] * 3)
    assert {answer.status_code for answer in answers} == {302}
    assert User.objects.filter(username="somsri").count() == 1
    assert acts_of_staff().filter(act="added").count() == 1


def test_form_of_somebody_else_does_not_go_on(client: Client, paid: str) -> None:
    url = act_url(paid, "refund")
    form = {"amount": "1.50", "kind": "other", "reason": "x", "token": token_of(client, url)}
    question = make_stale(client).post(url, form)
    name = question.headers["Location"].partition("next=")[2]
    other = Client()
    other.force_login(User.objects.create_user("prasit", is_staff=True))
    assert other.get(unquote(name)).status_code == 404


def test_question_before_a_page_leads_to_the_page(client: Client, paid: str) -> None:
    url = act_url(paid, "refund")
    question = make_stale(client).get(url)
    assert asked(question)
    answer = confirm(client, question)
    assert (answer.status_code, answer.headers["Location"]) == (302, url)
    assert refund(client, paid, "1").status_code == 302


def test_wrong_password_asks_again_and_locks_out(clock: Any, client: Client, paid: str) -> None:
    url = act_url(paid, "refund")
    question = make_stale(client).get(url)
    for _ in range(FAILURES):
        again = confirm(client, question, password="wrong")
        assert (again.status_code, "The password is wrong." in again.content.decode()) == (200, True)
        clock.shift(10)  # ten answers a minute are allowed
    refused = confirm(client, question)
    assert (refused.status_code, "Too many failed logins" in refused.content.decode()) == (200, True)
    assert not Refund.objects.exists()


def test_answers_of_one_person_are_limited_by_the_minute(clock: Any, client: Client, paid: str) -> None:
    question = make_stale(client).get(act_url(paid, "refund"))
    for _ in range(FAILURES):
        confirm(client, question, password="wrong")
    assert confirm(client, question).status_code == 429
    assert client.get("/admin/").status_code == 200


def test_person_with_an_app_confirms_by_a_code_only(client: Client, malee: User, paid: str) -> None:
    url, (app, _) = act_url(paid, "refund"), set_up(client)
    question = make_stale(client).get(url)
    assert question.headers["Location"].startswith(BY_CODE)
    used = app.code()
    assert confirm(client, question, code=PASSWORD).status_code == 200
    by_password = client.post(f"{QUESTION}?next={url}", {"password": PASSWORD})
    assert asked(by_password)
    assert confirm(client, question, code=used).status_code == 302
    assert refund(client, paid, "1").status_code == 302
    assert confirm(client, make_stale(client).get(url), code=used).status_code == 200
    assert confirm(client, make_stale(client).get(url), code=app.next_code()).status_code == 302


def test_answer_without_a_session_confirms_nothing(db: None, paid: str) -> None:
    answer = Client().post(f"{QUESTION}?next={act_url(paid, 'refund')}", {"password": PASSWORD})
    assert answer.headers["Location"].startswith("/admin/login/")


def test_answer_needs_the_token_of_the_form(malee: User, paid: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(malee)
    question = make_stale(client).get(act_url(paid, "refund"))
    assert confirm(client, question).status_code == 403


def test_form_waits_sealed_in_the_session(client: Client) -> None:
    form = {"username": "somsri", "password1": "four-geckos-asleep", "password2": "four-geckos-asleep"}
    question = make_stale(client).post("/admin/auth/user/add/", form | {"usable_password": "true"})
    assert asked(question)
    assert not User.objects.filter(username="somsri").exists()
    stored = Session.objects.get(pk=client.session.session_key).session_data
    assert stored.startswith("sealed:")
    assert "geckos" not in client.get(question.headers["Location"]).content.decode()
    assert confirm(client, question).status_code == 302
    assert User.objects.get(username="somsri").check_password("four-geckos-asleep")


def test_change_of_rights_needs_a_confirmation(client: Client) -> None:
    clerk = User.objects.create_user("somsri", is_staff=True)
    form = {
        "is_staff": "on",
        "date_joined_0": f"{clerk.date_joined:%Y-%m-%d}",
        "date_joined_1": f"{clerk.date_joined:%H:%M:%S}",
    }
    assert asked(make_stale(client).post(f"/admin/auth/user/{clerk.pk}/change/", form))
    clerk.refresh_from_db()
    assert clerk.is_active


def test_new_app_and_new_recovery_codes_need_a_confirmation(client: Client) -> None:
    set_up(client)
    make_stale(client)
    for path in ("recovery-codes/new/", "app/remove/", "passkeys/add/"):
        assert asked(client.post(f"/admin/account/{path}"))
    assert asked(client.get(APP))


@pytest.mark.parametrize("slug", ["arrived", "never-arrived"])
def test_transfer_is_completed_only_after_a_confirmation(
    client: Client,
    malee: User,
    shop: Shop,
    paid: str,
    served_by: Callable[..., Bank],  # noqa: F811
    slug: str,
) -> None:
    malee.user_permissions.add(
        *Permission.objects.filter(codename__in=["view_transfer", "complete_transfer"])
    )
    served_by(sends=[TransferResult("processing", "b-1")])
    order_id = withdrawn(shop, amount=100)["withdrawal_id"]
    send_due_withdrawals()
    Transfer.objects.update(submitted_at=F("submitted_at") - OVERDUE_AFTER)
    page = reverse("admin:transfers_transfer_act", args=[quote(order_id), slug])
    assert asked(make_stale(client).get(page))
    form = {"reason": "The bank said so.", "token": str(uuid4())}
    assert asked(client.post(page, form))
    assert Transfer.objects.get().state == "submitted"
    assert confirm(client, client.post(page, form)).status_code == 302
    assert Transfer.objects.get().state == ("succeeded" if slug == "arrived" else "failed")


def test_money_is_written_off_only_after_a_confirmation(shop: Shop, bank: SandboxBankClient) -> None:
    seller = Seller(shop, bank)
    reversal = seller.reverse(seller.sale(), 150_001)
    client = make_stale(staff_client("prasit", "view_banktransaction", "write_off_exception"))
    url = act_page(reversal.id, "write-off")
    assert asked(client.get(url))
    assert asked(client.post(url, act_form(reason="The bank confirmed it.")))
    assert not Resolution.objects.exists()


@pytest.mark.parametrize(("action", "is_asked"), [("send-back", True), ("accept", False)])
def test_money_is_sent_back_only_after_a_confirmation(
    shop: Shop, bank: SandboxBankClient, client: Client, action: str, is_asked: bool
) -> None:
    subject = Seller(shop, bank).mismatch()
    url = act_page(subject.id, action)
    answer = make_stale(client).post(url, act_form(reason="The payer called."))
    assert asked(answer) == is_asked
    assert Resolution.objects.exists() != is_asked
