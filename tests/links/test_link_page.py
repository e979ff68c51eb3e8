"""The page of a payment link: what visitors see, and the codes that they make."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from core import clock
from core.http.rate_limits import RateLimit
from links import page, services
from links.models import LinkCode
from payments.models import Payment
from tests.concurrency import run_concurrently
from tests.conftest import Shop
from tests.links.conftest import LinkShop, Visitor, code_of

ROWS_READ = """
SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0) FROM pg_stat_xact_user_tables
WHERE relname = 'payments_payment'
"""


def read_code(qr_code_id: str) -> str:
    return Client().get(f"/pay/{qr_code_id}?lang=en").content.decode()


def test_page_shows_shop_amount_description_and_reference(links: LinkShop) -> None:
    link = links.link(description="Two lamps", reference="INV-7")
    shown = Visitor(link).read().content.decode()
    for text in ("Somtam House", "฿1,500.00", "Two lamps", "INV-7", "Pay"):
        assert text in shown
    assert LinkCode.objects.count() == 0


def test_page_has_no_script_and_may_not_be_framed(links: LinkShop) -> None:
    answer = Visitor(links.link()).read()
    assert "<script" not in answer.content.decode()
    policy = answer.headers["Content-Security-Policy"]
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy


def test_pay_makes_a_code_with_what_the_link_says(links: LinkShop) -> None:
    link = links.link(description="Two lamps", reference="INV-7", metadata={"table": 4}, expiry_minutes=30)
    payment = links.payment_of(Visitor(link).code())
    assert payment["payment_link_id"] == link["payment_link_id"]
    assert (payment["amount"], payment["description"], payment["reference"], payment["metadata"]) == (
        *(150_000, "Two lamps", "INV-7"),
        {"table": 4},
    )
    assert links.read(link)["open_codes"] == 1


def test_visitor_who_returns_sees_the_open_code(links: LinkShop) -> None:
    visitor = Visitor(links.link(max_payments=None))
    code = visitor.code()
    assert code_of(visitor.read()) == code
    assert code_of(visitor.pay()) == code
    assert Visitor(visitor.link).code() != code


def test_visitor_gets_another_code_when_the_first_has_expired(links: LinkShop) -> None:
    visitor = Visitor(links.link())
    first = visitor.code()
    with time_machine.travel(clock.now() + timedelta(minutes=16)):
        assert f'href="{visitor.path}?lang=en">Get a new code' in read_code(first)
        assert visitor.read().status_code == 200
        assert code_of(visitor.pay()) != first


def test_paid_link_shows_its_payer_the_payment_and_others_that_it_is_paid(links: LinkShop) -> None:
    visitor, other = Visitor(links.link()), Visitor({})
    other.link = visitor.link
    code = visitor.code()
    links.paid(code)
    assert code_of(visitor.read()) == code
    assert code_of(visitor.pay()) == code
    for answer in (other.read(), other.pay()):
        assert answer.status_code == 410
        assert "This has been paid" in answer.content.decode()
    assert "รายการนี้ชำระแล้ว" in other.read("th").content.decode()
    assert links.read(visitor.link)["status"] == "completed"


def test_link_of_many_payments_takes_the_next_of_a_visitor_who_paid(links: LinkShop) -> None:
    visitor = Visitor(links.link(max_payments=None))
    first = visitor.code()
    links.paid(first)
    shown = visitor.read()
    assert shown.status_code == 200
    assert first in shown.content.decode()
    assert visitor.code() != first
    assert links.read(visitor.link) | {"payments": 1, "open_codes": 1} == links.read(visitor.link)


def test_both_payments_of_a_link_for_one_succeed_and_are_counted(links: LinkShop) -> None:
    link = links.link()
    codes = [Visitor(link).code(), Visitor(link).code()]
    for code in codes:
        links.paid(code)
    assert [links.payment_of(code)["status"] for code in codes] == ["succeeded", "succeeded"]
    found = links.read(link)
    assert (found["status"], found["payments"], found["max_payments"]) == ("completed", 2, 1)


def test_visitor_whose_money_waits_for_a_decision_sees_it(links: LinkShop) -> None:
    visitor = Visitor(links.link())
    code = visitor.code()
    made = links.shop.get(f"/v1/qr-codes/{code}").json()
    assert links.bank.notify(made, satang=1_000).status_code == 200
    with time_machine.travel(clock.now() + timedelta(minutes=16)):
        assert code_of(visitor.read()) == code
        assert code_of(visitor.pay()) == code


def test_expired_and_deactivated_links_make_no_codes(links: LinkShop) -> None:
    expires_at = clock.iso(clock.now() + timedelta(days=30))
    expired, ended = links.link(expires_at=expires_at), links.link()
    open_code = Visitor(ended).code()
    assert links.deactivate(ended).json()["status"] == "deactivated"
    with time_machine.travel(clock.now() + timedelta(days=30, seconds=1)):
        assert links.read(expired)["status"] == "expired"
        for link, text in ((expired, "This link has expired"), (ended, "The shop has ended this link")):
            for answer in (Visitor(link).read(), Visitor(link).pay()):
                assert answer.status_code == 410
                assert text in answer.content.decode()
                assert "Somtam House" in answer.content.decode()
    links.paid(open_code)
    assert links.read(ended)["payments"] == 1


@pytest.mark.parametrize(
    ("written", "satang"), [("250", 25_000), ("1,250.50", 125_050), ("๒๕๐", 25_000), (" 300 บาท ", 30_000)]
)
def test_visitor_chooses_an_amount_within_the_limits(links: LinkShop, written: str, satang: int) -> None:
    link = links.link(amount_min=2_000, amount_max=200_000)
    assert links.payment_of(Visitor(link).code(amount=written))["amount"] == satang


@pytest.mark.parametrize("written", ["", "19.99", "2000.01", "-5", "1e3", "abc", "9" * 30])
def test_other_amounts_are_refused_at_their_field(links: LinkShop, written: str) -> None:
    visitor = Visitor(links.link(amount_min=2_000, amount_max=200_000))
    answer = visitor.pay(amount=written)
    assert answer.status_code == 422
    assert 'id="id_amount_error"' in answer.content.decode()
    assert visitor.pay().status_code == 422
    assert LinkCode.objects.count() == 0


def test_amount_in_the_form_of_a_fixed_link_is_ignored(links: LinkShop) -> None:
    assert links.payment_of(Visitor(links.link()).code(amount="1"))["amount"] == 150_000


CHANGE = "change=1"


def change(visitor: Visitor, amount: str) -> Any:
    return visitor.browser.post(f"{visitor.path}?lang=en&{CHANGE}", {"amount": amount})


def test_visitor_changes_the_amount_of_an_open_code(links: LinkShop) -> None:
    visitor = Visitor(links.link(amount_min=2_000, amount_max=200_000))
    first = visitor.code(amount="250")
    address = f"{visitor.path}?lang=en&amp;{CHANGE}"
    assert f'href="{address}">Change the amount' in read_code(first)
    shown = visitor.browser.get(f"{visitor.path}?lang=en&{CHANGE}").content.decode()
    assert f'action="?lang=en&amp;{CHANGE}"' in shown
    assert "Only if you have not paid." in shown
    assert links.payment_of(first)["status"] == "pending"
    assert change(visitor, "5").status_code == 422
    second = code_of(change(visitor, "300"))
    assert [links.payment_of(code)["status"] for code in (first, second)] == ["expired", "pending"]
    assert links.payment_of(second)["amount"] == 30_000
    assert code_of(visitor.read()) == second
    assert links.read(visitor.link)["open_codes"] == 1


def test_nobody_changes_a_code_of_another_visitor_or_a_fixed_amount(links: LinkShop) -> None:
    visitor = Visitor(links.link(amount_min=2_000, amount_max=200_000))
    code = visitor.code(amount="250")
    other = Visitor(visitor.link)
    assert code_of(change(other, "300")) != code
    assert links.payment_of(code)["status"] == "pending"
    fixed = Visitor(links.link())
    code = fixed.code()
    assert "Change the amount" not in read_code(code)
    assert code_of(change(fixed, "300")) == code


def test_code_with_money_or_of_an_ended_link_keeps_its_amount(links: LinkShop) -> None:
    visitor = Visitor(links.link(amount_min=2_000, amount_max=200_000, max_payments=None))
    held = visitor.code(amount="250")
    made = links.shop.get(f"/v1/qr-codes/{held}").json()
    assert links.bank.notify(made, satang=1_000).status_code == 200
    assert code_of(change(visitor, "300")) == held
    ended = Visitor(links.link(amount_min=2_000, amount_max=200_000))
    code = ended.code(amount="250")
    links.deactivate(ended.link)
    assert code_of(change(ended, "300")) == code
    assert links.payment_of(code)["status"] == "pending"


def test_code_that_is_paid_while_its_amount_changes_stays(
    links: LinkShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    visitor = Visitor(links.link(amount_min=2_000, amount_max=200_000))
    code = visitor.code(amount="250")
    change_amount = services.change_amount

    def pay_first(*args: Any, **fields: Any) -> Payment:
        links.paid(code)
        return change_amount(*args, **fields)

    monkeypatch.setattr(services, "change_amount", pay_first)
    answer = change(visitor, "300")
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{visitor.path}?lang=en")
    assert (code_of(visitor.read()), LinkCode.objects.count()) == (code, 1)


def test_suspended_shop_takes_no_payment_and_its_page_says_so(links: LinkShop, shop: Shop) -> None:
    visitor, paid = Visitor(links.link()), Visitor(links.link())
    code = paid.code()
    links.paid(code)
    shop.merchant.suspended_at = clock.now()
    shop.merchant.save()
    for answer in (visitor.read(), visitor.pay()):
        assert answer.status_code == 403
        assert "The shop cannot take this payment now" in answer.content.decode()
    assert code_of(paid.read()) == code


@pytest.mark.parametrize("cookie", ["", "x", "1234567890123456789012:forged"])
def test_forged_cookie_is_a_new_visitor(links: LinkShop, cookie: str) -> None:
    link = links.link()
    victim, forger = Visitor(link), Visitor(link)
    code = victim.code()
    forger.browser.cookies["visitor"] = cookie
    assert forger.read().status_code == 200
    assert forger.code() != code


def test_cookie_of_one_link_is_not_valid_at_another(links: LinkShop) -> None:
    first, second = Visitor(links.link()), Visitor(links.link())
    code = first.code()
    second.browser.cookies["visitor"] = first.browser.cookies["visitor"].value
    assert second.code() != code
    cookie = first.browser.cookies["visitor"]
    assert (cookie["path"], cookie["httponly"], cookie["samesite"]) == (first.path, True, "Lax")


def test_form_of_another_site_makes_no_code_and_leaves_the_cookie(links: LinkShop) -> None:
    path = Visitor(links.link()).path
    # Browsers send no cookie with it (SameSite).
    answer = Client().post(f"{path}?lang=en", headers={"Sec-Fetch-Site": "cross-site"})
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{path}?lang=en")
    assert (LinkCode.objects.count(), len(answer.cookies)) == (0, 0)
    assert Client().post(path, headers={"Sec-Fetch-Site": "same-origin"}).status_code == 303
    assert LinkCode.objects.count() == 1


@pytest.mark.parametrize("rate", ["NETWORK_RATE", "LINK_RATE"])
def test_codes_of_a_network_and_of_a_link_are_limited(
    links: LinkShop, monkeypatch: pytest.MonkeyPatch, rate: str
) -> None:
    monkeypatch.setattr(page, rate, RateLimit(per_second=0.001, burst=1))
    visitor = Visitor(links.link())
    code = visitor.code()
    refused = Visitor(visitor.link).pay()
    assert (refused.status_code, "Retry-After" in refused.headers) == (429, True)
    assert code_of(visitor.pay()) == code


def test_unknown_link_and_other_methods_are_refused(links: LinkShop) -> None:
    assert Client().get("/pay/links/pl_000000000000000000000000000").status_code == 404
    assert Client().get("/pay/links/x").status_code == 404
    assert Client().put(Visitor(links.link()).path).status_code == 405


def test_codes_of_links_do_not_hold_their_reference(links: LinkShop, shop: Shop) -> None:
    shop.merchant.refuses_open_reference = True
    shop.merchant.save()
    link = links.link(reference="INV-7")
    assert Visitor(link).code() != Visitor(link).code()


def test_page_costs_the_same_after_many_payments(links: LinkShop) -> None:
    link = links.link(max_payments=None)
    counts = []
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            Visitor(link).read()
        counts.append(len(queries))
        links.paid(Visitor(link).code())
    assert counts[0] == counts[1]


def test_code_of_a_link_without_an_end_reads_no_other_payments(links: LinkShop) -> None:
    link, read = links.link(max_payments=None), []
    with connection.cursor() as cursor:
        # A connection that has made many codes has one plan for all links.
        cursor.execute("SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off")
        for _ in range(2):
            cursor.execute(ROWS_READ)
            before = cursor.fetchone()[0]
            Visitor(link).pay()
            cursor.execute(ROWS_READ)
            read.append(cursor.fetchone()[0] - before)
            for _ in range(5):
                links.paid(Visitor(link).code())
    assert read[0] == read[1]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_fifty_presses_of_one_visitor_make_one_code(links: LinkShop) -> None:
    visitor = Visitor(links.link())
    visitor.read()
    cookie = visitor.browser.cookies["visitor"].value

    def press() -> str:
        again = Visitor(visitor.link)
        again.browser.cookies["visitor"] = cookie
        return code_of(again.pay())

    assert len(set(run_concurrently(*[press] * 50))) == 1
    assert LinkCode.objects.count() == 1


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_fifty_visitors_make_fifty_codes(links: LinkShop) -> None:
    link = links.link()
    codes = run_concurrently(*[lambda: Visitor(link).code()] * 50)
    assert len(set(codes)) == 50
    assert links.read(link)["open_codes"] == 50
