"""Every change of a withdrawal, and nothing else anywhere. One commit per change."""

from datetime import datetime
from typing import Any

from django.db import transaction

import banks
from approvals import payout_accounts
from approvals import services as approvals
from approvals.models import Approval, Kind
from banks import Order, Word
from core import ids, money, vault
from merchants.errors import BankNotConfigured
from merchants.models import Merchant
from transactions import accounts, ledger
from transactions.models import Fact
from transfers import services as transfers
from webhooks import events
from withdrawals.errors import WithdrawalNotCancelable, WithdrawalNotFound
from withdrawals.models import BANK_UNREACHABLE, REJECTED_BY_STAFF, RETURNED_BY_BANK, Status, Withdrawal
from withdrawals.shapes import withdrawal_object


@transaction.atomic
def create(*, merchant: Merchant, now: datetime, amount: int, bank_account: str, **fields: Any) -> Withdrawal:
    """Reserve `amount` (satang) and order it to be sent.

    Raises BankNotConfigured, PayoutAccountNotAllowed, PayoutAccountTooNew, InsufficientFunds.
    """
    _check_bank(merchant)
    payout_accounts.check(merchant.id, fields["bank_code"], bank_account, now=now)
    withdrawal_id = ids.new("wd_", now)
    withdrawal = Withdrawal(
        id=withdrawal_id,
        merchant=merchant,
        amount=amount,
        currency=money.CURRENCY,
        bank=merchant.bank,
        account_sealed=vault.seal(bank_account, context=withdrawal_id),
        account_last4=bank_account[-4:],
        created_at=now,
        updated_at=now,
        **fields,
    )
    withdrawal.awaiting_approval = approvals.judge(_outgoing(withdrawal), now=now).is_waiting
    withdrawal.save(force_insert=True)
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


def is_in_debt(merchant_id: str) -> bool:
    """Whether a bank took back more than the merchant had: its pending withdrawals are held."""
    return ledger.balance(merchant_id).owed > 0


@transaction.atomic
def cancel(*, withdrawal_id: str, now: datetime) -> Withdrawal:
    """End a pending one. Raises WithdrawalNotFound, WithdrawalNotCancelable."""
    withdrawal = Withdrawal.objects.locked(withdrawal_id)
    if withdrawal.status != Status.PENDING:
        raise WithdrawalNotCancelable(status=withdrawal.status)
    transfers.cancel(withdrawal.id, now=now)
    approvals.cancel(withdrawal.id, now=now)
    withdrawal.become(Status.CANCELED, awaiting_approval=False, updated_at=now)
    ledger.release(**_posting(withdrawal, Fact.WITHDRAWAL_RELEASED, now))
    return withdrawal


@transaction.atomic
def give_up(*, withdrawal_id: str, now: datetime) -> None:
    """End one that surely never reached its bank, and release its money. It is never sent after that.

    Raises WithdrawalNotFound, transfers.AlreadyTold.
    """
    withdrawal = Withdrawal.objects.locked(withdrawal_id)
    if withdrawal.status == Status.PENDING:
        cancel(withdrawal_id=withdrawal_id, now=now)
        return
    transfers.cancel(withdrawal.id, now=now)
    _fail(withdrawal, now, failure_code=BANK_UNREACHABLE)


class _Owner:
    """What `transfers` tells of the money's way, each in the commit of the step."""

    def lock(self, order_id: str) -> None:
        Withdrawal.objects.locked(order_id)

    def is_held(self, order_id: str, *, now: datetime) -> bool:
        """While its merchant owes, nothing is submitted. A reversal waits for the lock of the balance."""
        withdrawal = Withdrawal.objects.locked(order_id)
        return ledger.debt(merchant_id=withdrawal.merchant_id, at=now) > 0

    def begin(self, order_id: str, *, now: datetime) -> None:
        withdrawal = Withdrawal.objects.locked(order_id)
        if withdrawal.status == Status.PENDING:  # else the bank could not be reached the time before
            withdrawal.become(Status.PROCESSING, updated_at=now)
            _publish(withdrawal, now, "processed")

    def settle(self, order_id: str, word: Word, *, now: datetime) -> None:
        withdrawal = Withdrawal.objects.locked(order_id)
        approvals.cancel(order_id, now=now)  # of a request to end it as never arrived
        known = {"bank_reference": word.reference or None}
        if word.fate == "succeeded":
            _succeed(withdrawal, now, **known)
        elif word.fate == "returned":
            _take_back(withdrawal, now, **known)
        else:
            _fail(withdrawal, now, failure_code=word.failure_code, **known)


OWNER: transfers.Owner = _Owner()


class _ApprovalHandler:
    """What happens to a withdrawal that a second person decides (see `approvals.services.Handler`)."""

    def lock(self, subject_id: str) -> None:
        Withdrawal.objects.locked(subject_id)

    def approve(self, approval: Approval, *, now: datetime) -> None:
        withdrawal = Withdrawal.objects.locked(approval.subject_id)
        with approvals.still_allowed():
            account = withdrawal.account
            payout_accounts.check(withdrawal.merchant_id, withdrawal.bank_code, account, now=now)
        withdrawal.note(awaiting_approval=False, updated_at=now)
        transfers.release(withdrawal.id, now=now)

    def reject(self, approval: Approval, *, now: datetime) -> None:
        withdrawal = Withdrawal.objects.locked(approval.subject_id)
        transfers.cancel(withdrawal.id, now=now)
        _fail(withdrawal, now, failure_code=REJECTED_BY_STAFF, awaiting_approval=False)


APPROVAL_HANDLER: approvals.Handler = _ApprovalHandler()


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


def _outgoing(withdrawal: Withdrawal) -> approvals.Outgoing:
    return approvals.Outgoing(
        kind=Kind.WITHDRAWAL,
        subject_id=withdrawal.id,
        merchant_id=withdrawal.merchant_id,
        amount=withdrawal.amount,
        bank_code=withdrawal.bank_code,
        account=withdrawal.account,
        account_name=withdrawal.account_name,
    )


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
    transfers.queue(
        order,
        route=_route(withdrawal.bank),
        at=now,
        merchant_id=withdrawal.merchant_id,
        is_held=withdrawal.awaiting_approval,
    )


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
