"""A customer in a browser buys in a shop of WooCommerce and pays by QR code."""

import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.systems.woocommerce.conftest import AMOUNT, SETTINGS, Shop, connect, keep
from tests.systems.woocommerce.wordpress import PLUGIN

pytestmark = pytest.mark.slow
BUTTON = "Pay by Thai QR code"
CUSTOMER = {
    "first_name": "Somchai",
    "last_name": "Jaidee",
    "address_1": "1 Silom Road",
    "city": "Bang Rak",
    "postcode": "10500",
    "phone": "0812345678",
}


def put_into_cart(customer: Page, shop: Shop) -> None:
    customer.goto(f"/?add-to-cart={shop.product}")


def buy_in_the_classic_checkout(customer: Page, shop: Shop) -> None:
    put_into_cart(customer, shop)
    customer.goto("/classic-checkout/")
    for name, value in CUSTOMER.items():
        customer.locator(f"#billing_{name}").fill(value)
    customer.locator("#billing_email").fill("somchai@shop.example")
    customer.locator("#billing_state").select_option("TH-10", force=True)
    customer.get_by_role("button", name=BUTTON).click()


def buy_in_the_checkout_block(customer: Page, shop: Shop) -> None:
    put_into_cart(customer, shop)
    customer.goto("/checkout/")
    customer.locator("#email").fill("somchai@shop.example")
    for name, value in CUSTOMER.items():
        customer.locator(f"#billing-{name}").fill(value)
    customer.get_by_role("button", name=BUTTON).click()


def order_on(page: Page) -> int:
    """The order to which the payment page leads back."""
    back = parse_qs(urlsplit(page.url).query)["return_url"][0]
    found = re.search(r"order-received/(\d+)", back)
    assert found
    return int(found[1])


def test_settings_test_address_key_and_webhook(shop: Shop, pictures: Path | None) -> None:
    connect(shop.staff, shop.proxy.base_url, shop.key)
    expect(shop.staff.get_by_text("Address and key are right. This is a test key")).to_be_visible()
    expect(shop.staff.get_by_text("The webhook works: a signed message arrived.")).to_be_visible()
    hooks = shop.client.get("/v1/webhooks")["webhooks"]
    assert [(hook["status"], hook["verification"]) for hook in hooks] == [("active", "verified")]
    assert shop.key not in shop.staff.content()
    keep(shop.staff.locator("#mainform"), pictures, "settings")


@pytest.mark.parametrize(
    ("address", "key", "text"),
    [
        ("", "tq_test_wrong", "The payment service refuses the key"),
        ("http://127.0.0.1:1", "", "The payment service does not answer"),
        ("http://pay.example.com", "", "begins with https://"),
    ],
)
def test_settings_say_what_is_wrong(shop: Shop, address: str, key: str, text: str) -> None:
    connect(shop.staff, address or shop.proxy.base_url, key)
    expect(shop.staff.get_by_text(text)).to_be_visible()
    connect(shop.staff, shop.proxy.base_url, shop.key)


def test_settings_need_a_person_of_the_staff(shop: Shop, customer: Page) -> None:
    customer.goto(SETTINGS)
    assert "wp-login.php" in customer.url


def test_customer_pays_on_the_payment_page(shop: Shop, customer: Page, pictures: Path | None) -> None:
    buy_in_the_classic_checkout(customer, shop)
    customer.wait_for_url(f"{shop.client.base_url}/pay/**")
    order_id = order_on(customer)
    order = shop.site.order(order_id)
    assert (order["status"], order["paid"]) == ("pending", False)
    code = shop.code(order_id)
    assert (code["amount"], code["reference"]) == (AMOUNT, str(order_id))
    shop.client.pay(code)
    expect(customer.get_by_role("heading", name="Paid")).to_be_visible(timeout=30_000)
    customer.get_by_role("link", name="Back to the shop").click()
    expect(customer.get_by_text("Thank you. Your order has been received.")).to_be_visible()
    expect(customer.locator(".thaiqr-state")).to_have_count(0)
    order = shop.site.wait_for_status(order_id, "processing")
    assert order["transaction_id"] == code["payment_id"]
    assert order["total"] == "150.25"


def test_customer_pays_in_the_shop(shop: Shop, customer: Page, pictures: Path | None) -> None:
    shop.settings(display="shop")
    try:
        buy_in_the_checkout_block(customer, shop)
        expect(customer.get_by_alt_text("Thai QR code")).to_be_visible()
        customer.wait_for_function("document.querySelector('img[alt=\"Thai QR code\"]').naturalWidth > 100")
        keep(customer.locator("main"), pictures, "code")
        found = re.search(r"order-pay/(\d+)", customer.url)
        assert found
        shop.client.pay(shop.code(int(found[1])))
        expect(customer.get_by_text("Thank you. Your order has been received.")).to_be_visible(timeout=30_000)
        assert shop.site.order(int(found[1]))["status"] == "processing"
    finally:
        shop.settings(display="page")


def test_customer_reads_thai(shop: Shop, customer: Page) -> None:
    languages = shop.site.folder / "wp-content" / "languages"
    languages.mkdir(exist_ok=True)
    shutil.copy(PLUGIN / "languages" / "thai-qr-payments-th.mo", languages / "th.mo")
    shop.site.php("update_option( 'WPLANG', 'th' );")
    try:
        put_into_cart(customer, shop)
        customer.goto("/classic-checkout/")
        expect(customer.get_by_role("button", name="ชำระด้วยคิวอาร์โค้ด")).to_be_visible()
    finally:
        shop.site.php("update_option( 'WPLANG', '' );")


def test_return_of_the_browser_pays_nothing(shop: Shop, customer: Page) -> None:
    order_id, _ = shop.open_order()
    customer.goto(f"/checkout/order-received/{order_id}/?key={shop.site.order(order_id)['key']}")
    expect(customer.get_by_text("We wait for the bank to report your payment.")).to_be_visible()
    assert shop.site.order(order_id)["status"] == "pending"


def test_state_of_an_order_needs_its_key(shop: Shop, customer: Page) -> None:
    order_id, _ = shop.open_order()
    url = f"{shop.site.url}/wp-json/thaiqr/v1/orders/{order_id}"
    assert customer.request.get(url).status == 404
    assert customer.request.get(f"{url}?key=wc_order_other").status == 404
    answer = customer.request.get(f"{url}?key={shop.site.order(order_id)['key']}")
    assert answer.json() == {"state": "open"}


@pytest.mark.parametrize("page", ["/classic-checkout/", "/checkout/"])
def test_customer_reads_that_the_service_is_down(shop: Shop, customer: Page, page: str) -> None:
    buy = buy_in_the_classic_checkout if "classic" in page else buy_in_the_checkout_block
    known = shop.proxy.target
    shop.proxy.target = "http://127.0.0.1:1"
    try:
        buy(customer, shop)
        text = "We cannot make a QR code at this moment. Nothing was charged."
        expect(customer.get_by_text(text).first).to_be_visible(timeout=30_000)
    finally:
        shop.proxy.target = known


def test_method_is_for_baht_only(shop: Shop, customer: Page) -> None:
    shop.site.php("update_option( 'woocommerce_currency', 'USD' );")
    try:
        put_into_cart(customer, shop)
        customer.goto("/classic-checkout/")
        expect(customer.get_by_text("there are no available payment methods")).to_be_visible()
    finally:
        shop.site.php("update_option( 'woocommerce_currency', 'THB' );")
