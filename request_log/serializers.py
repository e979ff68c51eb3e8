"""Query parameters and objects of the request log."""

from typing import Any

from rest_framework import serializers

from core import fields, ids, paging, response_fields
from request_log.models import Idempotency
from request_log.recorder import PREFIX

METHODS = ("GET", "POST", "PATCH", "DELETE")
STATUS_CLASSES = ("2xx", "3xx", "4xx", "5xx")


class RequestQuery(paging.ZonedQuery):
    """Filters of the request log."""

    limit = fields.QueryInteger(
        min_value=1, max_value=paging.MAX_LIMIT, default=paging.DEFAULT_LIMIT, help_text="Results per page."
    )
    after = fields.Text(
        min_length=1,
        max_length=ids.MAX_LENGTH,
        required=False,
        help_text="The `next_after` of the page before: the older requests that follow it.",
    )
    start_date = fields.QueryInstant(
        required=False, help_text="Ended on or after this date (of `timezone`) or instant."
    )
    end_date = fields.QueryInstant(
        end=True, required=False, help_text="Ended on or before this date (of `timezone`) or instant."
    )
    status = fields.Choice(STATUS_CLASSES, required=False, help_text="Only answers of this class.")
    method = fields.Choice(METHODS, required=False, help_text="Only requests by this method.")
    route = fields.Text(
        min_length=1, max_length=120, required=False, help_text="Only this route, as `route` shows it."
    )
    key = fields.Text(
        min_length=1,
        max_length=16,
        required=False,
        help_text="Only requests by the key with this public part.",
    )
    request_id = fields.Text(
        min_length=1, max_length=64, required=False, help_text="Only requests with this id."
    )
    payment_id = fields.Text(
        min_length=1, max_length=64, required=False, help_text="Only requests about this payment."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a period that ends before it starts."""
        start, end = attrs.get("start_date"), attrs.get("end_date")
        if start is not None and end is not None and start >= end:
            raise serializers.ValidationError({"start_date": ["must not be after end_date"]})
        return attrs


class RequestObject(serializers.Serializer[Any]):
    """A request of the merchant, without its bodies."""

    id = response_fields.public_id(PREFIX)
    request_id = response_fields.PatternField(
        {"pattern": r"^[A-Za-z0-9._\[\]-]{1,64}$"}, help_text="As in the header `X-Request-Id`."
    )
    method = serializers.CharField(max_length=8)
    route = serializers.CharField(
        max_length=120, help_text="The path with names in place of ids: `/v1/payments/{payment_id}`."
    )
    path = serializers.CharField(max_length=500, help_text="With the query. Long numbers are masked.")
    status = serializers.IntegerField(min_value=100, max_value=599)
    error_code = serializers.CharField(max_length=60, allow_null=True)
    duration_ms = serializers.IntegerField(min_value=0)
    key = serializers.CharField(max_length=16, allow_null=True, help_text="The public part of the key.")
    idempotency = serializers.ChoiceField(
        [each.value for each in Idempotency if each.value],
        allow_null=True,
        help_text="Of a POST with an Idempotency-Key. replayed: it got the answer of the first.",
    )
    payment_id = response_fields.public_id(
        "pay_", allow_null=True, help_text="The payment in the path or in a body of the request."
    )
    address = serializers.CharField(max_length=64, allow_null=True, help_text="Of the client.")
    created_at = response_fields.instant(help_text="When the request ended.")


class FullRequestObject(RequestObject):
    """A request of the merchant with its bodies."""

    request_body = serializers.CharField(
        allow_null=True,
        help_text="As text, without secrets, with masked names and accounts; the first 4,096 characters. Of "
        "many in a second only the first 10, and the first 10 refused ones, have it; others the size.",
    )
    response_body = serializers.CharField(allow_null=True, help_text="As the body of the request.")


class RequestList(serializers.Serializer[Any]):
    """A page of the request log."""

    requests = RequestObject(many=True)
    limit = serializers.IntegerField(min_value=1, max_value=paging.MAX_LIMIT)
    next_after = response_fields.public_id(
        PREFIX,
        allow_null=True,
        help_text="The `after` of the next page; null at the end. A page with filters may have fewer "
        "rows than `limit`, or none, and yet a next page.",
    )
