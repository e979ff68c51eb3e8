"""Parts that many operations share: parameters, headers and keys."""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension

from apidocs import error_responses
from banks.sandbox import SIGNATURE_HEADER
from core.objects import id_schema
from core.openapi import Signature
from idempotency.views import MAX_KEY_LENGTH

Json = dict[str, Any]
CONTROLS = r"\u0000-\u001f\u007f-\u009f"
REQUEST_ID = {"$ref": "#/components/parameters/RequestId"}
IDEMPOTENCY_KEY = {"$ref": "#/components/parameters/IdempotencyKey"}
PARAMETERS: Json = {
    "RequestId": {
        "name": "X-Request-Id",
        "in": "header",
        "description": "The id of this request in our logs: up to 64 letters, digits, dots, dashes and "
        "underscores. Without a valid one we create it. The response contains it.",
        "schema": {"type": "string"},
    },
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "Makes it safe to repeat this request for 24 hours: repeats get the first answer "
        "again. Use an order number, for example. Up to 255 characters in UTF-8, not only blanks.",
        "schema": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_KEY_LENGTH,
            "pattern": f"^[^{CONTROLS}]*[^\\s{CONTROLS}][^{CONTROLS}]*$",
        },
    },
}


def _sandbox_signature(message: str) -> Json:
    return {
        "type": "apiKey",
        "in": "header",
        "name": SIGNATURE_HEADER,
        "description": f"`t=<Unix time>,v1=<signature>`. The signature is the HMAC-SHA256 of `<t>.{message}` "
        "with `SANDBOX_BANK_SECRET` of the deployment, as 64 lower-case hexadecimal digits. `t` is in "
        "seconds and at most 5 minutes off.",
    }


COMPONENTS: Json = {
    "parameters": PARAMETERS,
    "headers": error_responses.HEADERS,
    "securitySchemes": {
        "secretKey": {
            "type": "http",
            "scheme": "bearer",
            "description": "A secret key: `tq_test_...` or `tq_live_...`. A key has scopes; an operation "
            "that needs another one is refused with 403 `insufficient_scope`.",
        },
        "monitoringToken": {
            "type": "http",
            "scheme": "bearer",
            "description": "`MONITORING_TOKEN` of the deployment. Without that setting the pages are open.",
        },
        Signature.REQUEST_TO_SANDBOX_BANK.value: _sandbox_signature("<method> <path with its query>.<body>"),
        Signature.NOTIFICATION_OF_SANDBOX_BANK.value: _sandbox_signature("<body>"),
    },
}
PATH_PARAMETERS: Json = {
    "payment_id": id_schema("pay_"),
    "qr_code_id": id_schema("qr_"),
    "refund_id": id_schema("ref_"),
    "exception_id": id_schema("rcp_"),
    "webhook_id": id_schema("wh_"),
    "delivery_id": id_schema("dlv_"),
    "event_id": id_schema("evt_"),
    "withdrawal_id": id_schema("wd_"),
    "transaction_id": id_schema("txn_"),
    "request_id": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    "bank": {"type": "string", "examples": ["sandbox", "scb"]},
    "secret": {"type": "string", "pattern": "^door_[0-9A-Za-z]{43}$"},
    "reference": {"type": "string", "examples": ["wd_0oDFPXrTS4spMBBZozkykNHKN2t"]},
    "date": {"type": "string", "format": "date"},
}


class AdvanceRequestBody(OpenApiSerializerExtension):
    """Exactly one of the two fields: generators make a union of two types of it."""

    target_class = "testclock.serializers.AdvanceRequest"

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        fields = auto_schema._map_basic_serializer(self.target, direction)["properties"]
        return {
            "description": "Exactly one of the two fields.",
            "oneOf": [
                {"type": "object", "required": [name], "properties": {name: schema}}
                for name, schema in fields.items()
            ],
        }
