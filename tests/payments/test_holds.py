"""A merchant can ask that a payment is held whose payer is not the client whom it named."""

import json
from typing import Any

import pytest

from core import clock
from merchants import services as merchants
from merchants.models import HoldsPayers, Merchant
from payments.models import Payment
from reconciliation.matching import services as matching
from reconciliation.models import BankTransaction
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop, open_shop
from tests.error_messages import check_error
from tests.reconciliation.builders import Seller, apply_inquiry_answer, get_page, staff_client
from tests.reconciliation.matching.test_match_rules import store
from tests.shop.people import person_of, row_url
from tests.sqlstates import CHECK_VIOLATION, sqlstate
from tests.staff_acts import act_form, acts_of_staff, run_act, send_act
from transactions.models import Transaction
from webhooks.messages import texts
from webhooks.models import Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
OTHER, UNCLEAR, SAME = "Somying Jaidee", "Somchai", "Somchai Jaidee"
NO_PAYER = {"payer_name": "", "payer_bank_code": "", "payer_account": ""}


@pytest.fixture
def seller(shop: Shop, bank: SandboxBankClient) -> Seller:
    return Seller(shop, bank)


@pytest.fixture
def careful(seller: Seller) -> Seller:
    """Its bank reports that Somchai Jaidee paid."""
    merchants.set_policy(seller.shop.merchant.pk, holds_payers=HoldsPayers.UNKNOWN)
    return seller


def held(seller: Seller, client_name: str = OTHER) -> str:
    code = seller.shop.qr_code(client_name=client_name)
    seller.bank.notify(code)
    return str(code["payment_id"])


def lift(shop: Shop, payment_id: str) -> Any:
    return shop.post(f"/v1/payments/{payment_id}/lift-hold")


def last_event(kind: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(bytes(Event.objects.filter(type=kind).latest("pk").body))
    return event


@pytest.mark.parametrize(
    ("setting", "client_name", "hold"),
    [
        ("off", OTHER, None),
        ("off", UNCLEAR, None),
        ("no", OTHER, "payer_differs"),
        ("no", UNCLEAR, None),
        ("no", SAME, None),
        ("no", None, None),
        ("unknown", OTHER, "payer_differs"),
        ("unknown", UNCLEAR, "payer_unknown"),
        ("unknown", SAME, None),
        ("unknown", None, None),
    ],
)
def test_payment_of_another_payer_is_held_by_the_setting(
    seller: Seller, setting: str, client_name: str | None, hold: str | None
) -> None:
    merchants.set_policy(seller.shop.merchant.pk, holds_payers=HoldsPayers(setting))
    code = seller.shop.qr_code(**({"client_name": client_name} if client_name else {}))
    assert seller.shop.payment(code["payment_id"])["hold"] is None
    seller.bank.notify(code)
    shown = seller.shop.payment(code["payment_id"])
    assert (shown["status"], shown["hold"]) == ("succeeded", hold)
    assert last_event("payment.succeeded")["data"].get("hold") == hold
    assert seller.funds()["available"] == 150_000, "it holds no money"


def test_hold_is_lifted_once(careful: Seller) -> None:
    payment_id, before = held(careful), Transaction.objects.count()
    lifted = lift(careful.shop, payment_id)
    assert (lifted.status_code, lifted.json()["hold"], lifted.json()["payer_matches"]) == (200, None, "no")
    data = last_event("payment.hold_lifted")["data"]
    assert (data["payment_id"], data["status"], data["payer_matches"], "hold" in data) == (
        *(payment_id, "succeeded", "no"),
        False,
    )
    again = lift(careful.shop, payment_id)
    check_error(again.json(), "payment_not_held")
    assert (again.status_code, Event.objects.filter(type="payment.hold_lifted").count()) == (400, 1)
    assert (Transaction.objects.count(), careful.funds()["available"]) == (before, 150_000)
    entries = careful.shop.get(f"/v1/payments/{payment_id}/timeline").json()["timeline"]
    assert [each["actor"][:4] for each in entries if each["type"] == "payment.hold_lifted"] == ["key:"]


@pytest.mark.slow
def test_payments_that_are_not_held_or_of_others_cannot_be_lifted(careful: Seller, other_shop: Shop) -> None:
    payment_id = held(careful)
    for shop, wanted, status, error in (
        (other_shop, payment_id, 404, "payment_not_found"),
        (careful.shop, "pay_\x00", 404, "payment_not_found"),
        (careful.shop, careful.shop.qr_code()["payment_id"], 400, "payment_not_held"),
        (careful.shop, careful.paid(), 400, "payment_not_held"),
    ):
        answer = lift(shop, wanted)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, error)
    assert Payment.objects.get(pk=payment_id).hold == "payer_differs"


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_of_lifts_at_once_one_has_an_event(bank: SandboxBankClient) -> None:
    seller = Seller(open_shop("Somtam House"), bank)
    merchants.set_policy(seller.shop.merchant.pk, holds_payers=HoldsPayers.NO)
    payment_id = held(seller)
    answers = run_concurrently(*[lambda: lift(seller.shop, payment_id)] * 6)
    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 5
    assert Event.objects.filter(type="payment.hold_lifted").count() == 1


@pytest.mark.parametrize(
    ("client", "hold", "events"),
    [({"client_bank_account": "1234567890"}, None, 1), ({"client_name": OTHER}, "payer_differs", 0)],
)
def test_later_report_of_the_payer_ends_the_hold_or_names_it(
    careful: Seller, client: dict[str, str], hold: str | None, events: int
) -> None:
    code = careful.shop.qr_code(**client)
    notification = careful.bank.notification(code)
    apply_inquiry_answer(notification, **NO_PAYER)
    assert Payment.objects.get().hold == "payer_unknown"
    careful.bank.post(notification)
    assert Payment.objects.get().hold == hold
    assert Event.objects.filter(type="payment.hold_lifted").count() == events


@pytest.mark.slow
def test_later_report_does_not_hold_a_lifted_payment_again(careful: Seller) -> None:
    code = careful.shop.qr_code(client_name=OTHER)
    notification = careful.bank.notification(code)
    apply_inquiry_answer(notification, **NO_PAYER)
    assert lift(careful.shop, code["payment_id"]).status_code == 200
    careful.bank.post(notification)
    payment = Payment.objects.get()
    assert (payment.payer_matches, payment.hold) == ("no", None)
    assert Event.objects.filter(type="payment.hold_lifted").count() == 1


def test_full_refund_ends_the_hold_without_an_event(careful: Seller) -> None:
    payment_id = held(careful)
    careful.reverse(careful.bank_transaction(payment_id))
    shown = careful.shop.payment(payment_id)
    assert (shown["status"], shown["hold"]) == ("refunded", None)
    check_error(lift(careful.shop, payment_id).json(), "payment_not_held")
    assert not Event.objects.filter(type="payment.hold_lifted").exists()


def test_list_has_the_held_payments_or_the_others(careful: Seller) -> None:
    payment_id, other = held(careful), careful.paid()
    for value, expected in (("true", [payment_id]), ("false", [other])):
        found = careful.shop.get(f"/v1/payments?hold={value}").json()["payments"]
        assert [each["payment_id"] for each in found] == expected
    refused = careful.shop.get("/v1/payments?hold=yes")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "hold")


@pytest.mark.parametrize(("client_name", "count"), [(SAME, 0), (None, 0), (OTHER, 1)])
def test_setting_is_read_only_if_the_payer_may_be_another(
    seller: Seller, client_name: str | None, count: int, django_assert_num_queries: Any
) -> None:
    code = seller.shop.qr_code(**({"client_name": client_name} if client_name else {}))
    store(seller.bank.notification(code), clock.now())
    bank_transaction, savepoint = BankTransaction.objects.get(), 2
    with django_assert_num_queries(8 + savepoint + count):
        matching.apply(bank_transaction_id=bank_transaction.id, now=clock.now())


def test_database_keeps_holds(careful: Seller) -> None:
    update = "UPDATE payments_payment SET hold = {} WHERE id = %s"
    pending, same = careful.shop.qr_code(client_name=OTHER)["payment_id"], held(careful, SAME)
    for payment_id in (pending, same):
        for value in ("'payer_differs'", "'payer_unknown'"):
            assert sqlstate(update.format(value), payment_id) == CHECK_VIOLATION
    differs, unclear = held(careful), held(careful, UNCLEAR)
    for refused in ("'payer_unknown'", "'yes'"):
        assert sqlstate(update.format(refused), differs) == CHECK_VIOLATION
    assert sqlstate(update.format("'payer_differs'"), unclear) == CHECK_VIOLATION, "its payer is not known"
    assert (
        sqlstate("UPDATE payments_payment SET payer_matches = 'no' WHERE id = %s", unclear) == CHECK_VIOLATION
    )
    assert sqlstate(update.format("'payer_differs', payer_matches = 'no'"), unclear) is None
    for payment_id in (differs, unclear):
        assert sqlstate(update.format("NULL"), payment_id) is None
        assert sqlstate(update.format("'payer_differs'"), payment_id) == CHECK_VIOLATION, "it was lifted"
    assert sqlstate("UPDATE merchants_merchant SET holds_payers = 'all'") == CHECK_VIOLATION


def test_message_to_people_says_not_to_ship(careful: Seller) -> None:
    held(careful)
    lines = [
        texts.write(
            [json.dumps(last_event("payment.succeeded")).encode()], more=0, sender="S", language=each
        ).text
        for each in ("en", "th")
    ]
    assert "do not ship yet" in lines[0]
    assert "อย่าเพิ่งส่งของ" in lines[1]


@pytest.mark.slow
def test_staff_set_it_with_a_reason(shop: Shop) -> None:
    client = staff_client("somsri", "view_merchant", "set_holds")
    run_act(client, Merchant, shop.merchant.id, "hold-payers", holds_payers="unknown")
    assert Merchant.objects.get().holds_payers == "unknown"
    record = acts_of_staff().get()
    assert (record.act, record.after) == ("held_payers_changed", {"holds_payers": "unknown"})
    send_act(client, Merchant, shop.merchant.id, "hold-payers", holds_payers="all")
    viewer = staff_client("malee", "view_merchant")
    assert send_act(viewer, Merchant, shop.merchant.id, "hold-payers", holds_payers="off").status_code == 403
    assert Merchant.objects.get().holds_payers == "unknown"


@pytest.mark.slow
def test_staff_see_why_it_is_held_and_lift_it(careful: Seller) -> None:
    payment_id = held(careful)
    client = staff_client("somsri", "view_payment", "lift_hold")
    page = f"/admin/payments/payment/{payment_id.replace('_', '_5F')}/change/"
    assert "Do not ship yet: another person paid." in get_page(client, page)
    run_act(client, Payment, payment_id, "lift-hold")
    assert (Payment.objects.get().hold, acts_of_staff().get().act) == (None, "hold_lifted")
    shown = get_page(client, page)
    assert "Do not ship yet" not in shown and "The hold ended" in shown
    assert Event.objects.get(type="payment.hold_lifted").actor == "staff:somsri"


@pytest.mark.slow
def test_people_of_the_shop_see_why_it_is_held_and_lift_it(careful: Seller) -> None:
    held(careful)
    payment, owner = Payment.objects.get(), person_of(careful.shop)
    page = row_url(payment)
    assert "Do not ship yet: another person paid." in owner.get(page).content.decode()
    assert owner.post(page.replace("/change/", "/do/lift-hold/"), act_form(), follow=True).status_code == 200
    assert (Payment.objects.get().hold, Event.objects.get(type="payment.hold_lifted").actor[:7]) == (
        None,
        "person:",
    )
