"""Refunds, and the links by which payers name their accounts."""

from dataclasses import dataclass

from thaiqr import models
from thaiqr.calls import Call, Instant, Mode, Resource, get, list_query, listing, operation, path, post
from thaiqr.choices import RefundReason, RefundStatus
from thaiqr.decoding import reader
from thaiqr.models import Metadata
from thaiqr.paging import PAGE_SIZE, Listing, by_cursor

REFUND = reader(models.Refund)


@dataclass(frozen=True, slots=True)
class Destination:
    """The account that a refund goes to. `bank_code`: three digits or a short name such as SCB."""

    bank_code: str
    bank_account: str
    account_name: str

    def body(self) -> dict[str, str]:
        """The object that the API takes."""
        return {
            "bank_code": self.bank_code,
            "bank_account": self.bank_account,
            "account_name": self.account_name,
        }


class Refunds(Resource[Mode]):
    """`client.refunds`: money back to payers."""

    @operation
    def create(
        self,
        *,
        payment_id: str,
        amount: int | None = None,
        reason: RefundReason | None = None,
        note: str | None = None,
        destination: Destination | None = None,
        metadata: Metadata | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.Refund]:
        """Refund a payment: `amount` satang, or all that remains. It goes to the account that paid."""
        return post(
            "/v1/refunds",
            REFUND,
            idempotency_key,
            payment_id=payment_id,
            amount=amount,
            reason=reason,
            note=note,
            destination=destination.body() if destination else None,
            metadata=metadata,
        )

    @operation
    def get(self, refund_id: str) -> Call[models.Refund]:
        """Read a refund."""
        return get(path("/v1/refunds/{refund_id}", refund_id=refund_id), REFUND)

    @listing
    def list(
        self,
        *,
        status: RefundStatus | None = None,
        payment_id: str | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.Refund]:
        """List refunds, the newest first."""
        query = list_query(
            page_size,
            status=status,
            payment_id=payment_id,
            start_date=start_date,
            end_date=end_date,
            timezone=timezone,
            after=after,
        )
        return Listing("/v1/refunds", "refunds", REFUND, query, by_cursor("refund_id"))

    @operation
    def set_destination(
        self,
        refund_id: str,
        *,
        bank_code: str,
        bank_account: str,
        account_name: str,
        idempotency_key: str | None = None,
    ) -> Call[models.Refund]:
        """Name the account of a refund that waits for one."""
        return post(
            path("/v1/refunds/{refund_id}/destination", refund_id=refund_id),
            REFUND,
            idempotency_key,
            bank_code=bank_code,
            bank_account=bank_account,
            account_name=account_name,
        )

    @operation
    def cancel(self, refund_id: str, *, idempotency_key: str | None = None) -> Call[models.Refund]:
        """Cancel a refund that no bank was told about."""
        return post(path("/v1/refunds/{refund_id}/cancel", refund_id=refund_id), REFUND, idempotency_key)

    @operation
    def create_claim_link(
        self, refund_id: str, *, expires_in_hours: int | None = None, idempotency_key: str | None = None
    ) -> Call[models.ClaimLink]:
        """Make a link by which the payer names the account. Read its address by `get_claim_link`."""
        return post(
            path("/v1/refunds/{refund_id}/claim-link", refund_id=refund_id),
            reader(models.ClaimLink),
            idempotency_key,
            expires_in_hours=expires_in_hours,
        )

    @operation
    def get_claim_link(self, refund_id: str) -> Call[models.ClaimLinkSecret]:
        """Read the newest claim link of a refund, with its address."""
        return get(
            path("/v1/refunds/{refund_id}/claim-link", refund_id=refund_id), reader(models.ClaimLinkSecret)
        )
