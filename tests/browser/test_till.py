"""The till in a browser: it says what arrived, loses nothing without a network, and sees the other tills."""

import io
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Error, Page, Route, expect

from core.thai.slips import Slip, slip_payload
from qrcodes import images
from tests.browser.conftest import DESKTOP, PHONE, serious_faults
from tests.flows.conftest import ShopClient, pay_from_an_unknown_account
from tests.reconciliation.claims.builders import NO_BANK
from tests.stack import Stack

pytestmark = pytest.mark.slow
TILL, CODES = "/shop/till", "**/shop/till/codes"
TABLET = {"width": 820, "height": 1180}
PASSWORD = "correct horse battery"
JOIN = f"""
from django.contrib.auth.models import User
from core import clock
from merchants.models import Merchant
from shop.models import Membership
user = User.objects.create_user("nok", password="{PASSWORD}")
merchant = Merchant.objects.get(keys__public_id="{{public_id}}")
Membership.objects.create(user_id=user.pk, merchant=merchant, role="cashier", created_at=clock.now())
"""
END = """
from allauth.usersessions.models import UserSession
UserSession.objects.get(session_key="{}").end()
"""
# The browser holds money that is not to be shown. Nothing asks the server any more, which would replace it.
KNOWS = """async ([isForeign, isOld]) => {
    const { merchant } = document.getElementById("till").dataset;
    window.fetch = () => new Promise(() => {});
    const arrived = [{amount_display: "999.00 THB", reference: "", till: "", at: new Date().toISOString()}];
    const known = {merchant: isForeign ? "mch_of_a_rival" : merchant, state: {codes: [], arrived}};
    await (await caches.open("till")).put("/shop/till/state", new Response(JSON.stringify(known)));
    const kept = JSON.parse(localStorage.getItem(`till:${merchant}`));
    const heardAt = Date.now() - (isOld ? 9 * 3600000 : 0);
    localStorage.setItem(`till:${merchant}`, JSON.stringify({...kept, heardAt}));
}"""
# A browser without a window has no voices.
VOICES = """
window.said = [];
window.SpeechSynthesisUtterance = function (text) { this.text = text; };
const voices = [{lang: "en-US"}, {lang: "th_TH"}];
const speak = (utterance) => utterance.voice && said.push([utterance.voice.lang, utterance.text]);
Object.defineProperty(window, "speechSynthesis", {value: {getVoices: () => voices, speak}});
"""
TONES = """
window.rang = 0;
const start = OscillatorNode.prototype.start;
OscillatorNode.prototype.start = function (...at) { window.rang += 1; return start.apply(this, at); };
"""
references = (f"Table {number}" for number in count(1))


@pytest.fixture(scope="package")
def cashier_state(stack: Stack, browser: Browser) -> Any:
    """The cookies of a cashier of the demo."""
    stack.manage("shell", "-c", JOIN.format(public_id=stack.secret_key.split("_")[2][:8]))
    with browser.new_context(base_url=stack.base_url) as context:
        page = context.new_page()
        page.goto(TILL)
        page.get_by_label("Username").fill("nok")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"**{TILL}")
        return context.storage_state()


@pytest.fixture
def device(stack: Stack, browser: Browser, cashier_state: Any) -> Iterator[BrowserContext]:
    with browser.new_context(
        base_url=stack.base_url, viewport=PHONE, locale="en-US", storage_state=cashier_state
    ) as context:
        context.add_init_script(VOICES)
        yield context


def open_till(context: BrowserContext, name: str = "Counter 1") -> Page:
    page = context.new_page()
    page.goto(TILL)
    page.get_by_label("Name of this till").fill(name)
    page.get_by_role("button", name="Save").click()
    return page


def tap(page: Page, amount: str, reference: str = "") -> None:
    for key in amount:
        page.get_by_role("button", name=key, exact=True).click()
    page.locator("#reference").fill(reference)
    page.locator("#pad .button").click()


def shown_code(page: Page, client: ShopClient) -> Any:
    """The code, once its picture is there."""
    picture = page.locator("#picture")
    expect(picture).to_be_visible(timeout=20_000)
    expect(picture).not_to_have_js_property("naturalWidth", 0)
    return client.get(f"/v1/qr-codes/{picture.get_attribute('data-of')}")


def pay(client: ShopClient, code: Any) -> None:
    client.pay(code)
    client.wait_for_status(code, "succeeded")


def photograph(code: bytes) -> bytes:
    """12 megapixels of a camera, with the code in a sixth of their width."""
    photo, written = Image.effect_noise((3000, 4000), 15).convert("RGB"), io.BytesIO()
    photo.paste(Image.open(io.BytesIO(code)).resize((500, 500)).convert("RGB"), (1700, 3100))
    photo.save(written, "JPEG", quality=90)
    return written.getvalue()


def made(client: ShopClient, reference: str) -> int:
    return int(client.get(f"/v1/payments?reference={reference}")["total"])


@pytest.mark.parametrize(
    ("language", "heading", "voice", "words"),
    [
        ("en-US", "Paid", "en-US", "Money received: one hundred baht and twenty-five satang"),
        ("th-TH", "จ่ายเงินแล้ว", "th_TH", "ได้รับเงิน หนึ่งร้อยบาทยี่สิบห้าสตางค์"),
    ],
)
def test_paid_code_turns_green_and_its_amount_is_said_aloud(
    stack: Stack, browser: Browser, cashier_state: Any, shop_client: ShopClient,
    language: str, heading: str, voice: str, words: str,
) -> None:  # fmt: skip
    with browser.new_context(
        base_url=stack.base_url, viewport=PHONE, locale=language, storage_state=cashier_state
    ) as context:
        context.add_init_script(VOICES)
        page = context.new_page()
        page.goto(TILL)
        page.locator("#new-name").fill("Counter 1")
        page.locator("#naming .button").click()
        tap(page, "100.25")
        code = shown_code(page, shop_client)
        assert code["amount"] == 10_025
        expect(page.locator("#shop")).to_be_visible()
        pay(shop_client, code)
        expect(page.locator("#code h2")).to_have_text(heading)
        expect(page.locator("#code")).to_have_css("background-color", "rgb(19, 122, 75)")
        assert page.evaluate("said") == [[voice, words]]
        page.reload()
        page.locator("#back").click()
        expect(page.locator("#arrived li").first).to_contain_text("Counter 1")
        assert page.evaluate("said") == []


def test_device_without_a_voice_rings(
    stack: Stack, browser: Browser, cashier_state: Any, shop_client: ShopClient
) -> None:
    with browser.new_context(base_url=stack.base_url, storage_state=cashier_state) as context:
        context.add_init_script(TONES)
        page = open_till(context)
        tap(page, "1")
        pay(shop_client, shown_code(page, shop_client))
        expect(page.locator("#code")).to_have_class("paid")
        assert page.evaluate("rang") == 1


def test_code_asked_for_without_a_network_comes_when_it_returns(
    device: BrowserContext, shop_client: ShopClient
) -> None:
    page, reference = open_till(device), next(references)
    device.set_offline(True)
    tap(page, "20", reference)
    expect(page.locator("#code .no-connection")).to_be_visible()
    device.set_offline(False)
    assert shown_code(page, shop_client)["reference"] == reference
    assert made(shop_client, reference) == 1


@pytest.mark.parametrize("then", ["it tries again", "the page is loaded again"])
def test_lost_answer_makes_no_second_code(device: BrowserContext, shop_client: ShopClient, then: str) -> None:
    page, reference, keys = open_till(device), next(references), list[str]()

    def lose_answer(route: Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        assert route.fetch().ok
        route.abort()

    page.route(CODES, lose_answer)
    tap(page, "20", reference)
    expect(page.locator("#code .no-connection")).to_be_visible()
    page.unroute(CODES)
    if then != "it tries again":
        page.reload()
    assert shown_code(page, shop_client)["reference"] == reference
    assert len(keys) >= 1
    assert made(shop_client, reference) == 1


def wait_for_worker(page: Page) -> None:
    page.wait_for_function("navigator.serviceWorker.ready")
    page.wait_for_function("caches.match('/shop/till/state')")


def kept(page: Page) -> Any:
    """The addresses of what the browser keeps of the till."""
    return page.evaluate(
        "caches.open('till').then(c => c.keys()).then(all => all.map(each => new URL(each.url).pathname))"
    )


def test_till_that_is_loaded_without_a_network_shows_what_it_knew_and_says_of_when(
    device: BrowserContext, shop_client: ShopClient
) -> None:
    page, paid, asked_for = open_till(device), next(references), next(references)
    tap(page, "70", paid)
    code = shown_code(page, shop_client)
    pay(shop_client, code)
    expect(page.locator("#code")).to_have_class("paid")
    page.get_by_role("button", name="Next amount").click()
    expect(page.locator("#arrived li", has_text=paid)).to_be_visible()
    wait_for_worker(page)
    device.set_offline(True)
    page.reload()
    expect(page.locator("#till > .no-connection")).to_contain_text("Last update:")
    expect(page.locator("#arrived li", has_text=paid)).to_contain_text("70.00 THB")
    tap(page, "71", asked_for)
    expect(page.locator("#code .no-connection")).to_contain_text("Last update:")
    page.reload()
    expect(page.locator("#code .no-connection")).to_be_visible()
    device.set_offline(False)
    assert shown_code(page, shop_client)["reference"] == asked_for
    expect(page.locator("#code .no-connection")).to_be_hidden()
    assert made(shop_client, asked_for) == 1
    assert page.evaluate("said") == []


def test_till_keeps_only_its_page_its_files_and_the_last_state(device: BrowserContext) -> None:
    page = open_till(device)
    wait_for_worker(page)
    page.reload()
    page.wait_for_function("caches.match('/shop/till')")
    others = [path for path in kept(page) if not path.startswith("/static/")]
    assert sorted(others) == ["/shop/till", "/shop/till/state"]
    assert page.evaluate("navigator.serviceWorker.ready.then(found => found.scope)").endswith("/shop/till")
    page.goto("/shop/")
    assert page.evaluate("navigator.serviceWorker.controller") is None


@pytest.mark.parametrize("why", ["another shop", "too long ago"])
def test_money_of_another_shop_or_shift_is_not_shown_without_a_network(
    device: BrowserContext, why: str
) -> None:
    page = open_till(device)
    wait_for_worker(page)
    page.evaluate(KNOWS, [why == "another shop", why == "too long ago"])
    device.set_offline(True)
    page.reload()
    expect(page.locator("#till > .no-connection")).to_be_visible()
    expect(page.locator("#arrived li")).to_have_count(0)
    device.set_offline(False)
    expect(page.locator("#till > .no-connection")).to_be_hidden()


@pytest.mark.parametrize("how", ["logs out at the till", "logs out elsewhere", "is logged out"])
def test_who_comes_after_a_log_out_sees_nothing_without_a_network(
    stack: Stack, browser: Browser, how: str
) -> None:
    """Also if the till is open in another tab meanwhile."""
    with browser.new_context(base_url=stack.base_url, locale="en-US") as context:
        page = context.new_page()
        page.goto(TILL)
        page.get_by_label("Username").fill("nok")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"**{TILL}")
        wait_for_worker(page)
        other = context.new_page()
        other.goto(TILL)
        if how == "is logged out":
            (session,) = (each for each in context.cookies() if each["name"] == "sessionid")
            stack.manage("shell", "-c", END.format(session["value"]))
            page.reload()
        else:
            if how == "logs out elsewhere":
                page.goto("/shop/people/")
            page.locator("details.account summary").click()
            page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/shop/login/**")
        other.wait_for_url("**/shop/login/**", timeout=20_000)
        page.wait_for_function("caches.has('till').then(is_kept => !is_kept)")
        context.set_offline(True)
        for each in (page, other):
            with pytest.raises(Error, match="net::ERR_"):
                each.goto(TILL)
            expect(each.locator("#till")).to_have_count(0)


def test_payment_during_a_lost_network_is_said_once_when_it_returns(
    device: BrowserContext, shop_client: ShopClient
) -> None:
    page = open_till(device)
    tap(page, "30")
    code = shown_code(page, shop_client)
    device.set_offline(True)
    expect(page.locator("#code .no-connection")).to_be_visible(timeout=20_000)
    pay(shop_client, code)
    device.set_offline(False)
    expect(page.locator("#code")).to_have_class("paid", timeout=20_000)
    assert page.evaluate("said") == [["en-US", "Money received: thirty baht"]]


def test_open_code_survives_a_reload_and_the_next_amount(
    device: BrowserContext, shop_client: ShopClient
) -> None:
    page, reference = open_till(device), next(references)
    tap(page, "40", reference)
    code = shown_code(page, shop_client)
    page.reload()
    assert shown_code(page, shop_client) == code
    page.get_by_role("button", name="Next amount").click()
    tap(page, "50")
    assert shown_code(page, shop_client)["amount"] == 5_000
    page.get_by_role("button", name="Next amount").click()
    page.locator("#open button", has_text=reference).click()
    assert shown_code(page, shop_client) == code
    page.get_by_role("button", name="End this code").click()
    shop_client.wait_for_status(code, "expired")
    expect(page.locator("#open")).not_to_contain_text(reference)


def test_two_tills_see_the_payments_of_each_other(
    stack: Stack, browser: Browser, cashier_state: Any, device: BrowserContext, shop_client: ShopClient
) -> None:
    first, reference = open_till(device, "Counter 1"), next(references)
    with browser.new_context(base_url=stack.base_url, storage_state=cashier_state) as other:
        other.add_init_script(VOICES)
        second = open_till(other, "Counter 2")
        tap(first, "60", reference)
        code = shown_code(first, shop_client)
        expect(second.locator("#open li", has_text=reference)).to_contain_text("Counter 1")
        pay(shop_client, code)
        arrived = second.locator("#arrived li", has_text=reference)
        expect(arrived).to_contain_text("60.00 THB", timeout=10_000)
        expect(arrived).to_contain_text("Counter 1")
        expect(second.locator("#open")).not_to_contain_text(reference)
        assert second.evaluate("said") == []


def test_refused_amount_is_explained_and_stays(device: BrowserContext) -> None:
    page = open_till(device)
    tap(page, "0.50")
    expect(page.locator("#fault")).to_have_text("Enter an amount from 1 to 2,000,000 baht.")
    expect(page.locator("#amount")).to_have_value("0.50")


def test_slip_on_a_picture_is_explained_within_two_seconds(
    stack: Stack, device: BrowserContext, shop_client: ShopClient
) -> None:
    page, code = open_till(device), shop_client.qr_code(reference=next(references))
    slip = pay_from_an_unknown_account(stack, shop_client, code)
    picture = photograph(images.png(slip_payload(Slip(NO_BANK, slip))))
    seconds = []
    for expected in ("Nobody has shown this slip before.", "This slip was shown before"):
        # The driver takes seconds to hand over a large file; a camera does not.
        page.locator("#slip").set_input_files(
            {"name": "slip.jpg", "mimeType": "image/jpeg", "buffer": picture}
        )
        started = time.monotonic()
        findings = page.locator("#findings")
        expect(findings).to_contain_text(expected)
        seconds.append(time.monotonic() - started)
        expect(findings).to_contain_text(f"Order {code['reference']} is paid.")
    assert min(seconds) < 2


@pytest.mark.parametrize("language", ["en-US", "th-TH"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_till_is_readable(
    stack: Stack, browser: Browser, cashier_state: Any, shop_client: ShopClient, language: str, scheme: Any
) -> None:
    with browser.new_context(
        base_url=stack.base_url, locale=language, color_scheme=scheme, storage_state=cashier_state,
        reduced_motion="reduce",
    ) as context:  # fmt: skip
        page = context.new_page()
        page.goto(TILL)
        assert serious_faults(page) == []
        page.locator("#new-name").fill("C" * 40)
        page.locator("#naming .button").click()
        tap(page, "1234567.89", "R" * 35)
        code = shown_code(page, shop_client)
        page.set_viewport_size(PHONE if scheme == "light" else TABLET)  # type: ignore[arg-type]
        assert serious_faults(page) == []
        pay(shop_client, code)
        expect(page.locator("#code")).to_have_class("paid")
        assert serious_faults(page) == []
        page.locator("#back").click()
        for size in (PHONE, TABLET, DESKTOP):
            page.set_viewport_size(size)  # type: ignore[arg-type]
            assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert serious_faults(page) == []
