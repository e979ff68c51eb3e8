"""The claim page over HTTP: proofs, accounts, tries, states, languages, what it hides."""

import re
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from pytest_django import Settings

from approvals.models import Approval
from approvals.payout_accounts import PayoutAccountNotAllowed
from banks import TransferResult
from core import clock
from core.http.rate_limits import RateLimit
from core.work import redis
from qrcodes.models import QrCode
from reconciliation.claims import page
from refunds import claims, destinations
from refunds.models import ClaimLink, ClaimTry
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.claims.builders import FORM, Claim, claim_of
from tests.refunds.builders import REFUNDS, send_due_refunds
from tests.transfers.conftest import served_by
from transfers.models import Transfer

pytestmark = pytest.mark.slow

__all__ = ["served_by"]
ACCOUNT = "4051234567"
UNKNOWN = "0" * 32
COLUMNS = "(id, number, network, is_proven, tried_at, link_id)"


@pytest.fixture
def claim(shop: Shop, bank: SandboxBankClient) -> Claim:
    return claim_of(shop, bank)


def orders() -> list[Transfer]:
    return list(Transfer.objects.filter(purpose="refund"))


def spaced(text: str) -> str:
    return f" {text[:4]}-{text[4:10].lower()} {text[10:]} "


@pytest.mark.parametrize("proof", ["slip", "spaced slip", "pasted slip", "digits", "Thai digits", "both"])
def test_right_proof_sends_the_refund_to_the_account(claim: Claim, proof: str) -> None:
    proofs = {
        "slip": {"slip_reference": claim.slip_reference},
        "spaced slip": {"slip_reference": spaced(claim.slip_reference)},
        "pasted slip": {
            "slip_reference": f"\u2068{claim.slip_reference[:4]}\u2011{claim.slip_reference[4:]}\u2069"
        },
        "digits": {"last_digits": "7890"},
        "Thai digits": {"last_digits": "๗๘๙๐\u200b"},
        "both": {"slip_reference": claim.slip_reference, "last_digits": "7890"},
    }[proof]
    answer = claim.send(**proofs)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{claim.path}?lang=en")
    [order] = orders()
    assert (order.id, order.bank_code, order.account) == (claim.refund["refund_id"], "004", ACCOUNT)
    assert (order.account_name, order.amount) == ("สมหญิง ใจดี", 150_000)
    assert claim.heading() == "We have your account"
    assert ClaimLink.objects.get().used_at is not None


@pytest.mark.parametrize(
    "proofs",
    [
        {"last_digits": "0000"},
        {"slip_reference": "wrong"},
        {"slip_reference": "wrong", "last_digits": "7890"},
        {"slip_reference": "%"},
        {"slip_reference": "สลิป"},
    ],
)
def test_wrong_proof_sends_nothing_and_counts(claim: Claim, proofs: dict[str, str]) -> None:
    answer = claim.send(**proofs)
    assert answer.status_code == 422
    text = answer.content.decode()
    assert "This does not match the payment." in text
    assert "4 tries are left" in text
    assert (orders(), ClaimTry.objects.get().is_proven) == ([], False)


def test_five_wrong_proofs_end_the_link_also_for_the_right_one(claim: Claim) -> None:
    for _ in range(5):
        assert claim.send(last_digits="0000").status_code == 422
    assert claim.heading() == "Too many tries"
    refused = claim.send(last_digits="7890")
    assert (refused.status_code, "Ask the shop for a new link." in refused.content.decode()) == (403, True)
    assert (orders(), ClaimTry.objects.count()) == ([], 5)


def test_network_with_many_wrong_proofs_is_refused_at_every_link(
    claim: Claim, shop: Shop, bank: SandboxBankClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "MAX_FAILURES_OF_NETWORK", 2)
    for _ in range(2):
        claim.send(last_digits="0000")
    other = claim_of(shop, bank)
    refused = other.send(last_digits="7890")
    assert refused.status_code == 403
    assert "Try again tomorrow, or use another connection." in refused.content.decode()
    assert "Ask the shop for a new link." not in refused.content.decode()
    assert orders() == []
    assert other.send(address="203.0.113.8", last_digits="7890").status_code == 303


def test_account_is_taken_as_a_phone_pastes_it(claim: Claim) -> None:
    pasted = {"bank_account": "\u2068๔๐๕\u20111 23456 7\u2069", "account_name": "\ufeffสมหญิง  ใจดี\u200b"}
    assert claim.send(last_digits="7890", **pasted).status_code == 303
    [order] = orders()
    assert (order.account, order.account_name) == (ACCOUNT, "สมหญิง ใจดี")


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "Choose a picture, or give the reference or the last 4 digits."),
        ({"last_digits": "789"}, "Write 4 digits."),
        ({"last_digits": "\u0667\u0668\u0669\u0660"}, "Write 4 digits."),
        ({"last_digits": "7890", "bank_code": ""}, "Fill in this field."),
        ({"last_digits": "7890", "bank_code": "999"}, "Select a valid choice."),
        (
            {"last_digits": "7890", "bank_account": "40512345"},
            "An account at Kasikorn Bank has 10 digits.",
        ),
        ({"last_digits": "7890", "account_name": " "}, "Fill in this field."),
        ({"last_digits": "7890", "account_name": "a\x1bb"}, "Write the name in one line."),
        ({"last_digits": "7890", "account_name": "x" * 141}, "at most 140 characters"),
        ({"slip_reference": "x" * 65}, "at most 64 characters"),
    ],
)
def test_mistake_in_the_form_is_named_and_costs_no_try(
    claim: Claim, fields: dict[str, str], text: str
) -> None:
    answer = claim.send(**fields)
    assert answer.status_code == 422
    assert text in answer.content.decode()
    assert (orders(), ClaimTry.objects.count()) == ([], 0)


def test_mistake_in_the_form_names_the_bank_in_the_language_of_the_page(claim: Claim) -> None:
    fields = FORM | {"last_digits": "7890", "bank_account": "40512345"}
    answer = Client().post(f"{claim.path}?lang=th", fields)
    assert "บัญชีที่ ธนาคารกสิกรไทย มี 10 หลัก" in answer.content.decode()


def test_unknown_ended_and_revoked_links_get_the_same_page(
    claim: Claim, shop: Shop, bank: SandboxBankClient
) -> None:
    claims.revoke(refund_id=claim.refund["refund_id"], now=clock.now())
    pages = [Client().get(f"/claim/{token}?lang=en") for token in (claim.token, UNKNOWN, "x", "%00", "ก")]
    assert {answer.status_code for answer in pages} == {404}
    assert len({answer.content for answer in pages}) == 1
    assert Client().post(f"/claim/{UNKNOWN}", FORM).status_code == 404


def test_slip_of_somebody_who_paid_the_same_code_again_is_no_proof(
    claim: Claim, bank: SandboxBankClient
) -> None:
    code = {"qr_data": QrCode.objects.get().qr_data, "amount": 100}
    assert bank.notify(code, transaction_id="SECONDPAYER1").status_code == 200
    assert claim.send(slip_reference="SECONDPAYER1").status_code == 422
    assert orders() == []
    assert claim.send(slip_reference=claim.slip_reference).status_code == 303


def test_right_proof_with_a_refused_account_counts_as_a_try(
    claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PayoutAccountNotAllowed()

    monkeypatch.setattr(destinations, "to_account", refuse)
    answer = claim.send(last_digits="7890")
    assert (answer.status_code, "4 tries are left" in answer.content.decode()) == (422, True)
    assert (orders(), ClaimTry.objects.get().is_proven) == ([], True)
    assert ClaimLink.objects.get().used_at is None


def test_wrong_proofs_do_not_block_the_payers_of_other_merchants(
    claim: Claim, other_shop: Shop, bank: SandboxBankClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "MAX_FAILURES_OF_NETWORK", 1)
    assert claim.send(last_digits="0000").status_code == 422
    assert claim.send(last_digits="7890").status_code == 403
    assert claim_of(other_shop, bank).send(last_digits="7890").status_code == 303


def test_page_shows_the_refund_and_nothing_about_the_payer(claim: Claim) -> None:
    text = claim.read().content.decode()
    for shown in ("Somtam House", "฿1,500.00", "Test mode: no real money"):
        assert shown in text
    for hidden in (
        "Somchai",
        "7890",
        claim.slip_reference,
        claim.refund["payment_id"],
        claim.refund["refund_id"],
    ):
        assert hidden not in text
    assert claim.heading("th") == "จะให้เราคืนเงินไปที่ไหน"


def test_page_has_a_strict_policy_and_no_script(claim: Claim) -> None:
    answer = claim.read()
    policy = answer.headers["Content-Security-Policy"]
    for rule in ("default-src 'none'", "form-action 'self'", "frame-ancestors 'none'"):
        assert rule in policy
    assert (answer.headers["Referrer-Policy"], answer.headers["Cache-Control"]) == ("no-referrer", "no-store")
    text = answer.content.decode()
    assert "<script" not in text
    assert re.findall(r'(?:src|href|action)="(?!/|\?|data:,)', text) == []


def test_page_shows_when_the_money_was_sent(claim: Claim, served_by: Any) -> None:
    served_by(sends=[TransferResult("succeeded", "b-1")])
    claim.send(last_digits="7890")
    send_due_refunds(3)
    assert claim.heading() == "Your money was sent"


def test_page_shows_that_the_bank_refused_the_account(claim: Claim, served_by: Any) -> None:
    served_by(sends=[TransferResult("failed", failure_code="account_closed")])
    claim.send(last_digits="7890")
    send_due_refunds(3)
    assert claim.heading() == "Your money could not be sent"
    assert claim.send(last_digits="7890").status_code == 303
    assert len(orders()) == 1


def test_canceled_refund_takes_no_account(claim: Claim, shop: Shop) -> None:
    shop.post(f"{REFUNDS}/{claim.refund['refund_id']}/cancel")
    assert claim.heading() == "The shop canceled this refund"
    assert claim.send(last_digits="7890").status_code == 303
    assert orders() == []


def test_claim_above_the_limits_waits_for_a_second_person(
    claim: Claim, shop: Shop, settings: Settings
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 100
    assert claim.send(last_digits="7890").status_code == 303
    [order] = orders()
    approval = Approval.objects.get(subject_id=order.id)
    assert (order.state, approval.status) == ("held", "waiting")
    assert approval.requested_by.startswith("key:")
    assert "named this account by claim link" in approval.note
    assert claim.heading() == "We have your account"


def test_visitors_of_one_network_are_limited(claim: Claim, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "RATE", RateLimit(per_second=0.1, burst=2))
    redis.try_call(lambda client: client.delete("rate:claim-page:203.0.113.9"))
    asked = [claim.read(REMOTE_ADDR="203.0.113.9") for _ in range(3)]
    assert [answer.status_code for answer in asked] == [200, 200, 429]
    assert int(asked[2].headers["Retry-After"]) >= 1


def test_only_get_head_and_post_are_allowed(claim: Claim, caplog: pytest.LogCaptureFixture) -> None:
    """The path is the secret of the link, so no log has it."""
    assert Client().head(claim.path).status_code == 200
    with caplog.at_level("WARNING"):
        refused = Client().put(claim.path)
    assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, HEAD, POST")
    assert refused.json()["error"]["code"] == "method_not_allowed"
    assert claim.token not in caplog.text


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE refunds_claimlink SET token_digest = 'x'",
        "UPDATE refunds_claimlink SET expires_at = expires_at + interval '1 day'",
        "DELETE FROM refunds_claimlink",
        "UPDATE refunds_claimtry SET is_proven = true",
        "DELETE FROM refunds_claimtry",
        "INSERT INTO refunds_claimtry SELECT 0, 6, network, false, now(), link_id FROM refunds_claimtry",
        "INSERT INTO refunds_claimtry SELECT 0, 1, network, false, now(), link_id FROM refunds_claimtry",
    ],
)
def test_database_keeps_links_and_counts_tries(claim: Claim, statement: str) -> None:
    claim.send(last_digits="0000")
    statement = statement.replace("INSERT INTO refunds_claimtry", f"INSERT INTO refunds_claimtry {COLUMNS}")
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_revoked_link_is_not_used_in_the_database(claim: Claim) -> None:
    claims.revoke(refund_id=claim.refund["refund_id"], now=clock.now())
    link = ClaimLink.objects.get()
    link.used_at = clock.now()
    with pytest.raises(DatabaseError), transaction.atomic():
        link.save()
