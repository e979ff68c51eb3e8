"""Every change of a withdrawal, and nothing else anywhere. One commit per change."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

import banks
from banks import Order, Word
from core import ids, money, vault
from merchants.errors import BankNotConfigured
from merchants.models import Merchant
from transactions import accounts, ledger
from transactions.models import Fact
from transfers import services as transfers
from webhooks import events
from withdrawals.errors import AlreadyDecided, WithdrawalNotCancelable, WithdrawalNotFound
from withdrawals.models import REJECTED_BY_STAFF, RETURNED_BY_BANK, Status, Withdrawal
from withdrawals.shapes import withdrawal_object


@transaction.atomic
def create(*, merchant: Merchant, now: datetime, amount: int, bank_account: str, **fields: Any) -> Withdrawal:
    """Reserve `amount` (satang) and order it to be sent. Raises BankNotConfigured, InsufficientFunds."""
    _check_bank(merchant)
    withdrawal_id = ids.new("wd_", now)
    withdrawal: Withdrawal = Withdrawal.objects.create(
        id=withdrawal_id,
        merchant=merchant,
        amount=amount,
        currency=money.CURRENCY,
        bank=merchant.bank,
        account_sealed=vault.seal(bank_account, context=withdrawal_id),
        account_last4=bank_account[-4:],
        needs_approval=0 < settings.WITHDRAWAL_APPROVAL_ABOVE < amount,
        created_at=now,
        updated_at=now,
        **fields,
    )
    if not withdrawal.needs_approval:
        _queue(withdrawal, now)
    _publish(withdrawal, now)
    # Last, because it locks the balance until the commit.
    ledger.reserve(**_posting(withdrawal, Fact.WITHDRAWAL_RESERVED, now))
    return withdrawal


def find(*, merchant: Merchant, withdrawal_id: str) -> Withdrawal:
    """Raises WithdrawalNotFound."""
    found: Withdrawal | None = None
    if ids.looks_right(withdrawal_id, "wd_"):
        found = Withdrawal.objects.of(merchant).filter(pk=withdrawal_id).first()
    if found is None:
        raise WithdrawalNotFound(id=withdrawal_id)
    return found


@transaction.atomic
def cancel(*, withdrawal_id: str, now: datetime) -> Withdrawal:
    """End a pending one. Raises WithdrawalNotFound, WithdrawalNotCancelable."""
    withdrawal = Withdrawal.objects.locked(withdrawal_id)
    if withdrawal.status != Status.PENDING:
        raise WithdrawalNotCancelable(status=withdrawal.status)
    if not withdrawal.waits_for_staff:
        transfers.cancel(withdrawal.id, now=now)
    withdrawal.become(Status.CANCELED, updated_at=now)
    ledger.release(**_posting(withdrawal, Fact.WITHDRAWAL_RELEASED, now))
    return withdrawal


@transaction.atomic
def approve(*, withdrawal_id: str, by: str, now: datetime) -> None:
    """Let one that waits for staff go out; `by` is who said so. Raises AlreadyDecided."""
    withdrawal = _undecided(withdrawal_id)
    withdrawal.note(decided_by=by, decided_at=now)
    _queue(withdrawal, now)


@transaction.atomic
def reject(*, withdrawal_id: str, by: str, now: datetime) -> None:
    """End one that waits for staff; `by` is who said so. Raises AlreadyDecided."""
    decision = {"failure_code": REJECTED_BY_STAFF, "decided_by": by, "decided_at": now}
    _fail(_undecided(withdrawal_id), now, **decision)


class _Owner:
    """What `transfers` tells of the money's way, each in the commit of the step."""

    def lock(self, order_id: str) -> None:
        Withdrawal.objects.locked(order_id)

    def begin(self, order_id: str, *, now: datetime) -> None:
        withdrawal = Withdrawal.objects.locked(order_id)
        if withdrawal.status == Status.PENDING:  # else the bank could not be reached the time before
            withdrawal.become(Status.PROCESSING, updated_at=now)
            _publish(withdrawal, now, "processed")

    def settle(self, order_id: str, word: Word, *, now: datetime) -> None:
        withdrawal = Withdrawal.objects.locked(order_id)
        known = {"bank_reference": word.reference or None}
        if word.fate == "succeeded":
            _succeed(withdrawal, now, **known)
        elif word.fate == "returned":
            _take_back(withdrawal, now, **known)
        else:
            _fail(withdrawal, now, failure_code=word.failure_code, **known)


OWNER: transfers.Owner = _Owner()


def _succeed(withdrawal: Withdrawal, now: datetime, **fields: Any) -> None:
    withdrawal.become(Status.SUCCEEDED, completed_at=now, updated_at=now, **fields)
    ledger.pay_out(**_posting(withdrawal, Fact.WITHDRAWAL_PAID, now), to=accounts.bank(withdrawal.bank))
    _publish(withdrawal, now)


def _fail(withdrawal: Withdrawal, now: datetime, **fields: Any) -> None:
    withdrawal.become(Status.FAILED, updated_at=now, **fields)
    ledger.release(**_posting(withdrawal, Fact.WITHDRAWAL_RELEASED, now))
    _publish(withdrawal, now)


def _take_back(withdrawal: Withdrawal, now: datetime, **fields: Any) -> None:
    withdrawal.become(Status.FAILED, failure_code=RETURNED_BY_BANK, updated_at=now, **fields)
    ledger.credit(
        **_posting(withdrawal, Fact.WITHDRAWAL_RETURNED, now), source=accounts.bank(withdrawal.bank)
    )
    _publish(withdrawal, now)


def _undecided(withdrawal_id: str) -> Withdrawal:
    withdrawal = Withdrawal.objects.locked(withdrawal_id)
    if not withdrawal.waits_for_staff:
        raise AlreadyDecided(withdrawal_id)
    return withdrawal


def _check_bank(merchant: Merchant) -> None:
    try:
        banks.sender(_route(merchant.bank))
    except banks.UnknownBank:
        raise BankNotConfigured() from None


def _queue(withdrawal: Withdrawal, now: datetime) -> None:
    order = Order(
        order_id=withdrawal.id,
        purpose="withdrawal",
        amount=withdrawal.amount,
        bank_code=withdrawal.bank_code,
        account=withdrawal.account,
        account_name=withdrawal.account_name,
        charge_id="",
    )
    transfers.queue(order, route=_route(withdrawal.bank), at=now, merchant_id=withdrawal.merchant_id)


def _route(bank: str) -> str:
    return f"bank:{bank}"


def _posting(withdrawal: Withdrawal, fact: Fact, now: datetime) -> dict[str, Any]:
    return {
        "merchant_id": withdrawal.merchant_id,
        "fact": fact,
        "subject_id": withdrawal.id,
        "amount": withdrawal.amount,
        "at": now,
    }


def _publish(withdrawal: Withdrawal, now: datetime, said: str = "") -> None:
    """Tell of the status, in the words of the event where they differ."""
    data, kind = withdrawal_object(withdrawal), f"withdrawal.{said or withdrawal.status}"
    events.publish(events.Happening(withdrawal.merchant_id, kind, withdrawal.id, data, now))
