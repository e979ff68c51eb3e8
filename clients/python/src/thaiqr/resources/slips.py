"""Slips that payers show."""

from dataclasses import replace

from thaiqr import models
from thaiqr.calls import Call, Mode, Resource, operation, post
from thaiqr.decoding import reader

SLIP = reader(models.Slip)


class Slips(Resource[Mode]):
    """`client.slips`: what banks say about slips that payers show."""

    @operation
    def check(
        self,
        *,
        qr_data: str | None = None,
        picture: bytes | None = None,
        payment_id: str | None = None,
        amount: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.Slip]:
        """Check a slip by the text of its mini-QR, or by a picture. Name the payment it is shown for."""
        expected = {"payment_id": payment_id, "amount": amount}
        return replace(post("/v1/slips", SLIP, idempotency_key, qr_data=qr_data, **expected), picture=picture)
