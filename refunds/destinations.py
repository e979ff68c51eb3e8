"""Choose the destination of a refund by the first rule that finds an account."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import banks
from approvals import payout_accounts, services as approvals
from approvals.models import ApprovalKind
from approvals.payout_accounts import PayoutAccountNotAllowed, PayoutAccountTooNew
from banks import TransferOrder, TransferPurpose
from core import money, plain_text
from core.thai import thaibanks
from ledger import accounts
from payments import payers
from payments.models import Payment
from refunds import errors
from transfers import services as transfers
from transfers.models import Transfer

NOT_ALLOWED = (PayoutAccountNotAllowed, PayoutAccountTooNew)
UNKNOWN_NAME = "-"  # the account name in the order if nobody named the holder: banks require a name


@dataclass(frozen=True, slots=True)
class Destination:
    """An account at a bank, or a charge or payment to take back."""

    bank_code: str = ""
    account: str = field(default="", repr=False)
    account_name: str = ""
    charge_id: str = ""
    route: str = ""  # who sends the money of a refund, also the account in the ledger that it leaves from
    is_payers: bool = False  # by the record of the bank or acquirer, the money came from there

    def order(self, order_id: str, purpose: TransferPurpose, amount: int) -> TransferOrder:
        account = self.bank_code, self.account, self.account_name
        return TransferOrder(order_id, purpose, amount, *account, self.charge_id)


def choose(
    payment: Payment, given: Mapping[str, str] | None, amount: int, *, now: datetime
) -> Destination | None:
    """Return where to refund `amount` satang of `payment`, or None if no account is known.

    given: the account that the merchant named, validated by `transfers.serializers.Payee`. Raises
    CardRefundDestination if a card payment has one, PayoutAccountNotAllowed, PayoutAccountTooNew,
    PartialRefundNotSupported, BankNotConfigured.
    """
    if payment.qr_code_id is None:
        if given is not None:
            raise errors.CardRefundDestination(param="destination")
        route = transfers.checked_route(accounts.acquirer(payment.charge.acquirer), payment.merchant_id)
        return Destination(charge_id=payment.charge.charge_id, route=route, is_payers=True)
    if given is not None:
        return _to_given_account(payment, given, now)
    if (back := _void(payment, amount)) is not None:
        return back
    account = _payer_account(payment) or _client_account(payment)
    if account is None:
        return None
    try:
        return to_account(payment, account, now=now)
    except NOT_ALLOWED:
        return None  # the refund waits until the merchant names another account


def to_account(payment: Payment, given: Mapping[str, str], *, now: datetime) -> Destination:
    """Return the account with these fields as a destination.

    Raises BankNotConfigured, PayoutAccountNotAllowed, PayoutAccountTooNew.
    """
    bank_code, number = given["bank_code"], given["bank_account"]
    is_payers = _is_payers(payment, bank_code, number)
    route = transfers.checked_route(accounts.bank(payment.qr_code.bank), payment.merchant_id)
    if not is_payers:
        payout_accounts.check(payment.merchant_id, bank_code, number, now=now)
    return Destination(bank_code, number, given["account_name"], route=route, is_payers=is_payers)


def may_be_sent(payment: Payment, transfer: Transfer, *, now: datetime) -> bool:
    """Whether it may still go where it was ordered to. The caller holds the locks of payment and transfer."""
    if transfer.charge_id or _is_payers(payment, transfer.bank_code, transfer.account):
        return True
    return approvals.exists(transfer.id, ApprovalKind.REFUND) and payout_accounts.lock_and_judge(
        payment.merchant_id, transfer.bank_code, transfer.account, now=now
    )


def _to_given_account(payment: Payment, given: Mapping[str, str], now: datetime) -> Destination:
    """Do what `to_account` does, with errors that name the field `destination`."""
    try:
        return to_account(payment, given, now=now)
    except PayoutAccountNotAllowed:
        raise errors.DestinationNotAllowed(param="destination") from None
    except PayoutAccountTooNew as refusal:
        raise errors.DestinationTooNew(param="destination", usable_at=refusal.context["usable_at"]) from None


def _void(payment: Payment, amount: int) -> Destination | None:
    """Return the void of a payment if its bank cannot send to accounts. Raises PartialRefundNotSupported."""
    route = accounts.bank(payment.qr_code.bank)
    transaction_id = payers.reported(payment).transaction_id
    if not banks.is_void_only(route) or not transaction_id:
        return None
    if amount != payment.received:
        detail = f"must be {payment.received} satang; received {amount}"
        raise errors.PartialRefundNotSupported(
            param="amount", detail=detail, whole=money.display(payment.received)
        )
    route = transfers.checked_route(route, payment.merchant_id, is_void=True)
    return Destination(charge_id=transaction_id, route=route, is_payers=True)


def _is_payers(payment: Payment, bank_code: str, number: str) -> bool:
    payer = _payer_account(payment) or {}
    return (payer.get("bank_code"), payer.get("bank_account")) == (bank_code, number)


def _payer_account(payment: Payment) -> dict[str, str] | None:
    """The account that the bank reported."""
    payer = payers.reported(payment)
    return _usable(payer.bank_code, payer.account, payer.name or payment.client_name)


def _client_account(payment: Payment) -> dict[str, str] | None:
    """The account that the merchant named when it created the QR code."""
    if not payment.client_bank_account_sealed or not payment.has_its_content():
        return None
    number = plain_text.compact(payment.client_bank_account or "")
    return _usable(payment.client_bank_name, number, payment.client_name)


def _usable(bank_name: str | None, number: str | None, name: str | None) -> dict[str, str] | None:
    """Return the account if money can be sent to it. Some banks mask the payer's account number."""
    bank = thaibanks.find(bank_name or "")
    if bank is None:
        return None
    try:
        thaibanks.check_account(bank.code, number or "")
    except ValueError:
        return None
    return {"bank_code": bank.code, "bank_account": number or "", "account_name": name or UNKNOWN_NAME}
