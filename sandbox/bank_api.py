"""The API of the sandbox bank: inquiries, slips, statements and orders."""

import datetime
import hmac
import re
from typing import Any

from django.http import HttpResponse
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from core import clock
from core.http import api, received
from core.http.api import ApiViewSet
from core.http.responses import ApiResponse
from merchants.api import merchant_of
from sandbox import callbacks, openapi as docs, orders, statements
from sandbox.errors import InvalidDate, InvalidOrderSignature
from sandbox.models import SandboxEntry, SandboxEntryQuerySet
from sandbox.serializers import DateField
from sandbox.services import entry_object
from sandbox.views import SandboxViewSet, check_enabled

SIGNATURE_HEADER = "Sandbox-Bank-Signature"
SIGNATURE_TOLERANCE = datetime.timedelta(minutes=5)
Json = dict[str, Any]
_SIGNATURE = re.compile("t=([0-9]{1,11}),v1=[0-9a-f]{64}")


class SignedViewSet(ApiViewSet):
    """Requests that the service signs with the secret that it shares with the bank.

    The signature is that of callbacks, over `<method> <path>.<body>`.
    """

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        check_enabled()
        if request.method not in self.allowed_methods:
            self.http_method_not_allowed(request)
        super().initial(request, *args, **kwargs)
        _verify_signature(request, clock.now())

    @docs.transactions
    def transactions(self, request: Request) -> Json:
        """The entries of a code."""
        query = api.read_query(docs.transactions, request)
        return _transactions(SandboxEntry.objects.of_code(**query, now=clock.now()))

    @docs.slip
    def slip(self, request: Request) -> Json:
        """The entries of the transfer on a slip."""
        query = api.read_query(docs.slip, request)
        return _transactions(SandboxEntry.objects.of_slip(**query, now=clock.now()))

    @docs.statement
    def statement(self, request: Request) -> HttpResponse:
        """The statement of any biller."""
        query = api.read_query(docs.statement, request)
        return _file(query["biller_id"], query["date"], query["format"])

    @docs.order
    def order(self, request: Request) -> ApiResponse:
        """Order a refund or a withdrawal."""
        now = clock.now()
        order = orders.accept(orders.parse(dict(request.data), now=now))
        response = ApiResponse.of(orders.order_object(order, order.status_at(now)))
        if (order.type, order.account[-4:]) == orders.TRUNCATED:
            return ApiResponse(response.status, response.body[: len(response.body) // 2])
        return response

    @docs.inquire
    def inquire(self, request: Request, reference: str) -> Json:
        """Ask about an order."""
        order = orders.find(reference)
        return orders.order_object(order, order.status_at(clock.now()))


def _verify_signature(request: Request, now: datetime.datetime) -> None:
    """Raises InvalidOrderSignature."""
    signature = request.headers.get(SIGNATURE_HEADER, "")
    match = _SIGNATURE.fullmatch(signature)
    if match is None:
        raise InvalidOrderSignature()
    message = f"{request.method} {request.get_full_path()}.".encode() + request._request.body
    if not hmac.compare_digest(signature, callbacks.sign(message, match[1])):
        raise InvalidOrderSignature()
    if abs(now.timestamp() - int(match[1])) > SIGNATURE_TOLERANCE.total_seconds():
        raise InvalidOrderSignature()


def _transactions(entries: SandboxEntryQuerySet) -> Json:
    return {"transactions": [entry_object(entry) for entry in entries]}


class OwnStatementViewSet(SandboxViewSet):
    """The statement of the merchant's own biller id."""

    @docs.own_statement
    def retrieve(self, request: Request, date: str) -> HttpResponse:
        query = api.read_query(docs.own_statement, request)
        try:
            day: datetime.date = DateField().run_validation(date)
        except ValidationError as error:
            shown = received.describe(date, is_shown=True)
            raise InvalidDate(param="date", detail=str(error.detail[0]), received=shown) from None  # type: ignore[index]
        return _file(merchant_of(request).biller_id, day, query["format"])


def _file(biller_id: str, day: datetime.date, name: str) -> HttpResponse:
    format_ = statements.FORMATS[name]
    entries = SandboxEntry.objects.of_day(biller_id=biller_id, day=day, now=clock.now())
    return HttpResponse(
        format_.write(biller_id, day, entries.iterator()),
        content_type=format_.content_type,
        headers={"Content-Disposition": f'attachment; filename="{biller_id}-{day}.{format_.extension}"'},
    )
