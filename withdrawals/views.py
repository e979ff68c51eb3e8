from collections.abc import Callable
from functools import cache, partial

from rest_framework.request import Request

from core import clock
from core.http import api
from core.http.responses import ApiResponse
from core.thai import thaibanks
from counts import listing
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from merchants.models import Merchant
from withdrawals import openapi as docs, services
from withdrawals.models import WITHDRAWALS, Withdrawal, WithdrawalStatus
from withdrawals.shapes import BankList, WithdrawalObject, bank_object, withdrawal_object


class WithdrawalViewSet(MerchantViewSet):
    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        fields, merchant, now = api.read_body(docs.create, request), merchant_of(request), clock.now()
        fields.pop("currency")
        return lambda: withdrawal_object(services.create(merchant=merchant, now=now, **fields))

    @docs.list_
    def list(self, request: Request) -> ApiResponse:
        query, merchant = api.read_query(docs.list_, request), merchant_of(request)
        return listing.of_owner(WITHDRAWALS, merchant.id, query, _shape_of(merchant), selective="reference")

    @docs.retrieve
    def retrieve(self, request: Request, withdrawal_id: str) -> WithdrawalObject:
        merchant = merchant_of(request)
        return _shape_of(merchant)(services.find(merchant=merchant, withdrawal_id=withdrawal_id))

    @docs.cancel
    @idempotent
    def cancel(self, request: Request, withdrawal_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()

        def work() -> WithdrawalObject:
            found = services.find(merchant=merchant, withdrawal_id=withdrawal_id)
            return withdrawal_object(services.cancel(withdrawal_id=found.id, now=now))

        return work


class BankViewSet(MerchantViewSet):
    """The banks that money can be sent to."""

    @docs.list_banks
    def list(self, request: Request) -> BankList:
        return {"banks": [bank_object(each) for each in thaibanks.BANKS]}


def _shape_of(merchant: Merchant) -> Callable[[Withdrawal], WithdrawalObject]:
    """Return the function for API objects of this merchant. It reads the balance at most once."""
    is_in_debt = cache(partial(services.is_in_debt, merchant.id))
    return lambda row: withdrawal_object(row, is_held=row.status == WithdrawalStatus.PENDING and is_in_debt())
