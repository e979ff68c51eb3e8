"""All changes of withdrawals, one commit per change."""

from datetime import datetime
from typing import Any

from django.db import transaction

from approvals import payout_accounts, services as approvals
from approvals.models import Approval, ApprovalKind
from banks import TransferOrder, TransferResult
from core import ids, money
from core.failures import BANK_UNREACHABLE, REJECTED_BY_STAFF, RETURNED_BY_BANK
from ledger import accounts, services as ledger
from ledger.journal_types import JournalType
from merchants.models import Merchant
from transfers import services as transfers
from transfers.models import Transfer
from webhooks import events
from withdrawals.errors import WithdrawalNotCancelable, WithdrawalNotFound
from withdrawals.models import Withdrawal, WithdrawalStatus
from withdrawals.shapes import withdrawal_object


@transaction.atomic
def create(
    *,
    merchant: Merchant,
    now: datetime,
    amount: int,
    bank_account: str,
    withdrawal_id: str | None = None,
    note: str = "",
    **fields: Any,
) -> Withdrawal:
    """Reserve `amount` satang and queue the transfer.

    withdrawal_id: of a withdrawal that a restore lost. note: for the second person who may have to approve.
    Raises MerchantSuspended, BankNotConfigured, PayoutAccountNotAllowed, PayoutAccountTooNew,
    InsufficientFunds.
    """
    merchant.check_open()
    route = transfers.checked_route(accounts.bank(merchant.bank), merchant.id)
    payout_accounts.check(merchant.id, fields["bank_code"], bank_account, now=now)
    order_id, account = withdrawal_id or ids.new("wd_", now), (fields["bank_code"], bank_account)
    order = TransferOrder(order_id, "withdrawal", amount, *account, fields["account_name"], charge_id="")
    sealed = transfers.seal_account(order)
    withdrawal = Withdrawal(
        id=order.order_id,
        merchant=merchant,
        amount=amount,
        currency=money.CURRENCY,
        bank=merchant.bank,
        account_sealed=sealed.token,
        account_digest=sealed.digest,
        account_last4=bank_account[-4:],
        created_at=now,
        updated_at=now,
        **fields,
    )
    item = approvals.OutgoingMoney.of(
        order, ApprovalKind.WITHDRAWAL, merchant.id, account_digest=sealed.digest, note=note
    )
    withdrawal.awaiting_approval = approvals.request(item, now=now).is_waiting
    withdrawal.save(force_insert=True)
    accounts_of, held = {order.order_id: sealed}, [order.order_id] if withdrawal.awaiting_approval else []
    transfers.queue(order, accounts=accounts_of, route=route, at=now, merchant_id=merchant.id, held=held)
    _publish(withdrawal, now)
    # Last, because it locks the balance until the commit.
    ledger.reserve(**_ledger_fields(withdrawal, JournalType.WITHDRAWAL_RESERVED, now))
    return withdrawal


def find(*, merchant: Merchant, withdrawal_id: str) -> Withdrawal:
    """Raises WithdrawalNotFound."""
    return ids.find(withdrawal_id, "wd_", Withdrawal.objects.filter(merchant=merchant), WithdrawalNotFound)


def is_in_debt(merchant_id: str) -> bool:
    """Whether the merchant has a debt. Its pending withdrawals are held."""
    return ledger.balance(merchant_id).debt > 0


@transaction.atomic
def cancel(*, withdrawal_id: str, now: datetime) -> Withdrawal:
    """Pending becomes canceled. Raises WithdrawalNotCancelable."""
    withdrawal = Withdrawal.objects.locked(withdrawal_id)
    if withdrawal.status != WithdrawalStatus.PENDING:
        raise WithdrawalNotCancelable(status=withdrawal.status)
    transfers.cancel(withdrawal.id, now=now)
    approvals.cancel(withdrawal.id, now=now)
    withdrawal.transition(WithdrawalStatus.CANCELED, awaiting_approval=False, updated_at=now)
    _release(withdrawal, now)
    return withdrawal


@transaction.atomic
def cancel_unsent(*, withdrawal_id: str, now: datetime) -> None:
    """Cancel an order that never reached the bank; one that is processing fails. Raises AlreadySubmitted."""
    withdrawal = Withdrawal.objects.locked(withdrawal_id)
    if withdrawal.status == WithdrawalStatus.PENDING:
        cancel(withdrawal_id=withdrawal_id, now=now)
        return
    transfers.cancel(withdrawal.id, now=now)
    _fail(withdrawal, now, failure_code=BANK_UNREACHABLE)


class _Handler:
    """A `transfers.services.TransferHandler` and an `approvals.services.ApprovalHandler`."""

    def lock(self, order_id: str) -> Withdrawal:
        return Withdrawal.objects.locked(order_id)

    def is_held(self, transfer: Transfer, *, now: datetime) -> bool:
        """Not listed, or the merchant has a debt. The lock of the balance makes reversals wait."""
        merchant_id = transfer.merchant_id
        if not payout_accounts.lock_and_judge(merchant_id, transfer.bank_code, transfer.account, now=now):
            return True
        return ledger.lock_debt(merchant_id=merchant_id, now=now) > 0

    def on_submitted(self, order_id: str, *, now: datetime) -> None:
        withdrawal = Withdrawal.objects.locked(order_id)
        # Not pending: an earlier submission did not reach the bank.
        if withdrawal.status == WithdrawalStatus.PENDING:
            withdrawal.transition(WithdrawalStatus.PROCESSING, updated_at=now)
            _publish(withdrawal, now, "processed")

    def on_completed(self, order_id: str, result: TransferResult, *, now: datetime) -> None:
        withdrawal = Withdrawal.objects.locked(order_id)
        approvals.cancel(order_id, now=now)  # of a request to end it as never arrived
        known: dict[str, Any] = {"bank_reference": result.reference or None, "updated_at": now}
        bank = accounts.bank(withdrawal.bank)
        if result.status == "succeeded":
            withdrawal.transition(WithdrawalStatus.SUCCEEDED, completed_at=now, **known)
            ledger.pay_out(**_ledger_fields(withdrawal, JournalType.WITHDRAWAL_PAID, now), to=bank)
        elif result.status == "returned":
            withdrawal.transition(WithdrawalStatus.FAILED, failure_code=RETURNED_BY_BANK, **known)
            returned = ledger.Credit(withdrawal.merchant_id, withdrawal.id, withdrawal.amount)
            ledger.credit([returned], type=JournalType.WITHDRAWAL_RETURNED, source=bank, now=now)
        else:
            withdrawal.transition(WithdrawalStatus.FAILED, failure_code=result.failure_code, **known)
            _release(withdrawal, now)
        _publish(withdrawal, now)

    def approve(self, approval: Approval, *, now: datetime) -> None:
        withdrawal = Withdrawal.objects.locked(approval.subject_id)
        with approvals.as_not_decidable():
            account = withdrawal.account
            payout_accounts.check(withdrawal.merchant_id, withdrawal.bank_code, account, now=now)
        withdrawal.set_fields(awaiting_approval=False, updated_at=now)
        transfers.release(withdrawal.id, now=now)

    def reject(self, approval: Approval, *, now: datetime) -> None:
        withdrawal = Withdrawal.objects.locked(approval.subject_id)
        transfers.cancel(withdrawal.id, now=now)
        _fail(withdrawal, now, failure_code=REJECTED_BY_STAFF, awaiting_approval=False)


TRANSFER_HANDLER = APPROVAL_HANDLER = _Handler()


def _fail(withdrawal: Withdrawal, now: datetime, **fields: Any) -> None:
    withdrawal.transition(WithdrawalStatus.FAILED, updated_at=now, **fields)
    _release(withdrawal, now)
    _publish(withdrawal, now)


def _release(withdrawal: Withdrawal, now: datetime) -> None:
    released = {"merchant_id": withdrawal.merchant_id, "amounts": {withdrawal.id: withdrawal.amount}}
    ledger.release(type=JournalType.WITHDRAWAL_RELEASED, now=now, **released)


def _ledger_fields(withdrawal: Withdrawal, type: JournalType, now: datetime) -> dict[str, Any]:
    return {
        "merchant_id": withdrawal.merchant_id,
        "type": type,
        "subject_id": withdrawal.id,
        "amount": withdrawal.amount,
        "now": now,
    }


def _publish(withdrawal: Withdrawal, now: datetime, event: str = "") -> None:
    """Publish `withdrawal.<event>`, by default with the status as its name."""
    data, kind = withdrawal_object(withdrawal), f"withdrawal.{event or withdrawal.status}"
    events.publish(events.NewEvent(withdrawal.merchant_id, kind, withdrawal.id, data, now))
