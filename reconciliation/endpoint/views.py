"""The notification endpoints. A bank authenticates by its own method, not by an API key."""

from contextlib import suppress

from rest_framework.request import Request

import banks
from core import clock, request_context
from core.http import client_addresses
from core.http.api import ApiViewSet
from core.http.responses import ApiResponse
from merchants import bank_connections
from reconciliation.endpoint import openapi as docs
from reconciliation.inquiries import confirmation_inquiries
from reconciliation.matching import intake, order_completion, services as matching
from reconciliation.models import NotificationResult


class NotificationViewSet(ApiViewSet):
    """Store a notification in one commit, apply it in the next, and acknowledge it."""

    parser_classes = []  # the signature is of the raw bytes, and these are stored

    @docs.create
    def create(self, request: Request, bank: str) -> ApiResponse:
        return _receive(bank, banks.get(bank), request)

    @docs.create_for_merchant
    def create_for_merchant(self, request: Request, bank: str, secret: str) -> ApiResponse:
        connection = bank_connections.find_by_secret(bank, secret)
        bank_connections.check_caller(connection, client_addresses.address_of(request._request))
        return _receive(bank, banks.get(bank, bank_connections.decrypt(connection)), request)


def _receive(bank: str, adapter: banks.Bank, request: Request) -> ApiResponse:
    body, now = request._request.body, clock.now()
    adapter.verify(headers=request.headers, body=body, now=now)
    request_context.set_actor(f"bank:{bank}")
    try:
        notification = adapter.parse_notification(body)
    except banks.UnreadableMessage as unreadable:
        intake.store(bank, body, NotificationResult.UNREADABLE, now)
        return ApiResponse.of(unreadable.acknowledgement or adapter.acknowledge(None))
    if isinstance(notification, banks.ReportedTransfer):
        if adapter.signs_callbacks:
            order_completion.accept_notification(bank=bank, body=body, notification=notification, now=now)
        else:  # it waits for staff
            intake.store(bank, body, NotificationResult.UNREADABLE, now)
    elif adapter.signs_callbacks:
        with suppress(intake.Moved):
            bank_transaction = intake.receive(bank=bank, body=body, notification=notification, now=now)
            matching.apply_report(bank_transaction, now=clock.now())
    else:
        confirmation_inquiries.receive_unsigned(bank=bank, body=body, notification=notification, now=now)
    return ApiResponse.of(adapter.acknowledge(notification))
