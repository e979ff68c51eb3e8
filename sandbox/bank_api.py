"""Doors to the sandbox bank's books."""

import datetime
from typing import Any

from django.http import HttpResponse
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from core import api, clock
from core.api import ApiViewSet
from core.http import ApiResponse
from merchants.api import MerchantViewSet, merchant_of
from sandbox import entries as bank_entries
from sandbox import openapi as docs
from sandbox import orders, shapes, signatures, statements
from sandbox.errors import InvalidDate
from sandbox.serializers import DateField, EntriesQuery, SlipQuery, StatementFormatQuery, StatementQuery
from sandbox.views import check_enabled, check_test_key


class SignedViewSet(ApiViewSet):
    """Open to whoever knows the secret that the bank and the service share."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check_enabled()
        if request.method not in self.allowed_methods:
            self.http_method_not_allowed(request)
        super().initial(request, *args, **kwargs)
        signatures.verify(
            request.headers,
            method=str(request.method),
            path=request.get_full_path(),
            body=request._request.body,
            now=clock.now(),
        )


ENTRIES_QUERY, SLIP_QUERY, STATEMENT_QUERY, FORMAT_QUERY = (
    EntriesQuery(),
    SlipQuery(),
    StatementQuery(),
    StatementFormatQuery(),
)
DATE_FIELD = DateField()


class EntriesViewSet(SignedViewSet):
    """What happened to a code."""

    @docs.transactions
    def list(self, request: Request) -> ApiResponse:
        found = bank_entries.of_code(**api.read_query(ENTRIES_QUERY, request), now=clock.now())
        return ApiResponse.of({"transactions": [shapes.entry_object(entry) for entry in found]})


class SlipViewSet(SignedViewSet):
    """What happened to the transfer that a slip names."""

    @docs.slip
    def list(self, request: Request) -> ApiResponse:
        found = bank_entries.of_slip(**api.read_query(SLIP_QUERY, request), now=clock.now())
        return ApiResponse.of({"transactions": [shapes.entry_object(entry) for entry in found]})


class StatementViewSet(SignedViewSet):
    """What came to any biller on a day."""

    @docs.statement
    def retrieve(self, request: Request) -> HttpResponse:
        query = api.read_query(STATEMENT_QUERY, request)
        return _file(query["biller_id"], query["date"], query["format"])


class OwnStatementViewSet(MerchantViewSet):
    """What came to the merchant on a day."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check_enabled()
        super().initial(request, *args, **kwargs)

    @docs.own_statement
    def retrieve(self, request: Request, date: str) -> HttpResponse:
        check_test_key(request)
        query = api.read_query(FORMAT_QUERY, request)
        return _file(merchant_of(request).biller_id, _day(date), query["format"])


def _day(text: str) -> datetime.date:
    try:
        day: datetime.date = DATE_FIELD.run_validation(text)
    except ValidationError:
        raise InvalidDate(param="date") from None
    return day


def _file(biller_id: str, day: datetime.date, name: str) -> HttpResponse:
    format_, entries = (
        statements.FORMATS[name],
        bank_entries.of_day(biller_id=biller_id, day=day, now=clock.now()),
    )
    return HttpResponse(
        format_.write(biller_id, day, entries.iterator()),
        content_type=format_.content_type,
        headers={"Content-Disposition": f'attachment; filename="{biller_id}-{day}.{format_.extension}"'},
    )


class OrderViewSet(SignedViewSet):
    """Orders of refunds and withdrawals."""

    @docs.order
    def create(self, request: Request) -> ApiResponse:
        order_request, now = orders.parse(dict(request.data)), clock.now()
        response = ApiResponse.of(shapes.order_object(orders.accept(order_request, now=now), now))
        if order_request.scenario.is_response_truncated:
            return ApiResponse(response.status, response.body[: len(response.body) // 2])
        return response

    @docs.inquire
    def retrieve(self, request: Request, reference: str) -> ApiResponse:
        return ApiResponse.of(shapes.order_object(orders.find(reference), clock.now()))
