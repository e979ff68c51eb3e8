from collections.abc import Callable
from functools import cache, partial

from rest_framework.request import Request

from core import api, clock, paging
from core.http import ApiResponse
from counts import listing
from counts.lists import period_of
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from merchants.models import Merchant
from withdrawals import openapi as docs
from withdrawals import services
from withdrawals.filters import WITHDRAWALS
from withdrawals.models import Withdrawal, WithdrawalStatus
from withdrawals.serializers import WithdrawalQuery, WithdrawalRequest
from withdrawals.shapes import WithdrawalObject, withdrawal_object

REQUEST = WithdrawalRequest()
QUERY = WithdrawalQuery()


class WithdrawalViewSet(MerchantViewSet):
    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        fields, merchant, now = api.read_body(REQUEST, request), merchant_of(request), clock.now()
        fields.pop("currency")
        return lambda: ApiResponse.of(
            withdrawal_object(services.create(merchant=merchant, now=now, **fields))
        )

    @docs.list_
    def list(self, request: Request) -> ApiResponse:
        query, merchant = api.read_query(QUERY, request), merchant_of(request)
        if "reference" in query:
            # Few withdrawals match, so they are read and not counted.
            mine = Withdrawal.objects.of(merchant)
            where = {name: query[name] for name in ("status", "reference") if name in query}
            found = paging.created_between(mine.filter(**where), query)
            return paging.page(found, query, "withdrawals", _shape_of(merchant), unfiltered=mine)
        wanted = WITHDRAWALS.matching(merchant.id, query.get("status"), **period_of(query))
        return listing.response(wanted, query, "withdrawals", _shape_of(merchant))

    @docs.retrieve
    def retrieve(self, request: Request, withdrawal_id: str) -> ApiResponse:
        merchant = merchant_of(request)
        found = services.find(merchant=merchant, withdrawal_id=withdrawal_id)
        return ApiResponse.of(_shape_of(merchant)(found))

    @docs.cancel
    @idempotent
    def cancel(self, request: Request, withdrawal_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()

        def work() -> ApiResponse:
            found = services.find(merchant=merchant, withdrawal_id=withdrawal_id)
            return ApiResponse.of(withdrawal_object(services.cancel(withdrawal_id=found.id, now=now)))

        return work


def _shape_of(merchant: Merchant) -> Callable[[Withdrawal], WithdrawalObject]:
    """Return the function for API objects of this merchant. It reads the balance at most once."""
    is_in_debt = cache(partial(services.is_in_debt, merchant.id))
    return lambda each: withdrawal_object(
        each, is_held=each.status == WithdrawalStatus.PENDING and is_in_debt()
    )
