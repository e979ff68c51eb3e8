"""The first page: figures of a period in Bangkok days, and what waits for staff."""

import re
from datetime import date, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.home import attention, figures
from console.home.period import Period, PeriodError, parse
from core import clock
from counts import counting
from ledger import services as ledger
from ledger.journal_types import JournalType
from merchants.models import Mode
from payments.models import Payment
from reconciliation.models import InquiryAnswer
from refunds.destinations import Destination
from tests.conftest import SandboxBankClient, Shop
from tests.counts.closing import close_future
from tests.factories import MerchantFactory
from tests.reconciliation.builders import Seller, decide
from tests.settlements.conftest import ReportingAcquirer, acquirer, item_of
from tests.webhooks.builders import NOW, make_endpoint, publish, set_health
from tests.withdrawals.builders import ACCOUNT
from transfers.models import CircuitBreaker

__all__ = ["acquirer"]

TODAY = date(2026, 11, 21)


def shown(client: Client, query: str = "") -> str:
    response = client.get(f"/admin/?{query}")
    assert response.status_code == 200
    return re.sub(r"\s+", " ", response.content.decode())


def tile(page: str, title: str) -> str:
    """The number below a title."""
    found = re.search(rf'<h2>{title}</h2><p class="number">([^<]*)</p>', page)
    assert found, title
    return found[1]


def notice(page: str, label: str) -> tuple[str, str]:
    """The colour and the text of what waits."""
    found = re.search(rf'class="notice (\w+)"[^>]*><span>{label}</span><strong>([^<]*)<', page)
    assert found, label
    return found[1], found[2]


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ({}, TODAY, TODAY),
        ({"from": "2026-11-01"}, date(2026, 11, 1), TODAY),
        ({"from": "2026-11-01", "to": "2026-11-30"}, date(2026, 11, 1), date(2026, 11, 30)),
        ({"from": "2026-12-01"}, date(2026, 12, 1), date(2026, 12, 1)),
        ({"from": "2026-08-22", "to": "2026-11-21"}, date(2026, 8, 22), TODAY),
    ],
)
def test_period_is_whole_days(query: dict[str, str], first: date, last: date) -> None:
    assert parse(query, TODAY) == Period(first, last)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"from": "2026-11-22", "to": "2026-11-21"}, "before"),
        ({"from": "2026-08-21", "to": "2026-11-21"}, "92 days"),
        *(({"from": text}, "YYYY-MM-DD") for text in ("x", "21/11/2026", "0001-01-01", "9999-12-31", "\0")),
    ],
)
def test_wrong_period_is_explained(query: dict[str, str], message: str) -> None:
    with pytest.raises(PeriodError, match=message):
        parse(query, TODAY)


@pytest.mark.slow
def test_page_shows_today_if_the_period_is_wrong(admin_client: Client) -> None:
    page = shown(admin_client, "from=2026-11-22&to=2026-11-21")
    assert "The last day is before the first day." in page


@pytest.mark.slow
def test_period_begins_and_ends_at_midnight_in_bangkok(
    shop: Shop, bank: SandboxBankClient, noon: datetime
) -> None:
    midnight = noon.astimezone(clock.BANGKOK).replace(hour=0)
    with time_machine.travel(midnight - timedelta(milliseconds=1), tick=False) as moved:
        bank.notify(shop.qr_code(amount=100))
        moved.move_to(midnight)
        bank.notify(shop.qr_code(amount=2_000))
        moved.move_to(midnight + timedelta(days=1) - timedelta(milliseconds=1))
        bank.notify(shop.qr_code(amount=30_000))
        moved.move_to(midnight + timedelta(days=1))
        bank.notify(shop.qr_code(amount=400_000))
    counting.roll_up()
    day = midnight.date()
    found = figures.read(Period(day, day), Mode.TEST)
    assert (found.received.count, found.received.amount) == (2, 32_000)
    assert [bar.received.amount for bar in found.bars] == [2_000, *[0] * 22, 30_000]
    three_days = Period(day - timedelta(days=1), day + timedelta(days=1))
    found = figures.read(three_days, Mode.TEST)
    assert [bar.received.amount for bar in found.bars] == [100, 32_000, 400_000]
    (merchant,) = figures.merchants(three_days, Mode.TEST)
    assert (merchant.id, merchant.volume, merchant.payments) == (shop.merchant.id, 432_100, 4)
    assert figures.merchants(Period(day, day), Mode.TEST)[0].volume == 32_000


@pytest.mark.parametrize("days", [1, 2, 3, 40])
@pytest.mark.slow
def test_merchants_of_a_period_have_the_sum_of_its_hours(
    shop: Shop, bank: SandboxBankClient, noon: datetime, days: int
) -> None:
    close_future()
    first = noon.astimezone(clock.BANGKOK).replace(hour=0)
    for hours in range(0, 24 * (days + 2), 7 * days):
        with time_machine.travel(first - timedelta(days=1) + timedelta(hours=hours), tick=False):
            bank.notify(shop.qr_code(amount=100 + hours))
    counting.roll_up()
    period = Period(first.date(), first.date() + timedelta(days=days - 1))
    (merchant,) = figures.merchants(period, Mode.TEST)
    found = figures.read(period, Mode.TEST)
    assert (merchant.volume, merchant.payments) == (found.received.amount, found.received.count)
    assert found.received.count > 0


@pytest.mark.slow
def test_home_shows_volume_success_rate_refunds_and_pending(
    shop: Shop, bank: SandboxBankClient, admin_client: Client, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as moved:
        paid = shop.qr_code(amount=150_000)
        bank.notify(paid)
        shop.qr_code(amount=100, expiry_minutes=1)
        moved.shift(timedelta(minutes=2))
        counting.roll_up()
        page = shown(admin_client, "mode=test")
    assert tile(page, "Received") == "1,500.00 THB"
    assert "1 payment" in page
    assert shop.merchant.name in page


@pytest.mark.slow
def test_live_and_test_money_are_apart(shop: Shop, bank: SandboxBankClient, admin_client: Client) -> None:
    close_future()
    bank.notify(shop.qr_code(amount=150_000))
    counting.roll_up()
    assert tile(shown(admin_client), "Received") == "1,500.00 THB"
    MerchantFactory(mode=Mode.LIVE, bank="scb")
    assert tile(shown(admin_client), "Received") == "0.00 THB"
    assert tile(shown(admin_client, "mode=test"), "Received") == "1,500.00 THB"
    assert tile(shown(admin_client, "mode=x"), "Received") == "1,500.00 THB"
    assert tile(shown(admin_client, "mode=live"), "Received") == "0.00 THB"


@pytest.mark.slow
def test_home_of_live_money_has_no_deliveries_and_endpoints_of_test_merchants(
    shop: Shop, admin_client: Client
) -> None:
    MerchantFactory(mode=Mode.LIVE, bank="scb")
    with time_machine.travel(NOW, tick=False):
        make_endpoint(shop)
        publish(shop, 3, at=NOW - timedelta(minutes=5))
        assert notice(shown(admin_client, "mode=test"), "Deliveries") == (
            "bad",
            "3 due, 0 wait for their endpoint",
        )
        live = shown(admin_client, "mode=live")
    assert notice(live, "Deliveries") == ("good", "0 due, 0 wait for their endpoint")
    assert notice(live, "Webhook endpoints") == ("good", "0 active, 0 failing, 0 paused, 0 disabled")
    for name in ("delivery", "endpoint"):
        (link,) = re.findall(rf'href="(/admin/webhooks/{name}/[^"]+mode=live[^"]*)"', live)
        assert shop.merchant.id not in admin_client.get(link.replace("&amp;", "&")).content.decode()


@pytest.mark.slow
def test_home_of_live_money_has_no_approvals_of_sandbox_money(
    shop: Shop, bank: SandboxBankClient, admin_client: Client, settings: Any
) -> None:
    """Also if it belongs to no merchant."""
    settings.APPROVAL_ITEM_LIMIT = 100_000
    MerchantFactory(mode=Mode.LIVE, bank="scb")
    decide("send_back", Seller(shop, bank).unmatched(), destination=Destination("004", ACCOUNT, "Som"))
    assert notice(shown(admin_client), "Approvals") == ("good", "none")
    tone, text = notice(shown(admin_client, "mode=test"), "Approvals")
    assert (tone, text.partition(",")[0]) == ("wait", "1 waits")
    for mode, count in (("live", 0), ("test", 1)):
        (link,) = re.findall(
            r'href="(/admin/approvals/[^"]+mode=[^"]+)"', shown(admin_client, f"mode={mode}")
        )
        answer: Any = admin_client.get(link.replace("&amp;", "&"))
        assert len(answer.context["cl"].result_list) == count


def test_home_of_live_money_has_no_answers_of_the_sandbox_bank(shop: Shop, admin_client: Client) -> None:
    payment = Payment.objects.get(pk=shop.qr_code()["payment_id"])
    now = clock.now()
    InquiryAnswer.objects.create(payment=payment, outcome="no_answer", answered_at=now, duration_ms=20)
    CircuitBreaker.objects.create(
        route="bank:sandbox", first_failed_at=now, open_until=now + timedelta(days=1)
    )
    assert attention.banks(Mode.LIVE, now) == []
    assert [(each.bank, each.answers) for each in attention.banks(Mode.TEST, now)] == [("sandbox", 1)]


@pytest.mark.slow
def test_endpoint_that_fails_is_not_green_on_home(shop: Shop, admin_client: Client) -> None:
    make_endpoint(shop)
    assert notice(shown(admin_client), "Webhook endpoints")[0] == "good"
    set_health(make_endpoint(shop), consecutive_failures=17, last_error="http_5xx")
    expected = ("wait", "1 active, 1 failing, 0 paused, 0 disabled")
    assert notice(shown(admin_client), "Webhook endpoints") == expected


@pytest.mark.slow
def test_home_names_open_exceptions_and_their_age(
    shop: Shop, bank: SandboxBankClient, admin_client: Client, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as moved:
        bank.notify(shop.qr_code(amount=150_000), satang=100)
        moved.shift(timedelta(hours=3))
        page = shown(admin_client, "mode=test")
    assert "1 waits, the oldest for 3 hours" in page
    assert "reconciliationexception/?mode=test" in page


def test_user_without_rights_sees_no_figures(db: None, shop: Shop, bank: SandboxBankClient) -> None:
    close_future()
    bank.notify(shop.qr_code(amount=150_000))
    counting.roll_up()
    client = Client()
    client.force_login(User.objects.create_user("malee", is_staff=True))
    page = shown(client)
    assert "1,500.00" not in page
    assert "Exceptions" not in page
    assert "Choose a task in the menu." in page


def test_user_sees_figures_with_the_right_to_view_payments(shop: Shop, bank: SandboxBankClient) -> None:
    close_future()
    bank.notify(shop.qr_code(amount=150_000))
    counting.roll_up()
    person = User.objects.create_user("malee", is_staff=True)
    person.user_permissions.add(Permission.objects.get(codename="view_payment"))
    client = Client()
    client.force_login(person)
    page = shown(client)
    assert tile(page, "Received") == "1,500.00 THB"
    assert shop.merchant.name not in page


@pytest.mark.slow
def test_number_of_statements_does_not_depend_on_payments(
    shop: Shop, bank: SandboxBankClient, admin_client: Client
) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as captured:
            shown(admin_client, "from=2026-11-01&mode=test")
        return len(captured)

    close_future()
    bank.notify(shop.qr_code(amount=150_000))
    counting.roll_up()
    statements()  # the session keeps the mode
    before: Any = statements()
    for amount in (100, 200, 300):
        bank.notify(shop.qr_code(amount=amount))
    counting.roll_up()
    assert statements() == before <= 26


@pytest.mark.slow
def test_home_shows_fees_net_and_what_is_on_the_way(
    shop: Shop, acquirer: ReportingAcquirer, admin_client: Client, noon: datetime
) -> None:
    """What a transfer settles later stays a fee of its day."""
    with time_machine.travel(noon, tick=False) as moved:
        charges = [acquirer.charge(shop.merchant, ago=timedelta(hours=hours)) for hours in (1, 2)]
        acquirer.charge(shop.merchant, fee=None, ago=timedelta(hours=1))
        acquirer.transfer(item_of(charges[0]), ago=timedelta(minutes=1))
        acquirer.read()
        moved.shift(timedelta(minutes=2))
        counting.roll_up()
        page = shown(admin_client, "mode=test")
        live = shown(admin_client, "mode=live")
    assert [tile(page, title) for title in ("Received", "Fees", "Net")] == [
        "3,000.00 THB",
        "78.12 THB",
        "2,921.88 THB",
    ]
    assert "with 5.12 THB VAT" in page
    assert tile(page, '<a href="/admin/on-the-way/">On the way</a>') == "1,960.94 THB"
    assert "2 card payments, now" in page
    values = re.findall(r'<td class="amount">([^<]+)</td>', page.partition("<tbody>")[2])
    assert values[30:33] == ["1,000.00 THB (1)", "39.06 THB", "960.94 THB"]
    assert values[33:36] == ["2,000.00 THB (2)", "39.06 THB", "1,960.94 THB"]
    assert [tile(live, title) for title in ("Fees", "Net")] == ["0.00 THB", "0.00 THB"]


@pytest.mark.slow
def test_fees_of_live_banks_and_acquirers_are_live_money(db: None, noon: datetime) -> None:
    merchant = MerchantFactory(mode=Mode.LIVE, bank="scb")
    for number, source in enumerate(("bank:scb", "acquirer:omise", "bank:sandbox")):
        credit = ledger.Credit(merchant.id, f"pay_{number}", 100_000, fee=ledger.Fee(10 + number, 1))
        ledger.credit([credit], type=JournalType.PAYMENT, source=source, now=noon)
    today = Period(noon.date(), noon.date())
    found = {mode: figures.read(today, mode) for mode in (Mode.LIVE, Mode.TEST)}
    assert (found[Mode.LIVE].fees, found[Mode.LIVE].fee_vat) == (23, 2)
    assert (found[Mode.TEST].fees, found[Mode.TEST].fee_vat) == (13, 1)


@pytest.mark.slow
def test_home_names_open_questions_and_late_settlements_with_their_age(
    shop: Shop, acquirer: ReportingAcquirer, admin_client: Client, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as moved:
        acquirer.transfer(item_of(acquirer.charge(shop.merchant)), state="sent", ago=timedelta(days=3))
        acquirer.read()
        page = shown(admin_client)
        for label in ("Questions about settlements", "Late settlements"):
            assert notice(page, label) == ("good", "none")
        moved.shift(timedelta(days=2))
        acquirer.read()
        moved.shift(timedelta(hours=3))
        page = shown(admin_client)
        live = shown(admin_client, "mode=live")
    assert notice(page, "Questions about settlements") == ("wait", "1 waits, the oldest for 3 hours")
    assert notice(page, "Late settlements") == ("bad", "1 waits, the oldest for 5 days")
    assert notice(live, "Questions about settlements") == ("good", "none")
    admin_client.force_login(User.objects.get(username="admin"))  # the session was of another time
    (link,) = re.findall(r'href="(/admin/settlements/openquestion/[^"]+)"', page)
    assert "The transfer has not arrived in time" in admin_client.get(link.replace("&amp;", "&")).text


@pytest.mark.slow
def test_sum_of_very_many_fees_is_a_lower_bound(
    admin_client: Client, noon: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "MAX_FEES", 1)
    merchant = MerchantFactory(mode=Mode.TEST)
    credit = ledger.Credit(merchant.id, "pay_1", 100_000, fee=ledger.Fee(10, 1))
    with time_machine.travel(noon, tick=False):
        ledger.credit([credit], type=JournalType.PAYMENT, source="acquirer:sandbox", now=noon)
        page = shown(admin_client, "mode=test")
    assert tile(page, "Fees") in ("≥ 0.10 THB", "≥ 0.01 THB")
    assert tile(page, "Net").startswith("≤ ")
    assert '<th class="amount">Fees</th>' not in page
