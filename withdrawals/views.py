from typing import Any

from rest_framework.request import Request

from core import api, clock, paging
from core.http import Answer
from idempotency.services import Job
from idempotency.views import idempotent
from merchants.api import MerchantViewSet, merchant_of
from withdrawals import openapi as docs
from withdrawals import services
from withdrawals.models import Withdrawal, WithdrawalQuerySet
from withdrawals.serializers import WithdrawalQuery, WithdrawalRequest
from withdrawals.shapes import withdrawal_object

REQUEST = WithdrawalRequest()
QUERY = WithdrawalQuery()


class WithdrawalViewSet(MerchantViewSet):
    """Take money out, read what became of it, cancel."""

    @docs.create
    @idempotent
    def create(self, request: Request) -> Job:
        asked, merchant, now = api.read_body(REQUEST, request), merchant_of(request), clock.now()
        asked.pop("currency")
        return lambda: Answer.of(withdrawal_object(services.create(merchant=merchant, now=now, **asked)))

    @docs.list_
    def list(self, request: Request) -> Answer:
        query = api.read_query(QUERY, request)
        found = _filtered(Withdrawal.objects.of(merchant_of(request)), query)
        return paging.page(found, query, "withdrawals", withdrawal_object)

    @docs.retrieve
    def retrieve(self, request: Request, withdrawal_id: str) -> Answer:
        found = services.find(merchant=merchant_of(request), withdrawal_id=withdrawal_id)
        return Answer.of(withdrawal_object(found))

    @docs.cancel
    @idempotent
    def cancel(self, request: Request, withdrawal_id: str) -> Job:
        merchant, now = merchant_of(request), clock.now()

        def work() -> Answer:
            found = services.find(merchant=merchant, withdrawal_id=withdrawal_id)
            return Answer.of(withdrawal_object(services.cancel(withdrawal_id=found.id, now=now)))

        return work


def _filtered(found: WithdrawalQuerySet, query: dict[str, Any]) -> WithdrawalQuerySet:
    for name in ("status", "reference"):
        if name in query:
            found = found.filter(**{name: query[name]})
    return paging.between(found, query)
