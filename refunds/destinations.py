"""Where a refund goes. The first rule that knows a place decides; banks and card are never guessed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import banks
from approvals import payout_accounts
from approvals.errors import PayoutAccountNotAllowed, PayoutAccountTooNew
from core import money, thaibanks
from ledger import accounts
from merchants import bank_connections
from merchants.errors import BankNotConfigured
from payments.models import Payment
from refunds.errors import InvalidDestination, PartialRefundNotSupported

NOT_ALLOWED = (PayoutAccountNotAllowed, PayoutAccountTooNew)
UNKNOWN_NAME = "-"
"""What banks are told where nobody said whose account it is; they want some name."""


@dataclass(frozen=True, slots=True)
class Destination:
    """An account at a bank, or the card behind an acquirer's charge.

    route: who sends the money, and at the same time the account of the ledger that it leaves by.
    is_payers: it goes back to where it came from, by the bank's or the acquirer's own record.
    """

    route: str
    bank_code: str = ""
    account: str = field(default="", repr=False)
    account_name: str = ""
    charge_id: str = ""
    is_payers: bool = False


def choose(
    payment: Payment, given: Mapping[str, str] | None, amount: int, *, now: datetime
) -> Destination | None:
    """Where `amount` satang of `payment` go back to; None where nobody knows.

    given: what the merchant names, as `transfers.payees.Payee` validated it. Raises InvalidDestination for a
    card payment with one or an account that is not on the merchant's list, PartialRefundNotSupported,
    BankNotConfigured.
    """
    if payment.qr_code_id is None:
        return _to_card(payment, given)
    if given is not None:
        return _to_given_account(payment, given, now)
    if (back := _void(payment, amount)) is not None:
        return back
    found = (rule(payment) for rule in ACCOUNT_RULES)
    account = next((account for account in found if account is not None), None)
    if account is None:
        return None
    try:
        return _to_account(payment, account, now)
    except NOT_ALLOWED:
        return None  # nobody named it, so the refund waits for somebody who names another


def to_account(payment: Payment, given: Mapping[str, str], *, now: datetime) -> Destination:
    """The account that the merchant names.

    Raises BankNotConfigured, PayoutAccountNotAllowed, PayoutAccountTooNew.
    """
    return _to_account(
        payment, _Account(given["bank_code"], given["bank_account"], given["account_name"]), now
    )


@dataclass(frozen=True, slots=True)
class _Account:
    bank_code: str
    number: str
    name: str


def _to_given_account(payment: Payment, given: Mapping[str, str], now: datetime) -> Destination:
    """As `to_account`; a refusal names the field of the request that holds the account."""
    try:
        return to_account(payment, given, now=now)
    except NOT_ALLOWED as refusal:
        raise type(refusal)(f"destination.{refusal.text}", param="destination") from None


def _to_account(payment: Payment, account: _Account, now: datetime) -> Destination:
    """Raises BankNotConfigured, PayoutAccountNotAllowed, PayoutAccountTooNew."""
    payer = _payer_account(payment)
    is_payers = payer is not None and (payer.bank_code, payer.number) == (
        account.bank_code,
        account.number,
    )
    route = _bank_route(payment)
    if not is_payers:
        payout_accounts.check(payment.merchant_id, account.bank_code, account.number, now=now)
    return Destination(route, account.bank_code, account.number, account.name, is_payers=is_payers)


def _to_card(payment: Payment, given: Mapping[str, str] | None) -> Destination:
    if given is not None:
        raise InvalidDestination("A card payment goes back to its card.", param="destination")
    charge = payment.charge
    route = _checked_route(accounts.acquirer(charge.acquirer))
    return Destination(route, charge_id=charge.charge_id, is_payers=True)


def _bank_route(payment: Payment) -> str:
    """What goes back to an account is sent by the merchant's own bank."""
    return _checked_route(accounts.bank(payment.merchant.bank))


def _void(payment: Payment, amount: int) -> Destination | None:
    """The void of a payment at a bank that cannot send to accounts. Raises PartialRefundNotSupported."""
    route = accounts.bank(payment.merchant.bank)
    if not banks.is_void_only(route) or payment.bank_transaction_id is None:
        return None
    if amount != payment.received:
        raise PartialRefundNotSupported(param="amount", whole=money.display(payment.received))
    route = _checked_route(route, bank_connections.credentials_of(payment.merchant_id))
    return Destination(route, charge_id=payment.bank_transaction_id, is_payers=True)


def _checked_route(route: str, link: banks.AdapterConfig | None = None) -> str:
    """The route, if this deployment can send by it. Raises BankNotConfigured."""
    try:
        banks.sender(route, link)
    except banks.UnknownBank:
        raise BankNotConfigured() from None
    return route


def _payer_account(payment: Payment) -> _Account | None:
    """By the bank's bank transaction."""
    name = payment.payer_name or payment.client_name
    return _usable(payment.payer_bank_code, payment.payer_account, name)


def _client_account(payment: Payment) -> _Account | None:
    """By what the merchant said when the code was made."""
    number = (payment.client_bank_account or "").replace("-", "").replace(" ", "")
    return _usable(payment.client_bank_name, number, payment.client_name)


ACCOUNT_RULES: list[Callable[[Payment], _Account | None]] = [_payer_account, _client_account]


def _usable(bank_name: str | None, number: str | None, name: str | None) -> _Account | None:
    """The account, if money can be sent to it: some banks mask the payer's number, and not every name of a
    bank is known."""
    bank = thaibanks.find((bank_name or "").strip())
    if bank is None:
        return None
    try:
        thaibanks.check_account(bank.code, number or "")
    except ValueError:
        return None
    return _Account(bank.code, number or "", name or UNKNOWN_NAME)
