"""What becomes of an order or an invoice when its customer pays, also late, twice and without a webhook."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser, expect
from thaiqr import webhooks

from tests.flows import flawed_proxy
from tests.flows.flawed_proxy import FlawedProxy
from tests.stack import wait_until
from tests.systems.merchants import new_key
from tests.systems.odoo.conftest import AMOUNT, BAHT, SCOPES, Payment, Shop
from tests.systems.odoo.odoo import RefusedError, json_rpc
from tests.webhook_receiver import ReceivedRequest, Script

pytestmark = pytest.mark.slow


def order_state(shop: Shop, payment: Payment) -> str:
    state: str = shop.odoo.read("sale.order", payment.document[1], "state")["state"]
    return state


def succeeded(shop: Shop, payment: Payment) -> dict[str, Any]:
    """The data of the event that a payment succeeded."""
    known = {
        name: payment.code[name] for name in ("payment_id", "qr_code_id", "amount", "reference", "metadata")
    }
    return known | {"status": "succeeded", "currency": "THB", "failure_code": None}


def post(shop: Shop, body: bytes, headers: dict[str, str]) -> int:
    """Send the shop a message; return the status of its answer."""
    url = f"{shop.odoo.url}/payment/thai_qr/webhook/{shop.provider}"
    return requests.post(url, body, headers=headers, timeout=60).status_code


def secret_of(shop: Shop) -> str:
    secret: str = shop.odoo.read("payment.provider", shop.provider, "thai_qr_secret")["thai_qr_secret"]
    return secret


def test_webhook_confirms_the_order_and_posts_the_payment(shop: Shop) -> None:
    payment = shop.start_order()
    tx = shop.tx(payment)
    assert (payment.code["amount"], payment.code["reference"]) == (AMOUNT, tx["reference"])
    assert (tx["state"], tx["thai_qr_id"]) == ("draft", payment.code["payment_id"])
    shop.pay(payment)
    posted = shop.wait_for_posting(payment)
    found = shop.client.get(f"/v1/payments/{payment.code['payment_id']}")
    assert (posted["amount"], posted["payment_type"]) == (BAHT, "inbound")
    assert found["bank_reference"] in posted["memo"]
    assert shop.tx(payment)["provider_reference"] == found["bank_reference"]
    assert order_state(shop, payment) == "sale"


def test_webhook_pays_the_invoice(shop: Shop) -> None:
    payment = shop.start("account.move", shop.invoice())
    shop.pay(payment)
    shop.wait_for_posting(payment)
    invoice = shop.odoo.read("account.move", payment.document[1], "payment_state", "amount_residual")
    assert (invoice["payment_state"], invoice["amount_residual"]) in [("paid", 0), ("in_payment", 0)]


def test_customer_pays_in_a_browser_and_comes_back(shop: Shop, browser: Browser) -> None:
    order_id = shop.order()
    with browser.new_context() as context:
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.goto(shop.portal("sale.order", order_id))
        page.get_by_role("button", name="Pay").click()
        page.wait_for_url("**/pay/qr_*")
        code = shop.client.get(f"/v1/qr-codes/{page.url.rpartition('/')[2].partition('?')[0]}")
        shop.client.pay(code)
        expect(page.get_by_text("Paid").first).to_be_visible(timeout=60_000)
        page.get_by_role("link", name="Back to the shop").click()
        page.wait_for_url(f"**/my/orders/{order_id}**", timeout=60_000)
    assert shop.odoo.read("sale.order", order_id, "state")["state"] == "sale"


def test_page_leads_back_and_speaks_the_language_of_the_customer(shop: Shop) -> None:
    payment = shop.start_order()
    assert payment.form.fields == {"return_url": f"{shop.odoo.url}/payment/status", "lang": "en"}
    page = requests.get(payment.form.url, payment.form.fields, timeout=60)
    assert f'href="{shop.odoo.url}/payment/status"' in page.text


def test_customer_who_comes_back_is_enough_without_a_webhook(shop: Shop) -> None:
    with shop.without_webhooks():
        payment = shop.start_order()
        poll = f"{shop.odoo.url}/payment/status/poll"
        assert json_rpc(payment.browser, poll, {})["state"] == "draft"
        shop.pay_unheard(payment)
        assert shop.tx(payment)["state"] == "draft"
        assert json_rpc(payment.browser, poll, {})["state"] == "done"
    assert shop.posting(payment)["amount"] == BAHT
    assert order_state(shop, payment) == "sale"


def test_events_find_what_no_webhook_told(shop: Shop) -> None:
    with shop.without_webhooks():
        payment = shop.start_order()
        shop.pay_unheard(payment)
        assert shop.tx(payment)["state"] == "draft"
        shop.read_events()
        assert shop.tx(payment)["state"] == "done"
    assert shop.wait_for_posting(payment)["amount"] == BAHT


def test_events_are_read_each_minute(shop: Shop) -> None:
    with shop.without_webhooks(), shop.proxy.with_events():
        payment = shop.start_order()
        shop.pay_unheard(payment)
        shop.wait_for_state(payment, "done", 150)


def test_messages_at_once_post_one_payment(shop: Shop) -> None:
    with shop.without_webhooks():
        payment = shop.start_order()
        shop.pay_unheard(payment)
        body, headers = webhooks.signed_message(
            "payment.succeeded", succeeded(shop, payment), secret_of(shop), event_id="evt_1"
        )
        with ThreadPoolExecutor(5) as pool:
            poll = pool.submit(json_rpc, payment.browser, f"{shop.odoo.url}/payment/status/poll", {})
            sent = [pool.submit(post, shop, body, headers) for _ in range(4)]
            assert {each.result() for each in sent} == {200}
            # Odoo tells the browser to ask again if it posts the payment at this moment.
            assert "retry" in str(poll.exception()) or poll.result()["state"] in {"draft", "done"}
    assert shop.wait_for_posting(payment)["amount"] == BAHT


def test_messages_that_are_not_genuine_ask_nothing_and_change_nothing(shop: Shop) -> None:
    with shop.without_webhooks():
        payment = shop.start_order()
        shop.pay_unheard(payment)
        secret, data, before = secret_of(shop), succeeded(shop, payment), len(shop.proxy.requests)
        other = webhooks.signed_message(
            "payment.succeeded", data, "whsec_" + "b3RoZXIh" * 5, event_id="evt_2"
        )
        body, headers = webhooks.signed_message("payment.succeeded", data, secret, event_id="evt_3")
        old = webhooks.signed_headers(body, message_id="evt_3", secret=secret, timestamp=1_700_000_000)
        spaced = body.replace(b":", b": ", 1)  # the same JSON, but not the bytes that were signed
        as_form = {"Content-Type": "application/x-www-form-urlencoded"}
        for message in (other, (body, old), (spaced, headers), (body, {}), (body, as_form)):
            assert post(shop, *message) == 400
        assert shop.tx(payment)["state"] == "draft"
        assert not [each for each in shop.proxy.requests[before:] if payment.code["payment_id"] in each.path]
        shop.read_events()


def test_paid_message_about_an_unpaid_code_confirms_nothing(shop: Shop) -> None:
    """Genuine or not: the service is asked first."""
    payment = shop.start_order()
    body, headers = webhooks.signed_message(
        "payment.succeeded", succeeded(shop, payment), secret_of(shop), event_id="evt_4"
    )
    assert post(shop, body, headers) == 200
    assert (shop.tx(payment)["state"], order_state(shop, payment)) == ("draft", "draft")


@pytest.mark.parametrize(
    ("scenario", "state", "text"),
    [
        ("under", "pending", "Paid too little: 75.12 THB arrived instead of 150.25 THB. Accept or return it"),
        ("over", "pending", "Paid too much: 300.50 THB arrived instead of 150.25 THB. Accept or return it"),
        ("twice", "done", "Paid twice: 150.25 THB arrived once more. Return it"),
    ],
)
def test_money_that_does_not_fit_is_a_message(shop: Shop, scenario: str, state: str, text: str) -> None:
    payment = shop.start_order()
    shop.pay(payment, scenario)
    shop.wait_for_note(payment, text)
    shop.wait_for_state(payment, state)
    assert len([note for note in shop.notes(payment) if text in note]) == 1
    assert text in shop.tx(payment)["state_message"]
    if state == "pending":
        assert order_state(shop, payment) in ("draft", "sent")


def test_late_money_waits_and_confirms_the_order_when_it_is_accepted(shop: Shop) -> None:
    payment = shop.start_order()
    shop.end_code(payment)
    shop.wait_for_state(payment, "cancel")
    shop.pay(payment, "late")
    shop.wait_for_note(payment, "Paid late: 150.25 THB arrived after the code had expired")
    shop.wait_for_state(payment, "pending")
    shop.decide(payment, "accept")
    shop.wait_for_posting(payment)
    assert order_state(shop, payment) == "sale"
    shop.wait_for_note(payment, "The money that did not fit (150.25 THB) was accepted")


def test_books_have_what_arrived_when_too_little_is_accepted(shop: Shop) -> None:
    payment = shop.start("account.move", shop.invoice())
    shop.pay(payment, "under")
    shop.wait_for_state(payment, "pending")
    shop.decide(payment, "accept")
    assert shop.wait_for_posting(payment)["amount"] == 75.12
    assert shop.odoo.read("account.move", payment.document[1], "amount_residual")["amount_residual"] == 75.13


def test_books_have_the_price_when_what_was_too_much_goes_back(shop: Shop) -> None:
    payment = shop.start_order()
    shop.pay(payment, "over")
    shop.wait_for_state(payment, "pending")
    shop.decide(payment, "return", part="excess")
    assert shop.wait_for_posting(payment)["amount"] == BAHT


def test_staff_of_a_thai_company_read_thai(shop: Shop) -> None:
    company = shop.odoo.read("res.company", 1, "partner_id")["partner_id"][0]
    shop.odoo.call("res.partner", "write", [company], {"lang": "th_TH"})
    try:
        payment = shop.start_order()
        shop.pay(payment, "under")
        shop.wait_for_note(payment, "ชำระไม่ครบ: ได้รับ 75.12 THB แทน 150.25 THB")
    finally:
        shop.odoo.call("res.partner", "write", [company], {"lang": "en_US"})


def test_customer_pays_again_after_money_went_back(shop: Shop) -> None:
    payment = shop.start_order()
    shop.pay(payment, "under")
    shop.wait_for_state(payment, "pending")
    shop.decide(payment, "return")
    shop.wait_for_note(payment, "The money that did not fit (75.12 THB) went back to the customer")
    second = shop.start(*payment.document)
    shop.pay(second)
    shop.wait_for_posting(second)
    assert order_state(shop, payment) == "sale"


def test_second_attempt_ends_the_first_code(shop: Shop) -> None:
    payment = shop.start_order()
    second = shop.start(*payment.document)
    assert shop.client.get(f"/v1/qr-codes/{payment.code['qr_code_id']}")["status"] == "expired"
    assert [shop.tx(each)["state"] for each in (payment, second)] == ["cancel", "draft"]
    assert second.code["reference"] != payment.code["reference"]


def test_new_code_of_the_payment_page_pays_too_but_not_twice(shop: Shop) -> None:
    """It has the reference and the metadata of the first one."""
    payment = shop.start_order()
    shop.end_code(payment)
    shop.wait_for_state(payment, "cancel")
    same = {name: payment.code[name] for name in ("amount", "reference", "metadata")}
    second, third = shop.client.qr_code(**same), shop.client.qr_code(**same)
    shop.client.pay(second)
    shop.wait_for_posting(payment)
    assert shop.tx(payment)["thai_qr_id"] == second["payment_id"]
    shop.client.pay(third)
    shop.wait_for_note(payment, f"The customer paid again: 150.25 THB by payment {third['payment_id']}")
    assert shop.posting(payment)["amount"] == BAHT


def test_declined_payment_leaves_the_order_unpaid(shop: Shop) -> None:
    payment = shop.start_order()
    shop.pay(payment, "declined")
    tx = shop.wait_for_state(payment, "error")
    assert "declined the payment" in tx["state_message"]
    assert order_state(shop, payment) in ("draft", "sent")


def test_order_that_changed_is_not_paid_by_its_old_code(shop: Shop) -> None:
    """Its transaction has another amount, as if somebody had changed it."""
    payment = shop.start_order()
    shop.odoo.call("payment.transaction", "write", [payment.tx_id], {"amount": 100})
    shop.pay(payment)
    shop.wait_for_state(payment, "error")
    shop.wait_for_note(payment, "150.25 THB were paid by payment")


@pytest.mark.parametrize(
    "flaw",
    [flawed_proxy.loses_answer, flawed_proxy.cuts_answer, flawed_proxy.fails, flawed_proxy.is_busy],
    ids=lambda flaw: flaw.__name__,
)
def test_lost_answer_makes_one_code(shop: Shop, flaw: flawed_proxy.Flaw) -> None:
    order_id = shop.order()
    shop.proxy.flaws = [flaw]
    payment = shop.start("sale.order", order_id)
    found = shop.client.get(f"/v1/payments?reference={payment.code['reference']}")["payments"]
    assert [each["payment_id"] for each in found] == [payment.code["payment_id"]]


def test_service_that_is_down_leaves_no_transaction(shop: Shop) -> None:
    order_id = shop.order()
    known, shop.proxy.target = shop.proxy.target, "http://127.0.0.1:1"
    try:
        with pytest.raises(RefusedError, match="We cannot make a QR code at this moment"):
            shop.start("sale.order", order_id)
        shop.read_events()
    finally:
        shop.proxy.target = known
    assert shop.odoo.read("sale.order", order_id, "transaction_ids")["transaction_ids"] == []
    payment = shop.start("sale.order", order_id)
    shop.pay(payment)
    shop.wait_for_posting(payment)


def test_message_that_cannot_be_applied_comes_again(shop: Shop) -> None:
    payment = shop.start_order()
    shop.proxy.flaws = [flawed_proxy.cuts_request] * 2
    body, headers = webhooks.signed_message(
        "payment.succeeded", succeeded(shop, payment), secret_of(shop), event_id="evt_5"
    )
    assert post(shop, body, headers) == 503
    assert shop.proxy.flaws == []


def test_revoked_key_is_told_and_the_order_follows_with_a_new_one(shop: Shop) -> None:
    revoked = new_key(shop.stack, shop.client.merchant_id, SCOPES)
    shop.stack.manage("revoke_key", revoked.removeprefix("tq_test_")[:8])

    def sends_revoked_key(proxy: FlawedProxy, request: ReceivedRequest) -> Script:
        request.headers["authorization"] = f"Bearer {revoked}"
        return proxy.forward(request)

    payment = shop.start_order()
    shop.proxy.flaws = [sends_revoked_key] * 1_000
    try:
        with pytest.raises(RefusedError, match="We cannot make a QR code at this moment"):
            shop.start_order()
        with pytest.raises(RefusedError, match="refuses the key"):
            shop.connect()
        shop.pay(payment)
        shop.client.wait_for_status(payment.code, "succeeded")
        shop.read_events()
        assert shop.tx(payment)["state"] == "draft"
    finally:
        shop.proxy.flaws = []
    shop.read_events()
    assert shop.tx(payment)["state"] == "done"


def test_event_that_always_fails_is_left_out_in_the_end(shop: Shop) -> None:
    """A transaction that breaks Odoo: nobody may write it."""
    with shop.without_webhooks():
        broken, other = shop.start_order(), shop.start_order()
        shop.odoo.call("payment.transaction", "write", [broken.tx_id], {"thai_qr_seen": "broken"})
        shop.pay(broken, "under")
        wait_until(
            lambda: bool(shop.client.get(f"/v1/payments/{broken.code['payment_id']}")["exceptions"]), 60
        )
        shop.pay_unheard(other)
        for _ in range(9):
            shop.read_events()
        assert shop.tx(other)["state"] == "draft"
        shop.read_events()
        assert shop.tx(other)["state"] == "done"


def test_settings_are_checked(shop: Shop) -> None:
    for wrong in ("ftp://pay.example", "http://pay.example.com", "https://pay.example.com/path"):
        with pytest.raises(RefusedError, match="begins with https://"):
            shop.settings(thai_qr_address=wrong)
    with pytest.raises(RefusedError, match="choose the state Test Mode"):
        shop.settings(state="enabled")
    with pytest.raises(RefusedError, match="1 to 1440"):
        shop.settings(thai_qr_minutes=0)


def test_button_registers_one_webhook(shop: Shop) -> None:
    assert shop.connect()["message"] == "The webhook works: a signed message arrived."
    assert len([hook for hook in shop.hooks() if hook["status"] == "active"]) == 1


def test_secrets_are_in_no_log(shop: Shop) -> None:
    assert shop.key not in shop.odoo.log
    assert secret_of(shop) not in shop.odoo.log
