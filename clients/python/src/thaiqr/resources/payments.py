"""Payments by QR code and card, and money that did not fit them."""

from collections.abc import Mapping
from dataclasses import replace

from thaiqr import models
from thaiqr.calls import (
    Call,
    Instant,
    Mode,
    Resource,
    get,
    get_file,
    list_query,
    listing,
    operation,
    path,
    post,
)
from thaiqr.choices import EvidenceFormat, PaymentStatus, ReturnPart
from thaiqr.decoding import reader
from thaiqr.errors import NotPaidError
from thaiqr.models import Metadata
from thaiqr.paging import PAGE_SIZE, Listing, by_cursor, by_offset

EXCEPTION = reader(models.PaymentException)
PAYMENT = reader(models.Payment)


class Payments(Resource[Mode]):
    """`client.payments`: payments by QR code and card."""

    @operation
    def create(
        self,
        *,
        token_id: str,
        amount: int,
        currency: str = "THB",
        description: str | None = None,
        reference: str | None = None,
        metadata: Metadata | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.Payment]:
        """Charge a card by its token. Raises PaymentError with the `payment_id` if it is declined."""
        return post(
            "/v1/payments",
            PAYMENT,
            idempotency_key,
            token_id=token_id,
            amount=amount,
            currency=currency,
            description=description,
            reference=reference,
            metadata=metadata,
        )

    @operation
    def get(self, payment_id: str) -> Call[models.Payment]:
        """Read a payment."""
        return get(path("/v1/payments/{payment_id}", payment_id=payment_id), PAYMENT)

    @operation
    def lift_hold(self, payment_id: str, *, idempotency_key: str | None = None) -> Call[models.Payment]:
        """Say that you know who paid a payment whose `hold` is set."""
        where = path("/v1/payments/{payment_id}/lift-hold", payment_id=payment_id)
        return post(where, PAYMENT, idempotency_key)

    @operation
    def wait_until_paid(self, payment_id: str, *, seconds: float = 900.0) -> Call[models.Payment]:
        """Read a payment until it is paid. Raises NotPaidError if it ends otherwise, or `seconds` are over.

        It reads once a second at first, and every five seconds later.
        """
        where = path("/v1/payments/{payment_id}", payment_id=payment_id)
        return replace(get(where, PAYMENT), is_done=_is_paid, seconds=seconds)

    @listing
    def list(
        self,
        *,
        status: PaymentStatus | None = None,
        reference: str | None = None,
        qr_code_id: str | None = None,
        settlement_id: str | None = None,
        payment_link_id: str | None = None,
        bank_reference: str | None = None,
        amount: int | None = None,
        hold: bool | None = None,
        metadata: Mapping[str, str] | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.Payment]:
        """List or search payments, the newest first."""
        query = list_query(
            page_size,
            status=status,
            reference=reference,
            qr_code_id=qr_code_id,
            settlement_id=settlement_id,
            payment_link_id=payment_link_id,
            bank_reference=bank_reference,
            amount=amount,
            hold=None if hold is None else str(hold).lower(),
            metadata=metadata,
            start_date=start_date,
            end_date=end_date,
            timezone=timezone,
            after=after,
        )
        return Listing("/v1/payments", "payments", PAYMENT, query, by_cursor("payment_id"))

    @listing
    def timeline(self, payment_id: str, *, page_size: int = PAGE_SIZE) -> Listing[models.TimelineEntry]:
        """List all that happened to a payment, the newest first."""
        where = path("/v1/payments/{payment_id}/timeline", payment_id=payment_id)
        return Listing(where, "timeline", reader(models.TimelineEntry), list_query(page_size), by_offset)

    @operation
    def evidence(self, payment_id: str, *, format: EvidenceFormat | None = None) -> Call[bytes]:
        """Read the signed evidence of a payment, as a file. `thaiqr verify` says whether it is true.

        format: json by default, or a pdf in Thai. The key needs the scope `evidence:read`.
        """
        where = path("/v1/payments/{payment_id}/evidence", payment_id=payment_id)
        return get_file(where, format=format)

    @listing
    def list_exceptions(
        self, payment_id: str, *, page_size: int = PAGE_SIZE
    ) -> Listing[models.PaymentException]:
        """List money that did not fit this payment."""
        where = path("/v1/payments/{payment_id}/exceptions", payment_id=payment_id)
        return Listing(where, "exceptions", EXCEPTION, list_query(page_size), by_offset)

    @operation
    def accept_exception(
        self,
        payment_id: str,
        exception_id: str,
        *,
        note: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.PaymentException]:
        """Accept money that did not fit, as the payment of this payment."""
        where = path(
            "/v1/payments/{payment_id}/exceptions/{exception_id}/accept",
            payment_id=payment_id,
            exception_id=exception_id,
        )
        return post(where, EXCEPTION, idempotency_key, note=note)

    @operation
    def return_exception(
        self,
        payment_id: str,
        exception_id: str,
        *,
        part: ReturnPart | None = None,
        note: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.PaymentException]:
        """Return money that did not fit to its payer, or only the `excess` of an over-payment."""
        where = path(
            "/v1/payments/{payment_id}/exceptions/{exception_id}/return",
            payment_id=payment_id,
            exception_id=exception_id,
        )
        return post(where, EXCEPTION, idempotency_key, part=part, note=note)


def _is_paid(payment: models.Payment, is_over: bool) -> bool:
    if payment.status != "succeeded" and (is_over or payment.status != "pending"):
        raise NotPaidError(payment)
    return payment.status == "succeeded"
