"""What becomes of a cart when money arrives, also late, twice, in another amount, and without a webhook."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser, expect
from thaiqr import webhooks

from tests.flows import flawed_proxy
from tests.flows.flawed_proxy import FlawedProxy
from tests.stack import wait_until
from tests.systems.medusa.conftest import AMOUNT, BACK, SCOPES, SECRET, Checkout, Shop, post
from tests.systems.medusa.medusa import RefusedError
from tests.systems.merchants import new_key
from tests.webhook_receiver import ReceivedRequest, Script

pytestmark = pytest.mark.slow


def succeeded(checkout: Checkout) -> dict[str, Any]:
    """The data of the event that the payment of a cart succeeded."""
    known = {name: checkout.code[name] for name in ("payment_id", "qr_code_id", "amount", "amount_display")}
    more = {"status": "succeeded", "currency": "THB", "failure_code": None, "reference": None}
    return known | more | {"metadata": {"medusa_session": checkout.session_id}}


def test_webhook_captures_the_payment_and_places_the_order(shop: Shop) -> None:
    checkout = shop.check_out()
    code = shop.client.get(f"/v1/qr-codes/{checkout.code['qr_code_id']}")
    assert (code["amount"], code.get("reference")) == (AMOUNT, None)
    assert code["metadata"] == {"medusa_session": checkout.session_id}
    assert (checkout.code["qr_data"], checkout.code["expires_at"]) == (code["qr_data"], code["expires_at"])
    assert checkout.code["payment_page_url"].startswith(code["payment_page_url"])
    shop.pay(checkout)
    order = shop.wait_for_order(checkout)
    assert order["payment_status"] == "captured"
    assert [each["amount"] for each in order["transactions"]] == [150.25]
    assert shop.payment(order)["captured_at"]


def test_customer_pays_on_the_payment_page_and_finds_the_way_back(shop: Shop, browser: Browser) -> None:
    checkout = shop.check_out()
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(checkout.code["payment_page_url"])
        expect(page.get_by_text("150.25").first).to_be_visible()
        shop.pay(checkout)
        back = page.get_by_role("link", name="Back to the shop")
        expect(page.get_by_text("Paid").first).to_be_visible(timeout=30_000)
        expect(back).to_have_attribute("href", BACK)
    assert shop.wait_for_order(checkout)["payment_status"] == "captured"


def test_unpaid_cart_is_not_completed(shop: Shop) -> None:
    checkout = shop.check_out()
    with pytest.raises(RefusedError, match="not authorized"):
        shop.medusa.store("POST", f"/carts/{checkout.cart_id}/complete")
    assert shop.orders(checkout) == []


def test_storefront_completes_a_paid_cart_before_any_message(shop: Shop) -> None:
    with shop.without_webhooks():
        checkout = shop.check_out()
        shop.pay_unheard(checkout)
        answer = shop.medusa.store("POST", f"/carts/{checkout.cart_id}/complete")
        assert answer["type"] == "order"
        shop.read_events()
    (order,) = shop.orders(checkout)
    assert (order["payment_status"], len(order["transactions"])) == ("captured", 1)


def test_messages_at_once_place_one_order(shop: Shop) -> None:
    with shop.without_webhooks():
        checkout = shop.check_out()
        shop.pay_unheard(checkout)
        body, headers = webhooks.signed_message(
            "payment.succeeded", succeeded(checkout), SECRET, event_id="evt_1"
        )
        with ThreadPoolExecutor(5) as pool:
            feed = pool.submit(shop.read_events)
            sent = [pool.submit(post, shop, body, headers) for _ in range(4)]
            assert {each.result() for each in sent} == {200}
            feed.result()
    shop.read_events()
    order = shop.wait_for_order(checkout)
    assert (order["payment_status"], len(order["transactions"])) == ("captured", 1)
    assert len(order["payment_collections"][0]["payments"]) == 1
    assert shop.notes(checkout) == []


def test_messages_that_are_not_genuine_ask_nothing_and_change_nothing(shop: Shop) -> None:
    with shop.without_webhooks():
        checkout = shop.check_out()
        shop.pay_unheard(checkout)
        data, before = succeeded(checkout), len(shop.proxy.requests)
        other = webhooks.signed_message(
            "payment.succeeded", data, "whsec_" + "b3RoZXIh" * 5, event_id="evt_2"
        )
        body, headers = webhooks.signed_message("payment.succeeded", data, SECRET, event_id="evt_3")
        old = webhooks.signed_headers(body, message_id="evt_3", secret=SECRET, timestamp=1_700_000_000)
        spaced = body.replace(b":", b": ", 1)  # the same JSON, but not the bytes that were signed
        known = shop.medusa.log.count("is not genuine")
        for message in (other, (body, old), (spaced, headers), (body, {"Content-Type": "application/json"})):
            assert post(shop, *message) == 200
        wait_until(lambda: shop.medusa.log.count("is not genuine") == known + 4, 30)
        assert shop.orders(checkout) == []
    assert not [each for each in shop.proxy.requests[before:] if checkout.payment_id in each.path]


def test_paid_message_about_an_unpaid_code_places_no_order(shop: Shop) -> None:
    """Genuine or not: the service is asked before anything is captured."""
    checkout = shop.check_out()
    body, headers = webhooks.signed_message(
        "payment.succeeded", succeeded(checkout), SECRET, event_id="evt_4"
    )
    assert post(shop, body, headers) == 200
    wait_until(lambda: f"authorize payment session - {checkout.session_id}" in shop.medusa.log, 30)
    assert shop.orders(checkout) == []


def test_events_find_what_no_webhook_told(shop: Shop) -> None:
    with shop.without_webhooks():
        checkout = shop.check_out()
        shop.pay_unheard(checkout)
        assert shop.orders(checkout) == []
        shop.read_events()
    assert shop.wait_for_order(checkout)["payment_status"] == "captured"


def test_events_are_read_each_minute(shop: Shop) -> None:
    with shop.without_webhooks(), shop.proxy.with_events():
        checkout = shop.check_out()
        shop.pay_unheard(checkout)
        wait_until(lambda: bool(shop.orders(checkout)), 120)


def test_events_of_another_merchant_begin_at_the_start(shop: Shop) -> None:
    """The key was replaced by one of another merchant, whose events have other numbers."""
    with shop.without_webhooks():
        checkout = shop.check_out()
        shop.pay_unheard(checkout)
        with psycopg.connect(shop.medusa.database_url, autocommit=True) as connection:
            connection.execute("UPDATE thaiqr_cursor SET sequence = 1000000, event_id = 'evt_of_another'")
        shop.read_events()
    assert shop.wait_for_order(checkout)["payment_status"] == "captured"


def test_event_that_always_fails_is_left_out_in_the_end(shop: Shop) -> None:
    """A payment whose session breaks Medusa: its cart is gone from the database."""
    with shop.without_webhooks():
        broken, other = shop.check_out(), shop.check_out()
        for each in (broken, other):
            shop.pay_unheard(each)
        with psycopg.connect(shop.medusa.database_url, autocommit=True) as connection:
            breaks = "UPDATE payment_session SET provider_id = 'pp_gone' WHERE id = %s"
            connection.execute(breaks, [broken.session_id])
        for _ in range(9):
            shop.read_events()
        assert shop.orders(other) == []
        shop.read_events()
    assert shop.orders(broken) == []
    assert shop.wait_for_order(other)["payment_status"] == "captured"
    notes = shop.medusa.admin("GET", "/notifications?limit=200&channel=feed")["notifications"]
    assert len([note for note in notes if "It could not be applied" in note["data"]["description"]]) == 1


@pytest.mark.parametrize(
    ("scenario", "text", "orders"),
    [
        ("under", "Paid too little: 75.12 THB arrived instead of 150.25 THB. Accept or return it", 0),
        ("over", "Paid too much: 300.50 THB arrived instead of 150.25 THB. Accept or return it", 0),
        ("twice", "Paid twice: 150.25 THB arrived once more. Return it", 1),
    ],
)
def test_money_that_does_not_fit_is_a_notification_and_in_the_data(
    shop: Shop, scenario: str, text: str, orders: int
) -> None:
    checkout = shop.check_out()
    shop.pay(checkout, scenario)
    note = shop.wait_for_note(checkout, text)
    assert len(shop.orders(checkout)) == orders
    if orders:
        order = shop.wait_for_order(checkout)
        assert f"of order #{order['display_id']}:" in note
    data = shop.payment(order)["data"] if orders else shop.session(checkout)["data"]
    (exception,) = data["exceptions"]
    assert (exception["status"], exception["amount_display"] in text) == ("open", True)


def test_late_money_waits_and_places_the_order_when_it_is_accepted(shop: Shop) -> None:
    checkout = shop.check_out()
    shop.end_code(checkout)
    shop.pay(checkout, "late")
    shop.wait_for_note(checkout, "Paid late: 150.25 THB arrived after the code had expired")
    assert shop.session(checkout)["status"] == "canceled"
    assert shop.orders(checkout) == []
    shop.decide(checkout, "accept")
    assert shop.wait_for_order(checkout)["payment_status"] == "captured"


def test_cart_whose_money_waits_cannot_be_changed_or_paid_again(shop: Shop) -> None:
    checkout = shop.check_out()
    shop.pay(checkout, "under")
    shop.wait_for_note(checkout, "Paid too little")
    with pytest.raises(RefusedError):
        shop.check_out(checkout.cart_id)
    with pytest.raises(RefusedError):
        shop.add_to(checkout.cart_id)
    assert shop.session(checkout)["data"]["payment_id"] == checkout.payment_id
    assert shop.medusa.store("GET", f"/carts/{checkout.cart_id}")["cart"]["total"] == 150.25


def test_customer_pays_again_after_money_went_back(shop: Shop) -> None:
    checkout = shop.check_out()
    shop.pay(checkout, "under")
    shop.wait_for_note(checkout, "Paid too little")
    shop.decide(checkout, "return")
    shop.wait_for_note(checkout, "75.12 THB, went back to the customer")
    second = shop.check_out(checkout.cart_id)
    assert second.payment_id != checkout.payment_id
    shop.pay(second)
    assert shop.wait_for_order(second)["payment_status"] == "captured"


def test_cart_that_changes_ends_its_code(shop: Shop) -> None:
    checkout = shop.check_out()
    shop.add_to(checkout.cart_id)
    assert shop.client.get(f"/v1/qr-codes/{checkout.code['qr_code_id']}")["status"] == "expired"
    second = shop.check_out(checkout.cart_id)
    assert second.code["amount"] == 2 * AMOUNT
    shop.pay(second)
    order = shop.wait_for_order(second)
    assert [each["amount"] for each in order["transactions"]] == [300.5]


def test_paid_cart_is_not_changed_before_its_order(shop: Shop) -> None:
    with shop.without_webhooks():
        checkout = shop.check_out()
        shop.pay_unheard(checkout)
        with pytest.raises(RefusedError):
            shop.add_to(checkout.cart_id)
        shop.read_events()
    order = shop.wait_for_order(checkout)
    assert [each["amount"] for each in order["transactions"]] == [150.25]


def test_code_that_was_replaced_and_paid_late_is_not_forgotten(shop: Shop) -> None:
    checkout = shop.check_out()
    shop.end_code(checkout)
    second = shop.check_out(checkout.cart_id)
    shop.pay(second)
    shop.wait_for_order(second)
    shop.pay(checkout, "late")
    shop.wait_for_note(checkout, "Paid late")
    shop.decide(checkout, "accept")
    shop.wait_for_note(checkout, "The customer paid 150.25 THB, but its cart has another code now")
    assert len(shop.orders(second)) == 1


def test_paid_cart_that_cannot_be_completed_is_refunded_and_a_notification(shop: Shop) -> None:
    """Its product needs shipping now, and it has none. Medusa sends the money back by itself."""
    checkout = shop.check_out()
    with psycopg.connect(shop.medusa.database_url, autocommit=True) as connection:
        breaks = "UPDATE cart_line_item SET requires_shipping = true WHERE cart_id = %s"
        connection.execute(breaks, [checkout.cart_id])
    shop.pay(checkout)
    shop.client.wait_for_status(checkout.code, "refunded")
    shop.wait_for_note(checkout, "its cart could not be completed")
    assert shop.orders(checkout) == []


def test_declined_payment_leaves_the_cart_unpaid(shop: Shop) -> None:
    checkout = shop.check_out()
    shop.pay(checkout, "declined")
    shop.client.wait_for_status(checkout.code, "failed")
    shop.read_events()
    assert shop.session(checkout)["status"] == "error"
    second = shop.check_out(checkout.cart_id)
    shop.pay(second)
    assert shop.wait_for_order(second)["payment_status"] == "captured"


def test_fields_of_the_storefront_do_not_become_those_of_the_payment(shop: Shop) -> None:
    forged = {
        "payment_id": "pay_forged",
        "amount": 1,
        "refunds": "x",
        "exceptions": "x",
        "status": "captured",
    }
    checkout = shop.check_out(data=forged)
    assert checkout.payment_id.startswith("pay_")
    assert [checkout.code[name] for name in ("amount", "refunds", "exceptions", "status")] == [
        AMOUNT, [], [], "pending"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "flaw",
    [flawed_proxy.loses_answer, flawed_proxy.cuts_answer, flawed_proxy.fails, flawed_proxy.is_busy],
    ids=lambda flaw: flaw.__name__,
)
def test_lost_answer_makes_one_code(shop: Shop, flaw: flawed_proxy.Flaw) -> None:
    cart_id = shop.cart()
    shop.proxy.flaws = [flaw]
    checkout = shop.check_out(cart_id)
    found = shop.client.get(f"/v1/payments?metadata[medusa_session]={checkout.session_id}")["payments"]
    assert [each["payment_id"] for each in found] == [checkout.payment_id]


def test_service_that_is_down_leaves_the_cart_unpaid(shop: Shop) -> None:
    cart_id = shop.cart()
    known, shop.proxy.target = shop.proxy.target, "http://127.0.0.1:1"
    try:
        with pytest.raises(RefusedError, match="The payment service cannot be used at this moment"):
            shop.check_out(cart_id)
        shop.read_events()
    finally:
        shop.proxy.target = known
    checkout = shop.check_out(cart_id)
    shop.pay(checkout)
    assert shop.wait_for_order(checkout)["payment_status"] == "captured"


def test_revoked_key_is_named_in_the_log_and_the_order_follows_with_a_new_one(shop: Shop) -> None:
    revoked = new_key(shop.stack, shop.client.merchant_id, SCOPES)
    shop.stack.manage("revoke_key", revoked.removeprefix("tq_test_")[:8])

    def sends_revoked_key(proxy: FlawedProxy, request: ReceivedRequest) -> Script:
        request.headers["authorization"] = f"Bearer {revoked}"
        return proxy.forward(request)

    checkout = shop.check_out()
    shop.proxy.flaws = [sends_revoked_key] * 1_000
    try:
        with pytest.raises(RefusedError, match="The payment service cannot be used at this moment"):
            shop.check_out()
        assert "401 authentication_failed" in shop.medusa.log
        shop.pay(checkout)
        shop.client.wait_for_status(checkout.code, "succeeded")
        shop.read_events()
        assert shop.orders(checkout) == []
    finally:
        shop.proxy.flaws = []
    shop.read_events()
    assert shop.wait_for_order(checkout)["payment_status"] == "captured"


def test_secrets_are_in_no_log(shop: Shop) -> None:
    shop.paid_order()
    assert shop.key not in shop.medusa.log
    assert SECRET not in shop.medusa.log
