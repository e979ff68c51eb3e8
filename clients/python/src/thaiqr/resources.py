"""The operations of the API, each described once for both clients.

Amounts are integer satang: 150000 is 1,500.00 THB. Every POST takes an `idempotency_key`. Give one that names
your order, so that a restart of your program does not create it twice. Otherwise each call makes its own,
which covers its retries. Times are datetimes with an offset, or dates (of `timezone`, by default UTC).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from thaiqr import models, webhooks
from thaiqr.calls import (
    Call,
    Client,
    Instant,
    Mode,
    Resource,
    delete,
    encode_query,
    get,
    get_file,
    listing,
    operation,
    patch,
    path,
    post,
)
from thaiqr.choices import (
    BalanceTransactionType,
    CardFormat,
    DeliveryState,
    EventType,
    Language,
    Method,
    PaymentStatus,
    RefundReason,
    RefundStatus,
    ReturnPart,
    Scenario,
    StatusClass,
    TransactionStatus,
    TransactionType,
    WebhookStatus,
    WithdrawalStatus,
)
from thaiqr.decoding import reader
from thaiqr.models import Metadata
from thaiqr.paging import PAGE_SIZE, Listing, by_cursor, by_next_after, by_offset, by_sequence

BALANCE = reader(models.Balance)
DELIVERY = reader(models.Delivery)
EXCEPTION = reader(models.PaymentException)
PAYMENT = reader(models.Payment)
QR_CODE = reader(models.QrCode)
REFUND = reader(models.Refund)
WEBHOOK = reader(models.Webhook)
WITHDRAWAL = reader(models.Withdrawal)


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


def _query(page_size: int, **filters: Any) -> dict[str, str]:
    return encode_query({"limit": page_size, **filters})


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
        query = _query(
            page_size,
            status=status,
            reference=reference,
            start_date=start_date,
            end_date=end_date,
            timezone=timezone,
            after=after,
        )
        return Listing("/v1/qr-codes", "qr_codes", QR_CODE, query, by_cursor("qr_code_id"))


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

    @listing
    def list(
        self,
        *,
        status: PaymentStatus | None = None,
        reference: str | None = None,
        qr_code_id: str | None = None,
        bank_transaction_id: str | None = None,
        amount: int | None = None,
        metadata: Mapping[str, str] | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.Payment]:
        """List or search payments, the newest first."""
        query = _query(
            page_size,
            status=status,
            reference=reference,
            qr_code_id=qr_code_id,
            bank_transaction_id=bank_transaction_id,
            amount=amount,
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
        return Listing(where, "timeline", reader(models.TimelineEntry), _query(page_size), by_offset)

    @listing
    def list_exceptions(
        self, payment_id: str, *, page_size: int = PAGE_SIZE
    ) -> Listing[models.PaymentException]:
        """List money that did not fit this payment."""
        where = path("/v1/payments/{payment_id}/exceptions", payment_id=payment_id)
        return Listing(where, "exceptions", EXCEPTION, _query(page_size), by_offset)

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
        query = _query(
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


class Withdrawals(Resource[Mode]):
    """`client.withdrawals`: money from the balance to a bank account."""

    @operation
    def create(
        self,
        *,
        amount: int,
        bank_code: str,
        bank_account: str,
        account_name: str,
        currency: str = "THB",
        reference: str | None = None,
        metadata: Metadata | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.Withdrawal]:
        """Send `amount` satang to an account. `bank_code`: three digits or a short name such as SCB."""
        return post(
            "/v1/withdrawals",
            WITHDRAWAL,
            idempotency_key,
            amount=amount,
            currency=currency,
            bank_code=bank_code,
            bank_account=bank_account,
            account_name=account_name,
            reference=reference,
            metadata=metadata,
        )

    @operation
    def get(self, withdrawal_id: str) -> Call[models.Withdrawal]:
        """Read a withdrawal."""
        return get(path("/v1/withdrawals/{withdrawal_id}", withdrawal_id=withdrawal_id), WITHDRAWAL)

    @listing
    def list(
        self,
        *,
        status: WithdrawalStatus | None = None,
        reference: str | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.Withdrawal]:
        """List withdrawals, the newest first."""
        query = _query(
            page_size,
            status=status,
            reference=reference,
            start_date=start_date,
            end_date=end_date,
            timezone=timezone,
            after=after,
        )
        return Listing("/v1/withdrawals", "withdrawals", WITHDRAWAL, query, by_cursor("withdrawal_id"))

    @operation
    def cancel(self, withdrawal_id: str, *, idempotency_key: str | None = None) -> Call[models.Withdrawal]:
        """Cancel a pending withdrawal."""
        where = path("/v1/withdrawals/{withdrawal_id}/cancel", withdrawal_id=withdrawal_id)
        return post(where, WITHDRAWAL, idempotency_key)


class Balance(Resource[Mode]):
    """`client.balance`: what is available, and what changed it."""

    @operation
    def get(self, *, at: Instant | None = None, timezone: str | None = None) -> Call[models.Balance]:
        """Read the balance, now or as it was `at` a time."""
        return get("/v1/balance", BALANCE, at=at, timezone=timezone)

    @listing
    def transactions(
        self,
        *,
        type: BalanceTransactionType | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.BalanceTransaction]:
        """List what changed the balance, the newest first."""
        return Listing(
            "/v1/balance/transactions",
            "balance_transactions",
            reader(models.BalanceTransaction),
            _query(
                page_size,
                type=type,
                start_date=start_date,
                end_date=end_date,
                timezone=timezone,
                after=after,
            ),
            by_cursor("balance_transaction_id"),
        )


class Transactions(Resource[Mode]):
    """`client.transactions`: the history of payments and refunds."""

    @operation
    def get(self, transaction_id: str) -> Call[models.Transaction]:
        """Read a transaction."""
        where = path("/v1/transactions/{transaction_id}", transaction_id=transaction_id)
        return get(where, reader(models.Transaction))

    @listing
    def list(
        self,
        *,
        status: TransactionStatus | None = None,
        type: TransactionType | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.Transaction]:
        """List transactions, the newest first."""
        return Listing(
            "/v1/transactions",
            "transactions",
            reader(models.Transaction),
            _query(
                page_size,
                status=status,
                type=type,
                start_date=start_date,
                end_date=end_date,
                timezone=timezone,
                after=after,
            ),
            by_cursor("transaction_id"),
        )


class Events(Resource[Mode]):
    """`client.events`: all events, also those that no webhook received."""

    @operation
    def get(self, event_id: str) -> Call[models.Event]:
        """Read an event."""
        return get(path("/v1/events/{event_id}", event_id=event_id), models.read_event)

    @listing
    def list(
        self,
        *,
        event: EventType | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.Event]:
        """List events, the newest first."""
        query = _query(
            page_size,
            event=event,
            start_date=start_date,
            end_date=end_date,
            timezone=timezone,
            after=after,
        )
        return Listing("/v1/events", "events", models.read_event, query, by_cursor("event_id"))

    @listing
    def follow(
        self, *, after_sequence: int = 0, event: EventType | None = None, page_size: int = PAGE_SIZE
    ) -> Listing[models.Event]:
        """List the events after a number, the oldest first, each once and without gaps.

        Keep the `sequence` of the last event that you handled, and start there next time.
        """
        query = _query(page_size, after_sequence=after_sequence, event=event)
        return Listing("/v1/events", "events", models.read_event, query, by_sequence)


class Webhooks(Resource[Mode]):
    """`client.webhooks`: endpoints, their secrets and deliveries. `unwrap` verifies what you receive."""

    unwrap = staticmethod(webhooks.unwrap)

    @operation
    def create(
        self,
        *,
        url: str,
        events: Sequence[EventType],
        secret: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.Webhook]:
        """Register an endpoint. It must answer a test message now. Without a secret one is made."""
        fields = {"url": url, "events": [*events], "secret": secret}
        return post("/v1/webhooks", WEBHOOK, idempotency_key, **fields)

    @operation
    def get(self, webhook_id: str) -> Call[models.Webhook]:
        """Read an endpoint."""
        return get(path("/v1/webhooks/{webhook_id}", webhook_id=webhook_id), WEBHOOK)

    @listing
    def list(self, *, page_size: int = PAGE_SIZE) -> Listing[models.Webhook]:
        """List the endpoints, the newest first."""
        return Listing("/v1/webhooks", "webhooks", WEBHOOK, _query(page_size), by_offset)

    @operation
    def change(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        events: Sequence[EventType] | None = None,
        status: WebhookStatus | None = None,
    ) -> Call[models.Webhook]:
        """Change an endpoint. What is not given stays."""
        where = path("/v1/webhooks/{webhook_id}", webhook_id=webhook_id)
        return patch(where, WEBHOOK, url=url, events=None if events is None else [*events], status=status)

    @operation
    def delete(self, webhook_id: str) -> Call[None]:
        """Delete an endpoint."""
        return delete(path("/v1/webhooks/{webhook_id}", webhook_id=webhook_id))

    @operation
    def get_secret(self, webhook_id: str) -> Call[models.WebhookSecret]:
        """Read the secret of an endpoint."""
        where = path("/v1/webhooks/{webhook_id}/secret", webhook_id=webhook_id)
        return get(where, reader(models.WebhookSecret))

    @operation
    def rotate_secret(
        self, webhook_id: str, *, secret: str | None = None, idempotency_key: str | None = None
    ) -> Call[models.Webhook]:
        """Renew the secret. For 24 hours the old one also signs."""
        where = path("/v1/webhooks/{webhook_id}/secret/rotate", webhook_id=webhook_id)
        return post(where, WEBHOOK, idempotency_key, secret=secret)

    @operation
    def test(self, webhook_id: str, *, idempotency_key: str | None = None) -> Call[models.Delivery]:
        """Send a test message."""
        where = path("/v1/webhooks/{webhook_id}/test", webhook_id=webhook_id)
        return post(where, DELIVERY, idempotency_key)

    @listing
    def deliveries(
        self,
        webhook_id: str,
        *,
        state: DeliveryState | None = None,
        event: EventType | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.Delivery]:
        """List what was sent to an endpoint, the newest first."""
        query = _query(
            page_size,
            state=state,
            event=event,
            start_date=start_date,
            end_date=end_date,
            timezone=timezone,
            after=after,
        )
        where = path("/v1/webhooks/{webhook_id}/deliveries", webhook_id=webhook_id)
        return Listing(where, "deliveries", DELIVERY, query, by_cursor("delivery_id"))

    @operation
    def redeliver(
        self, webhook_id: str, delivery_id: str, *, idempotency_key: str | None = None
    ) -> Call[models.Delivery]:
        """Send one event again."""
        where = path(
            "/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
            webhook_id=webhook_id,
            delivery_id=delivery_id,
        )
        return post(where, DELIVERY, idempotency_key)

    @operation
    def replay(
        self, webhook_id: str, *, since: Instant, idempotency_key: str | None = None
    ) -> Call[models.ReplayResult]:
        """Send all events since a time again that the endpoint did not receive."""
        where = path("/v1/webhooks/{webhook_id}/replay", webhook_id=webhook_id)
        return post(where, reader(models.ReplayResult), idempotency_key, since=since)


class Banks(Resource[Mode]):
    """`client.banks`: the banks that withdrawals and refunds can name."""

    @operation
    def list(self) -> Call[tuple[models.Bank, ...]]:
        """List all banks."""
        return get("/v1/banks", models.read_banks)


class Requests(Resource[Mode]):
    """`client.requests`: the log of your own requests of the last 30 days."""

    @operation
    def get(self, request_id: str) -> Call[models.FullLoggedRequest]:
        """Read a request with its redacted bodies, by the X-Request-Id of its answer."""
        where = path("/v1/requests/{request_id}", request_id=request_id)
        return get(where, reader(models.FullLoggedRequest))

    @listing
    def list(
        self,
        *,
        status: StatusClass | None = None,
        method: Method | None = None,
        route: str | None = None,
        key: str | None = None,
        request_id: str | None = None,
        payment_id: str | None = None,
        start_date: Instant | None = None,
        end_date: Instant | None = None,
        timezone: str | None = None,
        after: str | None = None,
        page_size: int = PAGE_SIZE,
    ) -> Listing[models.LoggedRequest]:
        """List requests, the newest first."""
        query = _query(
            page_size,
            status=status,
            method=method,
            route=route,
            key=key,
            request_id=request_id,
            payment_id=payment_id,
            start_date=start_date,
            end_date=end_date,
            timezone=timezone,
            after=after,
        )
        return Listing("/v1/requests", "requests", reader(models.LoggedRequest), query, by_next_after)


class Sandbox(Resource[Mode]):
    """`client.sandbox`: what test keys can make happen at the simulated bank."""

    @operation
    def pay(
        self,
        *,
        qr_data: str,
        scenario: Scenario = "paid",
        paid_at: Instant | None = None,
        report_at: Instant | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.SandboxPayment]:
        """Pay a code as the customer would."""
        return post(
            "/sandbox/v1/payments",
            reader(models.SandboxPayment),
            idempotency_key,
            qr_data=qr_data,
            scenario=scenario,
            paid_at=paid_at,
            report_at=report_at,
        )

    @operation
    def get_clock(self) -> Call[models.SandboxClock]:
        """Read how far the time of this merchant was advanced."""
        return get("/sandbox/v1/clock", reader(models.SandboxClock))

    @operation
    def advance_clock(
        self,
        *,
        advance_minutes: int | None = None,
        advance_seconds: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[models.AdvancedSandboxClock]:
        """Bring what waits nearer: expiry, retries, refunds, reports of the bank. Give one of the two."""
        return post(
            "/sandbox/v1/clock",
            reader(models.AdvancedSandboxClock),
            idempotency_key,
            advance_minutes=advance_minutes,
            advance_seconds=advance_seconds,
        )

    @operation
    def reset_clock(self) -> Call[None]:
        """Start the clock anew."""
        return delete("/sandbox/v1/clock")


class Resources(Generic[Mode]):
    """What both clients offer."""

    def __init__(self, client: Client) -> None:
        self.balance: Balance[Mode] = Balance(client)
        self.banks: Banks[Mode] = Banks(client)
        self.events: Events[Mode] = Events(client)
        self.payments: Payments[Mode] = Payments(client)
        self.qr_codes: QrCodes[Mode] = QrCodes(client)
        self.refunds: Refunds[Mode] = Refunds(client)
        self.requests: Requests[Mode] = Requests(client)
        self.sandbox: Sandbox[Mode] = Sandbox(client)
        self.transactions: Transactions[Mode] = Transactions(client)
        self.webhooks: Webhooks[Mode] = Webhooks(client)
        self.withdrawals: Withdrawals[Mode] = Withdrawals(client)
