"""The operations on QR codes in the OpenAPI document."""

from functools import partial
from typing import NotRequired

from core.http.openapi import Tag, described
from core.http.scopes import Scope
from payments.openapi import SearchedTo
from payments.serializers import StatusQuery
from qrcodes.serializers import CardQuery, ImageQuery, QrCodeRequest
from qrcodes.shapes import QrCodeObject

_code = partial(described, __file__, tag=Tag.QR_CODES)
_write, _read = partial(_code, scope=Scope.PAYMENTS_WRITE), partial(_code, scope=Scope.PAYMENTS_READ)

create = _write("create_qr_code", body=QrCodeRequest, response=QrCodeObject)
list_ = _read(
    "list_qr_codes",
    query=StatusQuery,
    response=QrCodeObject,
    rows="qr_codes",
    page={"words": "QR codes", "searched_to": NotRequired[SearchedTo]},
)
retrieve = _read("get_qr_code", response=QrCodeObject)
expire = _write("expire_qr_code", response=QrCodeObject)
image = _code("get_qr_code_image", query=ImageQuery)
card = _read("get_qr_code_card", query=CardQuery)
