"""Codes that customers scan."""

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
from thaiqr.choices import CardFormat, Language, PaymentStatus
from thaiqr.decoding import reader
from thaiqr.models import Metadata
from thaiqr.paging import PAGE_SIZE, Listing, by_cursor

QR_CODE = reader(models.QrCode)


class QrCodes(Resource[Mode]):
    """`client.qr_codes`: codes that customers scan."""

    @operation
    def create(
        self,
        *,
        amount: int,
        currency: str = "THB",
        reference: str | None = None,
        expiry_minutes: int | None = None,
        client_name: str | None = None,
        client_bank_name: str | None = None,
        client_bank_account: str | None = None,
        metadata: Metadata | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.QrCode]:
        """Create a code over `amount` satang, with its pending payment. It expires after 15 minutes."""
        return post(
            "/v1/qr-codes",
            QR_CODE,
            idempotency_key,
            amount=amount,
            currency=currency,
            reference=reference,
            expiry_minutes=expiry_minutes,
            client_name=client_name,
            client_bank_name=client_bank_name,
            client_bank_account=client_bank_account,
            metadata=metadata,
        )

    @operation
    def get(self, qr_code_id: str) -> Call[models.QrCode]:
        """Read a code."""
        return get(path("/v1/qr-codes/{qr_code_id}", qr_code_id=qr_code_id), QR_CODE)

    @operation
    def card(
        self,
        qr_code_id: str,
        *,
        format: CardFormat | None = None,
        size: int | None = None,
        lang: Language | None = None,
    ) -> Call[bytes]:
        """Draw a card to send or to print: the code with shop, amount, reference and expiry.

        format: png by default. size: its width in pixels. lang: th by default.
        """
        where = path("/v1/qr-codes/{qr_code_id}/card", qr_code_id=qr_code_id)
        return get_file(where, format=format, size=size, lang=lang)

    @operation
    def expire(self, qr_code_id: str, *, idempotency_key: str | None = None) -> Call[models.QrCode]:
        """End a pending code now."""
        where = path("/v1/qr-codes/{qr_code_id}/expire", qr_code_id=qr_code_id)
        return post(where, QR_CODE, idempotency_key)

    @listing
    def list(
        self,
        *,
        status: PaymentStatus | None = None,
        reference: str | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.QrCode]:
        """List codes, the newest first."""
        query = list_query(
            page_size,
            status=status,
            reference=reference,
            start_date=start_date,
            end_date=end_date,
            timezone=timezone,
            after=after,
        )
        return Listing("/v1/qr-codes", "qr_codes", QR_CODE, query, by_cursor("qr_code_id"))
