"""What becomes of an order when money arrives, also late, twice, in another amount, and without a webhook."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from thaiqr import webhooks

from tests.flows import flawed_proxy
from tests.stack import wait_until
from tests.systems.merchants import new_key
from tests.systems.woocommerce.conftest import SCOPES, Shop, connect
from tests.systems.woocommerce.wordpress import has_note

pytestmark = pytest.mark.slow


def count(order: dict[str, Any], text: str) -> int:
    return sum(text in note for note in order["notes"])


def succeeded(code: dict[str, Any]) -> dict[str, Any]:
    """The data of the event that the payment of a code succeeded."""
    kept = ("payment_id", "amount", "amount_display", "currency", "qr_code_id", "reference", "metadata")
    return {name: code[name] for name in kept} | {"status": "succeeded", "failure_code": None}


def post(shop: Shop, data: dict[str, Any], *, secret: str, event_id: str, age: int = 0) -> int:
    """Send the shop a signed message; return the status of its answer."""
    body, headers = webhooks.signed_message("payment.succeeded", data, secret, event_id=event_id)
    if age:
        at = int((datetime.now(UTC) - timedelta(seconds=age)).timestamp())
        headers = webhooks.signed_headers(body, message_id=event_id, secret=secret, timestamp=at)
    answer = requests.post(f"{shop.site.url}/wp-json/thaiqr/v1/webhook", body, headers=headers, timeout=60)
    return answer.status_code


def test_webhook_completes_the_order(shop: Shop) -> None:
    order_id = shop.paid_order()
    order = shop.site.order(order_id)
    assert count(order, "Paid: 150.25 THB by payment pay_") == 1


def test_messages_at_once_complete_the_order_once(shop: Shop) -> None:
    """A slow extension holds each message before it stores anything, so all of them meet there."""
    slow = "add_action( 'woocommerce_pre_payment_complete', fn() => usleep( 700_000 ) );"
    with shop.without_webhooks(), shop.site.extended(slow):
        order_id, code = shop.open_order()
        data, secret = succeeded(code), shop.webhook()["secret"]
        stock = "return wc_get_product( $arguments[0] )->get_stock_quantity();"
        before = shop.site.php(stock, shop.product)
        with ThreadPoolExecutor(8) as pool:
            sent = [
                pool.submit(post, shop, data, secret=secret, event_id=f"evt_{number}") for number in range(8)
            ]
            assert {each.result() for each in sent} == {200}
    order = shop.site.order(order_id)
    assert (order["status"], order["transaction_id"]) == ("processing", code["payment_id"])
    assert (
        count(order, "Paid:") == count(order, "Order status changed from Pending payment to Processing") == 1
    )
    assert before - shop.site.php(stock, shop.product) == 1


@pytest.mark.parametrize(("seconds_left", "answer"), [(-1, "done"), (60, "busy")], ids=["killed", "working"])
def test_lock_ends_only_with_its_lease(shop: Shop, seconds_left: int, answer: str) -> None:
    """A process that was killed cannot give its lock back."""
    held = f"{int(time.time()) + seconds_left}.of-another-process"
    work = (
        "global $wpdb; $row = array( 'option_name' => 'thaiqr_lock_test', 'option_value' => $arguments[0] );"
        "$wpdb->insert( $wpdb->options, $row );"
        "try { return ThaiQr\\with_lock( 'test', fn() => 'done' ); }"
        "catch ( UnderflowException ) { return 'busy'; }"
        "finally { $wpdb->delete( $wpdb->options, $row ); }"
    )
    assert shop.site.php(work, held) == answer


@pytest.mark.parametrize(
    ("secret", "age"), [("whsec_" + "c2VjcmV0" * 5, 0), (None, 3600)], ids=["of another", "old"]
)
def test_message_that_is_not_genuine_changes_nothing(shop: Shop, secret: str | None, age: int) -> None:
    order_id, code = shop.open_order()
    known = secret or shop.webhook()["secret"]
    assert post(shop, succeeded(code), secret=known, event_id="evt_1", age=age) == 400
    assert shop.site.order(order_id)["status"] == "pending"


def test_message_of_another_shop_changes_nothing(shop: Shop) -> None:
    order_id, code = shop.open_order()
    data = succeeded(code) | {"metadata": code["metadata"] | {"shop": "another"}}
    assert post(shop, data, secret=shop.webhook()["secret"], event_id="evt_2") == 200
    assert shop.site.order(order_id)["status"] == "pending"


def test_feed_finds_what_no_webhook_told(shop: Shop) -> None:
    with shop.without_webhooks():
        order_id, code = shop.open_order()
        shop.client.pay(code)
        shop.client.wait_for_status(code, "succeeded")
        assert shop.site.order(order_id)["status"] == "pending"
        shop.site.follow()
    order = shop.site.order(order_id)
    assert (order["status"], count(order, "Paid:")) == ("processing", 1)


def test_feed_is_read_each_minute(shop: Shop) -> None:
    assert shop.site.php("return as_has_scheduled_action( 'thaiqr_follow' );")


def test_feed_begins_at_the_event_that_failed(shop: Shop) -> None:
    """Another extension breaks the first time that the order is completed."""
    with shop.without_webhooks():
        order_id, code = shop.open_order()
        shop.client.pay(code)
        shop.client.wait_for_status(code, "succeeded")
        breaks = (
            "add_action( 'woocommerce_pre_payment_complete', fn() => throw new Error( 'broken' ) );"
            "do_action( 'thaiqr_follow' );"
        )
        shop.site.php(breaks)
        assert shop.site.order(order_id)["status"] == "pending"
        shop.site.follow()
    assert shop.site.order(order_id)["status"] == "processing"


def test_event_that_always_fails_is_left_out_in_the_end(shop: Shop) -> None:
    with shop.without_webhooks():
        broken, code = shop.open_order()
        other, other_code = shop.open_order()
        for each in (code, other_code):
            shop.client.pay(each)
            shop.client.wait_for_status(each, "succeeded")
        breaks = (
            "add_action( 'woocommerce_pre_payment_complete', function ( $id ) use ( $arguments ) {"
            "  if ( $id === $arguments[0] ) { throw new Error( 'broken' ); } } );"
            "for ( $time = 0; $time < 10; $time++ ) { do_action( 'thaiqr_follow' ); }"
        )
        shop.site.php(breaks, broken)
    assert shop.site.order(broken)["status"] == "pending"
    assert shop.site.order(other)["status"] == "processing"


@pytest.mark.parametrize(
    ("scenario", "text", "status"),
    [
        ("under", "Paid too little: 75.12 THB arrived instead of 150.25 THB. Accept or return", "on-hold"),
        ("over", "Paid too much: 300.50 THB arrived instead of 150.25 THB. Accept or return", "on-hold"),
        ("twice", "Paid twice: 150.25 THB arrived once more. Return it", "processing"),
        ("declined", "The bank of the customer declined the payment", "failed"),
    ],
)
def test_money_that_does_not_fit_is_a_note_with_what_to_do(
    shop: Shop, scenario: str, text: str, status: str
) -> None:
    order_id, code = shop.open_order()
    shop.client.pay(code, scenario)
    order = shop.site.wait_for_note(order_id, text)
    assert (order["status"], count(order, text)) == (status, 1)


def test_late_money_waits_and_completes_the_order_when_it_is_accepted(shop: Shop) -> None:
    order_id, code = shop.open_order()
    shop.client.post(f"/v1/qr-codes/{code['qr_code_id']}/expire", {})
    order = shop.site.wait_for_note(order_id, "Nobody paid the code before it expired")
    assert order["status"] == "pending"
    shop.client.pay(code, "late")
    order = shop.site.wait_for_note(order_id, "Paid late: 150.25 THB arrived after the code had expired")
    assert order["status"] == "on-hold"
    assert shop.check_out(order_id)["redirect"].startswith(f"{shop.site.url}/checkout/order-received/")
    assert len(shop.codes_of(order_id)) == 1
    path = f"/v1/payments/{code['payment_id']}/exceptions"
    shop.client.post(f"{path}/{shop.client.get(path)['exceptions'][0]['exception_id']}/accept", {})
    order = shop.site.wait_for_status(order_id, "processing")
    assert order["transaction_id"] == code["payment_id"]


def test_customer_can_pay_again_after_money_went_back(shop: Shop) -> None:
    order_id, code = shop.open_order()
    shop.client.pay(code, "under")
    shop.site.wait_for_status(order_id, "on-hold")
    path = f"/v1/payments/{code['payment_id']}/exceptions"
    shop.client.post(f"{path}/{shop.client.get(path)['exceptions'][0]['exception_id']}/return", {})
    order = shop.site.wait_for_note(order_id, "went back to the customer")
    assert order["status"] == "pending"


def test_order_whose_total_changed_after_the_payment_waits(shop: Shop) -> None:
    order_id, code = shop.open_order()
    shop.site.php(
        "$order = wc_get_order( $arguments[0] ); $order->set_total( '200.00' ); $order->save();", order_id
    )
    shop.client.pay(code)
    order = shop.site.wait_for_note(order_id, "but the total of this order is another one now")
    assert (order["status"], order["paid"]) == ("on-hold", False)


def test_order_that_was_paid_by_two_codes_says_so(shop: Shop) -> None:
    order_id, code = shop.open_order()
    shop.client.post(f"/v1/qr-codes/{code['qr_code_id']}/expire", {})
    shop.site.wait_for_note(order_id, "Nobody paid")
    assert shop.check_out(order_id)["result"] == "success"
    second = shop.code(order_id)
    assert second["payment_id"] != code["payment_id"]
    shop.client.pay(second)
    shop.site.wait_for_status(order_id, "processing")
    shop.client.pay(code, "late")
    shop.site.wait_for_note(order_id, "Paid late")
    path = f"/v1/payments/{code['payment_id']}/exceptions"
    shop.client.post(f"{path}/{shop.client.get(path)['exceptions'][0]['exception_id']}/accept", {})
    order = shop.site.wait_for_note(order_id, "The customer paid this order again")
    assert (order["status"], order["transaction_id"]) == ("processing", second["payment_id"])


def test_cancelled_order_that_is_paid_is_completed_with_a_note(shop: Shop) -> None:
    order_id, code = shop.open_order()
    shop.site.php("wc_get_order( $arguments[0] )->update_status( 'cancelled' );", order_id)
    shop.client.pay(code)
    shop.site.wait_for_status(order_id, "processing")
    assert has_note(shop.site.order(order_id), "had been cancelled before the money arrived")


def test_order_is_not_cancelled_while_its_code_can_be_paid(shop: Shop) -> None:
    order_id, _ = shop.open_order()
    asks = (
        "$order = wc_get_order( $arguments[0] );"
        "return apply_filters( 'woocommerce_cancel_unpaid_order', true, $order );"
    )
    assert shop.site.php(asks, order_id) is False
    assert shop.site.php(asks, shop.order()) is True


def test_two_clicks_make_one_code(shop: Shop) -> None:
    order_id = shop.order()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(shop.check_out, [order_id] * 4))
    assert {answer["result"] for answer in answers} == {"success"}
    assert len({answer["redirect"] for answer in answers}) == 1
    assert shop.check_out(order_id)["redirect"] == answers[0]["redirect"]
    assert len(shop.codes_of(order_id)) == 1


@pytest.mark.parametrize(
    "flaw",
    [flawed_proxy.loses_answer, flawed_proxy.cuts_answer, flawed_proxy.fails, flawed_proxy.is_busy],
    ids=lambda flaw: flaw.__name__,
)
def test_lost_answer_makes_one_code(shop: Shop, flaw: flawed_proxy.Flaw) -> None:
    order_id = shop.order()
    shop.proxy.flaws = [flaw]
    assert shop.check_out(order_id)["result"] == "success"
    shop.proxy.flaws = [flaw, flaw]
    second = shop.order()
    assert shop.check_out(second)["result"] == "failure"
    assert shop.check_out(second)["result"] == "success"
    assert [len(shop.codes_of(each)) for each in (order_id, second)] == [1, 1]


def test_total_that_changed_makes_a_new_code_and_ends_the_old_one(shop: Shop) -> None:
    order_id, code = shop.open_order()
    shop.site.php(
        "$order = wc_get_order( $arguments[0] ); $order->set_total( '99.50' ); $order->save();", order_id
    )
    assert shop.check_out(order_id)["result"] == "success"
    made = shop.codes_of(order_id)
    assert [(each["amount"], each["status"]) for each in made] == [(9_950, "pending"), (15_025, "expired")]
    assert shop.code(order_id)["payment_id"] == made[0]["payment_id"] != code["payment_id"]


def test_service_that_is_down_leaves_the_order_unpaid(shop: Shop) -> None:
    order_id = shop.order()
    known, shop.proxy.target = shop.proxy.target, "http://127.0.0.1:1"
    try:
        answer = shop.check_out(order_id)
    finally:
        shop.proxy.target = known
    assert answer["result"] == "failure"
    assert [notice.partition(".")[0] for notice in answer["notices"]] == [
        "We cannot make a QR code at this moment"
    ]
    order = shop.site.order(order_id)
    assert order["status"] == "pending"
    assert has_note(order, "The payment service does not answer")


def test_revoked_key_is_named_and_payments_still_arrive(shop: Shop) -> None:
    order_id, code = shop.open_order()
    revoked = new_key(shop.stack, shop.client.merchant_id, SCOPES)
    shop.settings(key=revoked)
    shop.stack.manage("revoke_key", revoked.removeprefix("tq_test_")[:8])
    try:
        second = shop.order()
        assert shop.check_out(second)["result"] == "failure"
        order = shop.site.order(second)
        assert (order["status"], has_note(order, "refuses the key")) == ("pending", True)
        shop.client.pay(code)
        shop.site.wait_for_status(order_id, "processing")
    finally:
        connect(shop.staff, shop.proxy.base_url, shop.key)


def test_copy_of_the_shop_at_another_address_touches_nothing(shop: Shop) -> None:
    asks = (
        "add_filter( 'option_home', fn() => 'https://copy.example' );"
        "return WC()->payment_gateways()->payment_gateways()['thaiqr']->is_available();"
    )
    assert shop.site.php(asks) is False
    before = len(shop.proxy.requests)
    shop.site.php(
        "add_filter( 'option_home', fn() => 'https://copy.example' ); do_action( 'thaiqr_follow' );"
    )
    assert len(shop.proxy.requests) == before


def test_secrets_are_in_no_log(shop: Shop) -> None:
    order_id = shop.order()
    shop.proxy.flaws = [flawed_proxy.fails]
    shop.check_out(order_id)
    logs = [*(shop.site.folder / "wp-content" / "uploads" / "wc-logs").glob("thai-qr-payments*.log")]
    wait_until(lambda: bool(logs), 1)
    text = "".join(log.read_text() for log in logs)
    assert re.search(r"POST /v1/qr-codes: 502", text)
    assert shop.key not in text
    assert shop.webhook()["secret"] not in text
    warnings = (shop.site.folder / ".." / "debug.log").read_text().splitlines()
    assert not [line for line in warnings if "thai-qr-payments" in line]
