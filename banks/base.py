"""What an adapter to a bank or acquirer does, and the data that goes in and out. Adapters use no models.

All amounts are satang, all instants UTC.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Literal, Protocol, runtime_checkable

from banks.http_client import FailureCause
from core.errors import AuthenticationError, NotFound
from core.thai.slips import Slip

TransactionKind = Literal["credit", "decline", "reversal"]
TransferPurpose = Literal["refund", "withdrawal", "return"]
FinalStatus = Literal["succeeded", "failed", "returned"]
ResultStatus = FinalStatus | Literal["processing", "unknown", "not_sent"]
ChargeOutcome = Literal["succeeded", "declined", "refused", "pending", "unknown", "not_sent", "missing"]
DeclineCode = Literal["insufficient_funds", "card_declined", "expired_card", "processing_error"]
TokenErrorCode = Literal["invalid_token_id", "token_already_used"]
AcquirerTransferState = Literal["pending", "sent", "paid", "failed"]
SettledItemKind = Literal["charge", "refund", "adjustment"]
UnknownBank = NotFound.of("bank_not_found", "No bank {name}.")
InvalidSignature = AuthenticationError.of("invalid_signature", "The signature is missing, wrong or too old.")
"""The sender did not prove to be the bank. The message is not stored."""


class UnreadableMessage(Exception):
    """The adapter cannot read a message of the bank. Staff get it as an exception.

    acknowledgement: the answer to this message, if the bank wants parts of the message repeated; otherwise
    the answer is `Bank.acknowledge(None)`. body: the bank's answer to an inquiry, byte for byte.
    """

    def __init__(
        self, reason: str = "", *, acknowledgement: Mapping[str, str] | None = None, body: bytes = b""
    ) -> None:
        super().__init__(reason)
        self.acknowledgement, self.body = acknowledgement, body


class InquiryFailed(Exception):
    """The bank gave no clear answer to an inquiry. The caller repeats the inquiry later."""

    def __init__(self, reason: str = "", *, cause: FailureCause = "other") -> None:
        super().__init__(reason)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class ReportedTransaction:
    """A bank's report of one credit, decline or reversal.

    amount: at least 1. paid_at: the bank's time, to the millisecond. References and payer are empty if the
    bank does not report them. slip_reference: the id of the transfer in the mini-QR on the payer's slip
    (core.thai.slips).
    """

    bank_reference: str
    kind: TransactionKind
    biller_id: str
    reference1: str
    reference2: str
    reference3: str
    amount: int
    paid_at: datetime
    payer_name: str
    payer_bank_code: str
    payer_account: str
    slip_reference: str = ""


@dataclass(frozen=True, slots=True)
class ReportedTransfer:
    """A bank's report about one of our transfers, which we did not inquire.

    `returned`: the money came back after it had arrived. reference: the bank's own, or empty.
    """

    order_id: str
    status: FinalStatus
    reference: str = ""
    failure_code: str = ""


@dataclass(frozen=True, slots=True)
class AdapterConfig:
    """The data of one merchant that an adapter needs. bank: the adapter's name.

    credentials: by the names that the adapter declares. Never log them.
    """

    bank: str
    biller_id: str
    credentials: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class InquiryRequest:
    """Ask what was paid for a code in a time range. amount: of the code; payers may have paid another one."""

    biller_id: str
    reference1: str
    amount: int
    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class InquiryResult:
    """A bank's answer to an inquiry, byte for byte and parsed. Without transactions nothing was paid."""

    body: bytes
    transactions: tuple[ReportedTransaction, ...]


class Bank(Protocol):
    """The adapter to one bank, with its configuration."""

    code: str
    """The bank's three digits in Thailand, as its statements have them."""
    signs_callbacks: bool
    """Whether `verify` proves that the bank sent a message.

    If not, an inquiry confirms each payment before it is credited.
    """
    calls_per_second: float
    """How many calls the bank accepts from us, for all merchants together."""

    @staticmethod
    def calls_needed(inquiry: InquiryRequest) -> int:
        """How many calls `inquire` makes, without those for access tokens."""

    def verify(self, *, headers: Mapping[str, str], body: bytes, now: datetime) -> None:
        """Raise InvalidSignature unless the bank sent this. `headers` ignores case.

        Accepts everything if the bank does not sign (see `signs_callbacks`).
        """

    def parse_notification(self, body: bytes) -> ReportedTransaction | ReportedTransfer:
        """Read a verified message. Raises UnreadableMessage."""

    def acknowledge(self, transaction: ReportedTransaction | ReportedTransfer | None) -> dict[str, str]:
        """Return the body of the 200 that stops the bank's retries. None: for an unreadable message."""

    def inquire(self, inquiry: InquiryRequest) -> InquiryResult:
        """Ask what was paid, in at most 10 s. Raises InquiryFailed, UnreadableMessage."""


@dataclass(frozen=True, slots=True)
class SlipTransfer:
    """A bank's answer about the transfer on a payer's slip. It never credits money.

    payee: as the bank shows it, with shortened account numbers. biller_id and the references are empty if the
    bank does not report them.
    """

    amount: int
    transferred_at: datetime
    payee: str
    biller_id: str
    reference1: str
    reference2: str
    reference3: str


@runtime_checkable
class SlipLookup(Protocol):
    """A bank that also answers questions about slips."""

    def look_up_slip(self, slip: Slip) -> SlipTransfer | None:
        """Ask the bank once. None: it has no such transfer. Raises InquiryFailed, UnreadableMessage."""


@dataclass(frozen=True, slots=True)
class TransferOrder:
    """Money to send. `order_id` is ours, and the bank executes it only once.

    amount: at least 1. account: the whole number, which is never logged. charge_id: for refunds without an
    account, the acquirer's charge or the bank's payment; otherwise empty.
    """

    order_id: str
    purpose: TransferPurpose
    amount: int
    bank_code: str
    account: str = field(repr=False)
    account_name: str
    charge_id: str


@dataclass(frozen=True, slots=True)
class TransferResult:
    """A bank's answer to a transfer order or its inquiry.

    `not_sent`: the order surely did not arrive, so it may be sent again. `unknown`: it may have arrived, so
    it may only be inquired. `processing`: the bank has it. reference: the bank's own. failure_code: ours,
    with `failed` and `returned`.
    """

    status: ResultStatus
    reference: str = ""
    failure_code: str = ""


class TransferSender(Protocol):
    """A route by which money leaves. Failures are results, never exceptions."""

    IS_VOID_ONLY: ClassVar[bool]
    """Whether it sends only by voiding the payment in `TransferOrder.charge_id`, never to an account."""

    def send(self, order: TransferOrder) -> TransferResult:
        """Order the bank to send the money."""

    def inquire(self, order: TransferOrder) -> TransferResult:
        """Ask about an order. This never makes the bank execute it."""


class LiveSender(TransferSender, Protocol):
    """The sender of a bank of live merchants, configured for one of them."""

    def __init__(self, config: AdapterConfig) -> None: ...


@dataclass(frozen=True, slots=True)
class ChargeRequest:
    """Money to take from a card. `order_id` is ours, and the acquirer charges only once for it.

    token: what the acquirer gave the customer's browser for the card, for one use. return_uri: where the
    acquirer sends the payer's browser after 3-D Secure.
    """

    order_id: str
    token: str = field(repr=False)
    amount: int
    return_uri: str = ""


@dataclass(frozen=True, slots=True)
class ChargeResult:
    """An acquirer's answer about a charge.

    `declined`: it was tried and failed because of `failure_code`. `refused`: the token is invalid and nothing
    was tried. `pending`: not decided yet. `unknown`: no readable answer in time, so we inquire and never
    charge again. `not_sent`: the request surely did not arrive. `missing`: the acquirer does not know the
    charge. charge_id: the acquirer's own. brand: lower case. paid_at: the acquirer's time, with `succeeded`.
    amount and currency: as the acquirer has them, or None. authorize_uri: with `pending`, the page for 3-D
    Secure, or empty. fee: what the acquirer keeps of a charge that succeeded, with the interest of
    instalments; fee_vat: the VAT on it, which the acquirer keeps too. Both are None until the acquirer has
    said both.
    """

    outcome: ChargeOutcome
    charge_id: str = ""
    failure_code: DeclineCode | TokenErrorCode | None = None
    brand: str = ""
    last4: str = ""
    paid_at: datetime | None = None
    amount: int | None = None
    currency: str | None = None
    authorize_uri: str = ""
    fee: int | None = None
    fee_vat: int | None = None


@dataclass(frozen=True, slots=True)
class SettledItem:
    """An entry of the acquirer's ledger that a transfer pays out. What we receive is positive.

    `charge` and `refund`: reference is the acquirer's id, order_id ours or empty. `adjustment`: anything else
    that changes what we receive; description is the acquirer's name for it, such as `dispute.started.debit`.
    amount: what the payer paid, or got back (negative). fee and fee_vat: what the acquirer keeps of it, or
    None if it did not say them. net: what the entry adds to the transfer, as the ledger has it. The caller
    checks that amount - fee - fee_vat is net.
    """

    kind: SettledItemKind
    reference: str
    order_id: str
    amount: int
    fee: int | None
    fee_vat: int | None
    net: int
    description: str = ""


@dataclass(frozen=True, slots=True)
class AcquirerTransfer:
    """A transfer of the acquirer to our bank account.

    amount: what leaves our balance at the acquirer. fee, fee_vat: the price of the transfer itself.
    net: what arrives at our bank, amount - fee - fee_vat. `sent`: the acquirer's bank has it. `paid`: it
    arrived. `failed`: it will not arrive. items: what the transfer pays out. They add up to amount if the
    whole balance was transferred. The caller checks that.
    """

    id: str
    amount: int
    fee: int
    fee_vat: int
    net: int
    state: AcquirerTransferState
    created_at: datetime
    sent_at: datetime | None
    paid_at: datetime | None
    items: tuple[SettledItem, ...]


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """id: the acquirer's. transferable_at: transfers pay the item from this time on."""

    id: str
    transferable_at: datetime
    item: SettledItem


class LedgerCopy(Protocol):
    """What the caller keeps of an acquirer's ledger, so that each reading continues the one before."""

    read_until: datetime | None

    def add(self, entries: Sequence[LedgerEntry], read_until: datetime) -> None:
        """Keep each entry once, and until when the ledger was read."""

    def entries(self, after: datetime | None, until: datetime) -> list[LedgerEntry]:
        """Those that became transferable after an instant and until another, as they came."""


class Acquirer(TransferSender, Protocol):
    """The adapter to an acquirer, which sees tokens and never card numbers. As a sender it refunds to cards.

    Failures are results, never exceptions.
    """

    seconds: float
    """The longest time that `charge` takes."""

    def charge(self, charge: ChargeRequest) -> ChargeResult:
        """Take the money, once for an `order_id`."""

    def find(self, order_id: str, *, charge_id: str, starts_at: datetime) -> ChargeResult:
        """Look for a charge that was requested after `starts_at`. This never charges.

        charge_id: the acquirer's id, empty if we never got it.
        """

    def settlements(self, since: datetime, until: datetime, ledger: LedgerCopy) -> list[AcquirerTransfer]:
        """The transfers that were created from `since` on and before `until`, the oldest first.

        ledger: for an acquirer that does not list what a transfer pays.

        Raises InquiryFailed unless the list and all items were read completely.
        """
