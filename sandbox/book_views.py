"""Doors to the sandbox bank's books."""

import datetime
from typing import Any

from django.http import HttpResponse
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from core import api, clock
from core.http import Answer
from merchants.api import MerchantViewSet, merchant_of
from sandbox import books, shapes, statements
from sandbox import openapi as docs
from sandbox.errors import InvalidDate
from sandbox.serializers import BookQuery, Day, FileQuery, SlipQuery, StatementQuery
from sandbox.signed import SignedViewSet
from sandbox.views import check_open, check_test_key

BOOK_QUERY, SLIP_QUERY, STATEMENT_QUERY, FILE_QUERY = BookQuery(), SlipQuery(), StatementQuery(), FileQuery()
DAY = Day()


class BookViewSet(SignedViewSet):
    """What happened to a code."""

    @docs.transactions
    def list(self, request: Request) -> Answer:
        found = books.about(**api.read_query(BOOK_QUERY, request), now=clock.now())
        return Answer.of({"transactions": [shapes.entry_object(entry) for entry in found]})


class SlipViewSet(SignedViewSet):
    """What happened to the transfer that a slip names."""

    @docs.slip
    def list(self, request: Request) -> Answer:
        found = books.of_slip(**api.read_query(SLIP_QUERY, request), now=clock.now())
        return Answer.of({"transactions": [shapes.entry_object(entry) for entry in found]})


class StatementViewSet(SignedViewSet):
    """What came to any biller on a day."""

    @docs.statement
    def retrieve(self, request: Request) -> HttpResponse:
        query = api.read_query(STATEMENT_QUERY, request)
        return _file(query["biller_id"], query["date"], query["format"])


class OwnStatementViewSet(MerchantViewSet):
    """What came to the merchant on a day."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check_open()
        super().initial(request, *args, **kwargs)

    @docs.own_statement
    def retrieve(self, request: Request, date: str) -> HttpResponse:
        check_test_key(request)
        query = api.read_query(FILE_QUERY, request)
        return _file(merchant_of(request).biller_id, _day(date), query["format"])


def _day(text: str) -> datetime.date:
    try:
        day: datetime.date = DAY.run_validation(text)
    except ValidationError:
        raise InvalidDate(param="date") from None
    return day


def _file(biller_id: str, day: datetime.date, name: str) -> HttpResponse:
    form, entries = statements.FORMS[name], books.of_day(biller_id=biller_id, day=day, now=clock.now())
    return HttpResponse(
        form.write(biller_id, day, entries.iterator()),
        content_type=form.content_type,
        headers={"Content-Disposition": f'attachment; filename="{biller_id}-{day}.{form.ending}"'},
    )
