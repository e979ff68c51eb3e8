"""Outgoing money goes only to the account that was asked for. It is judged again when the order is sent."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from django.db import connection

from approvals import payout_accounts
from approvals.models import PayoutAccount
from banks import TransferResult
from core import clock, digests, vault
from operations.audit import contents
from payments.models import Payment
from reconciliation.models import BankTransaction
from refunds.completion import TRANSFER_HANDLER as REFUNDS
from tests.approvals.builders import MALEE, add_payout_account
from tests.audit import differences
from tests.conftest import SandboxBankClient, Shop
from tests.context import acting_as
from tests.refunds.builders import NOBODY, PAYEE, RefundShop
from tests.sqlstates import CHECK_VIOLATION, NOT_ALLOWED, as_application, sqlstate
from tests.transfers.builders import Serving, pass_time
from tests.withdrawals.builders import fund, withdrawn
from transfers import services
from transfers.models import Transfer, TransferState
from webhooks.models import Event
from withdrawals.services import TRANSFER_HANDLER as WITHDRAWALS

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
FOREIGN = "9999999999"


@dataclass
class Payer:
    """A shop whose money goes out: by a withdrawal, and by a refund to an account that it named."""

    shop: Shop
    bank: SandboxBankClient

    def order(self, purpose: str) -> Transfer:
        if purpose == "withdrawal":
            withdrawn(self.shop)
        else:
            refund_shop = RefundShop(self.shop, self.bank)
            refund_shop.refund(refund_shop.paid(), destination=PAYEE | {"bank_code": "014"})
        return Transfer.objects.get(purpose=purpose)


@pytest.fixture
def payer(shop: Shop, bank: SandboxBankClient) -> Payer:
    fund(shop, bank, 1_000_000)
    return Payer(shop, bank)


def send(order: Transfer) -> TransferState:
    handler = WITHDRAWALS if order.purpose == "withdrawal" else REFUNDS
    services.run_due(order.purpose, handler, now=clock.now)  # type: ignore[arg-type]
    pass_time()
    order.refresh_from_db()
    return TransferState(order.state)


def set_locally(setting: str, value: str = "on") -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config(%s, %s, true)", [f"qr.{setting}", value])


@pytest.mark.parametrize("purpose", ["withdrawal", "refund"])
def test_removed_payout_account_is_not_paid_by_waiting_order(
    purpose: str, payer: Payer, served_by: Serving
) -> None:
    """The order waits, as it does for a pause, an open breaker or a debt, while the account is removed."""
    bank = served_by(sends=[TransferResult("not_sent"), TransferResult("succeeded", "b-1")])
    add_payout_account(payer.shop)
    order = payer.order(purpose)
    assert send(order) == TransferState.QUEUED  # its bank was not reached: the order is sent again
    listed = PayoutAccount.objects.get()
    with acting_as(MALEE):
        payout_accounts.restrict(payer.shop.merchant, True, now=clock.now())
        payout_accounts.remove(listed.id, now=clock.now())
    assert send(order) == TransferState.QUEUED
    assert len(bank.sent) == 1
    assert order.events.latest("pk").type == "held"
    add_payout_account(payer.shop)
    assert send(order) == TransferState.SUCCEEDED
    assert not differences()


CHANGES = [
    ("transfers_transfer SET account_name = 'Somebody'", "resealing"),
    ("transfers_transfer SET account_name = 'Somebody'", "erasing"),
    ("transfers_transfer SET account_name = ''", "erasing"),  # it has not ended
    ("transfers_transfer SET account_digest = '{digest}'", "resealing"),
    ("transfers_transfer SET bank_code = '002'", "resealing"),
    ("withdrawals_withdrawal SET account_sealed = ''", "resealing"),
    ("withdrawals_withdrawal SET account_digest = '{digest}'", "resealing"),
    ("withdrawals_withdrawal SET account_name = 'Somebody'", "erasing"),
    ("approvals_approval SET account_digest = '{digest}'", "erasing"),
    ("approvals_approval SET account_name = 'Somebody'", "erasing"),
    ("approvals_payoutaccount SET account_digest = '{digest}'", "resealing"),
    ("approvals_payoutaccount SET account_name = 'Somebody'", "resealing"),
    ("payments_payment SET payer_name = 'Somebody'", "erasing"),
    ("payments_payment SET payer_name = 'Somebody'", ""),
    ("payments_payment SET payer_bank_code = '002'", "resealing"),
    ("payments_payment SET payer_account_sealed = '{token}'", ""),
    ("payments_payment SET bank_reference = 'other'", ""),
    ("payments_payment SET client_bank_account_sealed = '{token}'", ""),
    ("payments_payment SET client_bank_account_sealed = '{token}'", "erasing"),
    ("payments_payment SET client_account_digest = '{digest}'", "resealing"),
    ("webhooks_event SET body = ''", "erasing"),
    ("qrcodes_qrcode SET reference1 = reverse(reference1)", "resealing"),
    ("transfers_transfer SET account_sealed = ''", "erasing"),  # it has not ended
    ("reconciliation_banktransaction SET payer_name = 'Somebody'", "erasing"),
    ("reconciliation_banktransaction SET payer_account_sealed = 'x'", "erasing"),
    ("reconciliation_banktransaction SET payer_account_digest = '{digest}'", "resealing"),
    ("reconciliation_banknotification SET body_sealed = 'x'", "erasing"),
    ("reconciliation_banknotification SET body_digest = '{digest}'", "resealing"),
]


def test_settings_of_erasing_and_resealing_open_no_other_value(payer: Payer) -> None:
    add_payout_account(payer.shop)
    order = payer.order("withdrawal")
    sealed, accepted = digests.seal(FOREIGN, context=order.id), []
    with as_application():
        for change, setting in CHANGES:
            for name in ("erasing", "resealing"):
                set_locally(name, "on" if name == setting else "off")
            state = sqlstate(f"UPDATE {change.format(token=sealed.token, digest=sealed.digest)}")
            if state not in (CHECK_VIOLATION, NOT_ALLOWED):
                accepted.append((change, setting, state))
    assert accepted == []


@pytest.mark.parametrize("purpose", ["withdrawal", "refund"])
def test_order_whose_account_was_changed_by_resealing_is_not_sent(
    purpose: str, payer: Payer, served_by: Serving
) -> None:
    """Whoever has the keys of encryption can seal another account, but not with the digest that is stored."""
    bank, order = served_by(), payer.order(purpose)
    set_locally("resealing")
    token = digests.seal(FOREIGN, order.bank_code, order.account_name, context=order.id).token
    Transfer.objects.filter(pk=order.pk).update(account_sealed=token)
    set_locally("resealing", "off")
    assert send(order) == TransferState.QUEUED
    assert bank.sent == []
    found = [name for name, _ in contents.findings()]
    assert found == [f"transfers.Transfer {order.id}", *([order.id] if purpose == "refund" else [])]


def test_order_with_another_digest_than_its_withdrawal_is_not_sent(
    payer: Payer, served_by: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank, order = served_by(), payer.order("withdrawal")
    other = SimpleNamespace(account_digest="other")
    monkeypatch.setattr(type(WITHDRAWALS), "lock", lambda self, order_id: other)
    assert send(order) == TransferState.QUEUED
    assert bank.sent == []


def test_refund_goes_to_the_payer_of_the_bank_transaction_and_not_of_the_copy(
    shop: Shop, bank: SandboxBankClient
) -> None:
    refund_shop = RefundShop(shop, bank)
    payment_id = refund_shop.paid(payer=NOBODY)
    # The bank named no payer, so the copy is empty, and may still be filled once.
    sealed = vault.seal(FOREIGN, context=payment_id)
    Payment.objects.filter(pk=payment_id).update(
        payer_name="Somebody", payer_bank_code="004", payer_account_sealed=sealed
    )
    refund = refund_shop.refund(payment_id)
    assert refund["pending_reason"] == "awaiting_destination"
    assert [found.partition(": ")[0] for found in differences()] == [
        "the payer of a payment is that of its bank transaction"
    ]


def test_account_of_a_bank_transaction_that_was_changed_by_resealing_is_no_payer(
    shop: Shop, bank: SandboxBankClient
) -> None:
    refund_shop = RefundShop(shop, bank)
    payment_id = refund_shop.paid()
    bank_transaction = BankTransaction.objects.get(payment=payment_id)
    set_locally("resealing")
    token = vault.seal(FOREIGN, context=bank_transaction.id)
    BankTransaction.objects.filter(pk=bank_transaction.pk).update(payer_account_sealed=token)
    set_locally("resealing", "off")
    assert payment_id in dict(contents.findings())
    assert refund_shop.refund(payment_id)["pending_reason"] == "awaiting_destination"


def test_account_of_the_client_that_was_changed_by_resealing_gets_no_refund(
    shop: Shop, bank: SandboxBankClient
) -> None:
    refund_shop = RefundShop(shop, bank)
    payment_id = refund_shop.paid(
        payer=NOBODY, client_bank_name="kbank", client_bank_account="4051234567", client_name="Somying"
    )
    set_locally("resealing")
    token = digests.seal(FOREIGN, "kbank", "Somying", context=payment_id).token
    Payment.objects.filter(pk=payment_id).update(client_bank_account_sealed=token)
    set_locally("resealing", "off")
    assert refund_shop.refund(payment_id)["pending_reason"] == "awaiting_destination"
    assert [name for name, _ in contents.findings()] == [f"payments.Payment {payment_id}"]


def test_resealing_keeps_the_digest() -> None:
    sealed = digests.seal("4051234567", "014", "Somchai", context="wd_1")
    order = Transfer(id="wd_1", bank_code="014", account_name="Somchai", account_digest=sealed.digest)
    order.account_sealed = vault.reseal(sealed.token)
    assert order.has_its_content() and order.account == "4051234567"
    for name, value in (("bank_code", "004"), ("account_name", "Somsak")):
        changed = Transfer(id="wd_1", **{"bank_code": "014", "account_name": "Somchai"} | {name: value})
        changed.account_sealed, changed.account_digest = sealed.token, sealed.digest
        assert not changed.has_its_content()
    assert digests.seal("4051234567", "014", "Somchai", context="wd_1").digest != sealed.digest


def test_changed_event_bodies_are_found_and_codes_do_not_change(payer: Payer) -> None:
    payer.order("refund")
    assert not list(contents.findings())
    for change in ("reference1 = reverse(reference1)", "qr_data = 'x'", "biller_id = 'x'"):
        assert sqlstate(f"UPDATE qrcodes_qrcode SET {change}") == NOT_ALLOWED
    assert sqlstate("UPDATE payments_payment SET completed_at = completed_at - interval '1 s'") is not None
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("UPDATE webhooks_event SET body = overlay(body placing '*' from 20)")
        cursor.execute("SET LOCAL session_replication_role = origin")
    assert len(list(contents.findings())) == Event.objects.count()
