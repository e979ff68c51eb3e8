"""Pages on which customers pay."""

from datetime import datetime

from thaiqr import models
from thaiqr.calls import (
    NULL,
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
from thaiqr.choices import ImageFormat
from thaiqr.decoding import reader
from thaiqr.models import Metadata
from thaiqr.paging import PAGE_SIZE, Listing, by_cursor

PAYMENT_LINK = reader(models.PaymentLink)


class PaymentLinks(Resource[Mode]):
    """`client.payment_links`: pages on which customers pay."""

    @operation
    def create(
        self,
        *,
        amount: int | None = None,
        amount_min: int | None = None,
        amount_max: int | None = None,
        currency: str = "THB",
        description: str | None = None,
        reference: str | None = None,
        metadata: Metadata | None = None,
        max_payments: int | None = 1,
        expires_at: datetime | str | None = None,
        expiry_minutes: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.PaymentLink]:
        """Make a page over `amount` satang, or over an amount that the customer chooses within the limits.

        max_payments: None is any number. expires_at: 366 days from now by default.
        """
        return post(
            "/v1/payment-links",
            PAYMENT_LINK,
            idempotency_key,
            amount=amount,
            amount_min=amount_min,
            amount_max=amount_max,
            currency=currency,
            description=description,
            reference=reference,
            metadata=metadata,
            max_payments=NULL if max_payments is None else max_payments,
            expires_at=expires_at,
            expiry_minutes=expiry_minutes,
        )

    @operation
    def get(self, payment_link_id: str) -> Call[models.PaymentLink]:
        """Read a link. List its payments by `client.payments.list(payment_link_id=...)`."""
        where = path("/v1/payment-links/{payment_link_id}", payment_link_id=payment_link_id)
        return get(where, PAYMENT_LINK)

    @operation
    def picture(self, payment_link_id: str, *, format: ImageFormat | None = None) -> Call[bytes]:
        """Draw a QR code of the page's address, to print. format: png by default."""
        where = path("/v1/payment-links/{payment_link_id}/picture", payment_link_id=payment_link_id)
        return get_file(where, format=format)

    @operation
    def deactivate(
        self, payment_link_id: str, *, idempotency_key: str | None = None
    ) -> Call[models.PaymentLink]:
        """End a link. Its open codes can still be paid."""
        where = path("/v1/payment-links/{payment_link_id}/deactivate", payment_link_id=payment_link_id)
        return post(where, PAYMENT_LINK, idempotency_key)

    @listing
    def list(
        self,
        *,
        reference: str | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.PaymentLink]:
        """List links, the newest first."""
        query = list_query(
            page_size,
            reference=reference,
            start_date=start_date,
            end_date=end_date,
            timezone=timezone,
            after=after,
        )
        return Listing(
            "/v1/payment-links", "payment_links", PAYMENT_LINK, query, by_cursor("payment_link_id")
        )
