"""The operations on withdrawals in the OpenAPI document."""

from functools import partial
from typing import Any

from approvals.payout_accounts import PayoutAccountNotAllowed, PayoutAccountTooNew
from core.openapi import Answer, Body, Link, Operation, Tag, page_of
from core.scopes import Scope
from ledger.errors import InsufficientFunds
from merchants.errors import BankNotConfigured
from withdrawals.errors import WithdrawalNotCancelable, WithdrawalNotFound
from withdrawals.serializers import WithdrawalQuery, WithdrawalRequest
from withdrawals.shapes import WithdrawalObject

_write = partial(Operation, tag=Tag.WITHDRAWALS, scope=Scope.WITHDRAWALS_WRITE)
_read = partial(Operation, tag=Tag.WITHDRAWALS, scope=Scope.PAYMENTS_READ)
_GIVEN: dict[str, Any] = {
    "amount": 150_000,
    "currency": "THB",
    "bank_code": "014",
    "account_name": "Somtam House Co., Ltd.",
    "reference": "PAYOUT-2026-11",
    "metadata": {"week": 47},
}
WITHDRAWAL = _GIVEN | {
    "amount_display": "1,500.00 THB",
    "withdrawal_id": "wd_0oDFPXrTS4spMBBZozkykNHKN2t",
    "status": "pending",
    "awaiting_approval": False,
    "pending_reason": None,
    "bank_name": "Siam Commercial Bank",
    "bank_account": "4567",
    "failure_code": None,
    "bank_reference": None,
    "created_at": "2026-11-21T03:04:05.123Z",
    "updated_at": "2026-11-21T03:04:05.123Z",
    "completed_at": None,
}
SUCCEEDED = WITHDRAWAL | {
    "status": "succeeded",
    "bank_reference": "sbo_0oDFPY9mXrB7dMvLkeN1w5QhRtc",
    "updated_at": "2026-11-21T03:04:07.900Z",
    "completed_at": "2026-11-21T03:04:07.900Z",
}

create = _write(
    name="create_withdrawal",
    summary="Withdraw money",
    description="Reserves the amount, which the balance must cover, and sends it to an account in Thailand. "
    "The bank gets the order in the background; until then the withdrawal can be canceled. Above the "
    "operator's limits, per withdrawal and per 24 hours, it is `awaiting_approval` first. With the sandbox "
    "bank, a withdrawal to an account that ends in 0002 fails, in 0003 has a result only after an inquiry, "
    "and in 0004 is returned after it succeeded.",
    body=Body(WithdrawalRequest, _GIVEN | {"bank_code": "SCB", "bank_account": "4051234567"}),
    response=Answer(WithdrawalObject, WITHDRAWAL),
    errors=(BankNotConfigured, PayoutAccountNotAllowed, PayoutAccountTooNew, InsufficientFunds),
    links=(Link("get_withdrawal", "withdrawal_id"), Link("cancel_withdrawal", "withdrawal_id")),
)
list_ = _read(
    name="list_withdrawals",
    summary="List withdrawals",
    description="Newest first.",
    query=WithdrawalQuery,
    response=page_of("withdrawals", WithdrawalObject, SUCCEEDED),
)
retrieve = _read(
    name="get_withdrawal",
    summary="Retrieve a withdrawal",
    description="`pending` until the bank has the order, then `processing` until the bank reports a "
    "result. A bank may return money after the withdrawal succeeded: then it is `failed` with "
    "`returned_by_bank`. After a bank's reversal the balance may be negative. Then withdrawals are held, and "
    "`pending_reason` is `negative_balance`, until later payments have paid the debt.",
    response=Answer(WithdrawalObject, SUCCEEDED),
    errors=(WithdrawalNotFound,),
)
cancel = _write(
    name="cancel_withdrawal",
    summary="Cancel a pending withdrawal",
    description="Possible until the bank has the order. The reserved money is available again.",
    response=Answer(WithdrawalObject, WITHDRAWAL | {"status": "canceled"}),
    errors=(WithdrawalNotFound, WithdrawalNotCancelable),
    links=(Link("get_withdrawal", "withdrawal_id"),),
)
