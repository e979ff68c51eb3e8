"""The operations on QR codes in the OpenAPI document."""

from functools import partial
from typing import Any, NotRequired

from core.openapi import Answer, Body, Link, Operation, Tag, page_of
from core.scopes import Scope
from merchants.errors import BankNotConfigured
from payments import usual_amounts
from payments.openapi import SearchedTo
from payments.serializers import StatusQuery
from qrcodes.errors import InvalidFormat, QrCodeGone, QrCodeNotExpirable, QrCodeNotFound, ReferenceInUse
from qrcodes.serializers import CardQuery, ImageQuery, QrCodeRequest
from qrcodes.shapes import QrCodeObject

_write = partial(Operation, tag=Tag.QR_CODES, scope=Scope.PAYMENTS_WRITE)
_read = partial(Operation, tag=Tag.QR_CODES, scope=Scope.PAYMENTS_READ)
_GIVEN = {"amount": 150_000, "currency": "THB", "reference": "INV-2026-0042", "metadata": {"table": 4}}
QR_CODE = _GIVEN | {
    "amount_display": "1,500.00 THB",
    "qr_code_id": "qr_0oDFPXZGqcZBZBvfqisJHCvwJvO",
    "qr_data": "00020101021230630016A000000677010112011509940001580400102207K2M9QX4T1B8V5N3C6ZD"
    "530376454071500.005802TH63044AFB",
    "qr_image_url": "https://pay.example/Thai/qr-codes/qr_0oDFPXZGqcZBZBvfqisJHCvwJvO/image",
    "payment_page_url": "https://pay.example/pay/qr_0oDFPXZGqcZBZBvfqisJHCvwJvO",
    "expires_at": "2026-11-21T03:19:05.123Z",
    "payment_id": "pay_0oDFPZjiZAWmp6O2BO6aMzhgtUt",
    "status": "pending",
}
_PICTURES: dict[str, Any] = {"image/png": {}, "image/svg+xml": {}}

create = _write(
    name="create_qr_code",
    summary="Generate a QR code",
    description="Creates a QR code and a pending payment of the same amount and reference. The response "
    "omits optional fields without a value. The header `Warning-Amount` says that the amount is 100 times "
    "the merchant's usual one, or a hundredth of it: the unit may be wrong.",
    body=Body(QrCodeRequest, _GIVEN | {"expiry_minutes": 15}),
    response=Answer(QrCodeObject, QR_CODE),
    errors=(BankNotConfigured, ReferenceInUse),
    headers=(usual_amounts.HEADER,),
    links=(
        Link("get_payment", "payment_id"),
        Link("get_qr_code", "qr_code_id"),
        Link("expire_qr_code", "qr_code_id"),
        Link("get_qr_code_image", "qr_code_id"),
        Link("pay_at_sandbox_bank", body={"qr_data": "$response.body#/qr_data", "scenario": "paid"}),
    ),
)
list_ = _read(
    name="list_qr_codes",
    summary="List QR codes",
    description="Newest first. Each has the status of its payment.",
    query=StatusQuery,
    response=page_of(
        "qr_codes", QrCodeObject, QR_CODE, words="QR codes", searched_to=NotRequired[SearchedTo]
    ),
)
retrieve = _read(
    name="get_qr_code",
    summary="Retrieve a QR code",
    description="Its status is the status of its payment.",
    response=Answer(QrCodeObject, QR_CODE),
    errors=(QrCodeNotFound,),
)
expire = _write(
    name="expire_qr_code",
    summary="Expire a pending QR code now",
    description="The payment becomes `expired`. A code that is not pending does not change.",
    response=Answer(QrCodeObject, QR_CODE | {"status": "expired", "expires_at": "2026-11-21T03:09:12.482Z"}),
    errors=(QrCodeNotFound, QrCodeNotExpirable),
    links=(Link("get_qr_code", "qr_code_id"), Link("get_qr_code_image", "qr_code_id")),
)
image = Operation(
    name="get_qr_code_image",
    tag=Tag.QR_CODES,
    summary="Picture of a QR code",
    description="For an `<img>`: it needs no key and shows no personal data. PNG, or SVG by `format` or "
    "`Accept`. If the code can no longer be paid, the status is 410 and the picture shows PAID or EXPIRED.",
    query=ImageQuery,
    headers=("Ignored-Parameters",),
    responses={200: _PICTURES, 410: _PICTURES},
    errors=(InvalidFormat, QrCodeNotFound, QrCodeGone),
)
card = _read(
    name="get_qr_code_card",
    summary="Card of a QR code",
    description="A picture to send or to print: the code in a frame, with the shop's name, the amount, the "
    "reference and the expiry. Only a code that can be paid has one. The payment page offers it as a PNG "
    "without a key: `/pay/{qr_code_id}/card.png`.",
    query=CardQuery,
    responses={200: {"image/png": {}, "application/pdf": {}}},
    errors=(QrCodeNotFound, QrCodeGone),
)
