"""The database refuses codes of links that `links.services` does not make."""

import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import IntegrityError

from core import clock, ids
from links import services
from links.models import LinkCode, PaymentLink
from payments.models import Payment
from tests.conftest import Shop
from tests.links.conftest import LinkShop, Visitor
from tests.sqlstates import (
    CHECK_VIOLATION,
    FOREIGN_KEY_VIOLATION,
    NOT_ALLOWED,
    UNIQUE_VIOLATION,
    sqlstate,
    sqlstate_of,
)


def made(
    link: dict[str, Any], *, visitor: str = "other", number: int = 1, amount: int = 150_000
) -> str | None:
    """Make a code without the checks of the service. How the database refuses it."""
    row = PaymentLink.objects.select_related("merchant").get(pk=link["payment_link_id"])
    try:
        services._make_code(row, visitor, number, amount, clock.now())
    except IntegrityError as refused:
        return sqlstate_of(refused)
    return None


def test_code_has_the_amount_of_its_link(links: LinkShop) -> None:
    assert made(links.link(), amount=150_001) == CHECK_VIOLATION
    chosen = links.link(amount_min=200, amount_max=300)
    assert [made(chosen, visitor=str(amount), amount=amount) for amount in (199, 200, 300, 301)] == [
        *(CHECK_VIOLATION, None, None, CHECK_VIOLATION)
    ]


def test_ended_link_has_no_new_codes(links: LinkShop) -> None:
    paid, ended, expired = links.link(), links.link(), links.link()
    links.paid(Visitor(paid).code())
    links.deactivate(ended)
    assert [made(link) for link in (paid, ended, expired)] == [CHECK_VIOLATION, CHECK_VIOLATION, None]
    with time_machine.travel(clock.now() + timedelta(days=367)):
        assert made(expired, visitor="y") == CHECK_VIOLATION


def test_visitor_has_one_open_code(links: LinkShop) -> None:
    link = links.link(max_payments=None)
    assert [made(link, number=number) for number in (2, 0, 1, 1, 2)] == [
        *(CHECK_VIOLATION, CHECK_VIOLATION, None),
        *(UNIQUE_VIOLATION, CHECK_VIOLATION),
    ]
    with time_machine.travel(clock.now() + timedelta(minutes=15)):
        assert made(link, number=2) is None


def test_payment_of_a_link_was_made_by_its_visitor(links: LinkShop, other_shop: Shop) -> None:
    link = links.link(max_payments=None)
    Visitor(link).code()
    copy = "INSERT INTO {0} SELECT (jsonb_populate_record(old, %s::jsonb)).* FROM {0} AS old"
    number = "1" * 27
    new = {"id": f"pay_{number}", "qr_code_id": f"qr_{number}"}
    assert sqlstate(copy.format("payments_payment"), json.dumps(new)) == FOREIGN_KEY_VIOLATION
    assert sqlstate("UPDATE payments_payment SET payment_link_id = NULL") == CHECK_VIOLATION
    plain = links.shop.qr_code()["payment_id"]
    assert sqlstate("UPDATE payments_payment SET payment_link_id = %s WHERE id = %s", "pl_x", plain) == (
        CHECK_VIOLATION
    )
    for payment_id in (plain, other_shop.qr_code()["payment_id"]):
        code = {"payment_id": payment_id, "visitor": "x"}
        assert sqlstate(copy.format("links_linkcode"), json.dumps(code)) == CHECK_VIOLATION
    assert Payment.objects.filter(payment_link_id=link["payment_link_id"]).count() == 1


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        ("amount = 100", CHECK_VIOLATION),
        ("max_payments = 5", CHECK_VIOLATION),
        ("merchant_id = 'mch_x'", CHECK_VIOLATION),
        ("metadata = '{}'", CHECK_VIOLATION),
        ("expires_at = expires_at + interval '1 second'", CHECK_VIOLATION),
        ("expires_at = created_at - interval '1 second'", CHECK_VIOLATION),
        ("status = 'deactivated'", CHECK_VIOLATION),
        ("deactivated_at = now()", CHECK_VIOLATION),
        ("status = 'expired'", CHECK_VIOLATION),
        ("status = 'deactivated', deactivated_at = now()", None),
    ],
)
def test_link_never_changes_but_ends(links: LinkShop, change: str, refusal: str | None) -> None:
    links.link()
    assert sqlstate(f"UPDATE links_paymentlink SET {change}") == refusal


def test_only_payments_that_succeed_are_counted(links: LinkShop) -> None:
    link = links.link(max_payments=None)
    for change in ("payments = 1", "payments = payments + 1, status = 'deactivated', deactivated_at = now()"):
        assert sqlstate(f"UPDATE links_paymentlink SET {change}") == CHECK_VIOLATION
    codes = [Visitor(link).code() for _ in range(3)]
    for code in codes[:2]:
        links.paid(code)
    refund = {"payment_id": links.payment_of(codes[0])["payment_id"], "amount": 150_000}
    assert links.shop.post("/v1/refunds", refund).status_code == 200
    assert links.shop.post(f"/v1/qr-codes/{codes[2]}/expire").status_code == 200
    assert PaymentLink.objects.get().payments == links.read(link)["payments"] == 2
    links.shop.qr_code()
    links.paid(links.shop.qr_code()["qr_code_id"])
    assert links.read(link)["payments"] == 2


def test_deactivated_link_stays_so(links: LinkShop) -> None:
    links.deactivate(links.link())
    for change in (
        "status = 'active', deactivated_at = NULL, deactivated_by = ''",
        "deactivated_at = now()",
        "deactivated_by = 'x'",
    ):
        assert sqlstate(f"UPDATE links_paymentlink SET {change}") == CHECK_VIOLATION


def test_rows_of_links_are_kept(links: LinkShop) -> None:
    Visitor(links.link()).code()
    for statement in (
        "DELETE FROM links_paymentlink",
        "TRUNCATE links_paymentlink CASCADE",
        "DELETE FROM links_linkcode",
        "UPDATE links_linkcode SET visitor = 'x'",
        "TRUNCATE links_linkcode",
    ):
        assert sqlstate(statement) == NOT_ALLOWED
    assert LinkCode.objects.count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": None},
        {"amount": 99},
        {"amount_min": 100},
        {"amount": None, "amount_min": 200, "amount_max": 100},
        {"amount": None, "amount_min": 99, "amount_max": 100},
        {"max_payments": 0},
        {"expiry_minutes": 0},
        {"expiry_minutes": 1441},
        {"status": "deactivated"},
        {"deactivated_by": "key:x"},
        {"payments": 1},
        {"expires_at": "2000-01-01T00:00:00Z"},
        {"expires_at": "2999-01-01T00:00:00Z"},
    ],
)
def test_impossible_link_is_refused(links: LinkShop, wrong: dict[str, Any]) -> None:
    links.link()
    copy = (
        "INSERT INTO links_paymentlink SELECT (jsonb_populate_record(old, %s::jsonb)).* "
        "FROM links_paymentlink AS old"
    )
    other = {"id": ids.new("pl_", clock.now())}
    assert sqlstate(copy, json.dumps(other | wrong)) == CHECK_VIOLATION
    assert sqlstate(copy, json.dumps(other)) is None
