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
    """A bank's report of one credit, decline or reversal. What the bank does not report is empty."""

    bank_reference: str
    kind: TransactionKind
    biller_id: str
    reference1: str
    reference2: str
    reference3: str
    amount: int  # at least 1
    paid_at: datetime  # the bank's time, to the millisecond
    payer_name: str
    payer_bank_code: str
    payer_account: str
    slip_reference: str = ""  # the id of the transfer in the mini-QR on the payer's slip (core.thai.slips)


@dataclass(frozen=True, slots=True)
class ReportedTransfer:
    """A bank's report about one of our transfers, which we did not inquire."""

    order_id: str
    status: FinalStatus  # returned: the money came back after it had arrived
    reference: str = ""  # the bank's own
    failure_code: str = ""


@dataclass(frozen=True, slots=True)
class AdapterConfig:
    """The data of one merchant that an adapter needs."""

    bank: str  # the adapter's name
    biller_id: str
    credentials: Mapping[str, str] = field(repr=False)  # by the names that it declares. Never log them


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

    code: str  # the bank's three digits in Thailand, as its statements have them
    signs_callbacks: bool
    """Whether `verify` proves that the bank sent a message.

    If not, an inquiry confirms each payment before it is credited.
    """
    calls_per_second: float  # how many calls the bank accepts from us, for all merchants together

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
    """A bank's answer about the transfer on a payer's slip. It never credits. What it leaves out is empty."""

    amount: int
    transferred_at: datetime
    payee: str  # as the bank shows it, with shortened account numbers
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
    """Money to send. `order_id` is ours, and the bank executes it only once."""

    order_id: str
    purpose: TransferPurpose
    amount: int  # at least 1
    bank_code: str
    account: str = field(repr=False)  # the whole number, which is never logged
    account_name: str
    charge_id: str  # of refunds without an account: the acquirer's charge or the bank's payment


@dataclass(frozen=True, slots=True)
class TransferResult:
    """A bank's answer to a transfer order or its inquiry.

    `not_sent`: the order surely did not arrive, so it may be sent again. `unknown`: it may have arrived, so
    it may only be inquired. `processing`: the bank has it.
    """

    status: ResultStatus
    reference: str = ""  # the bank's own
    failure_code: str = ""  # ours, with `failed` and `returned`


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
    """Money to take from a card. `order_id` is ours, and the acquirer charges only once for it."""

    order_id: str
    token: str = field(repr=False)  # what the acquirer gave the customer's browser for the card, for one use
    amount: int
    return_uri: str = ""  # where the acquirer sends the payer's browser after 3-D Secure


@dataclass(frozen=True, slots=True)
class ChargeResult:
    """An acquirer's answer about a charge.

    `declined`: it was tried and failed because of `failure_code`. `refused`: the token is invalid and nothing
    was tried. `pending`: not decided yet. `unknown`: no readable answer in time, so we inquire and never
    charge again. `not_sent`: the request surely did not arrive. `missing`: the acquirer does not know the
    charge. fee and fee_vat: None until the acquirer has said both.
    """

    outcome: ChargeOutcome
    charge_id: str = ""  # the acquirer's own
    failure_code: DeclineCode | TokenErrorCode | None = None
    brand: str = ""  # lower case
    last4: str = ""
    paid_at: datetime | None = None  # the acquirer's time, with `succeeded`
    amount: int | None = None  # as the acquirer has it
    currency: str | None = None  # as the acquirer has it
    authorize_uri: str = ""  # with `pending`: the page for 3-D Secure
    fee: int | None = None  # what the acquirer keeps, with the interest of instalments
    fee_vat: int | None = None  # the VAT on it, which the acquirer keeps too


@dataclass(frozen=True, slots=True)
class SettledItem:
    """An entry of the acquirer's ledger that a transfer pays out. What we receive is positive.

    The caller checks that amount - fee - fee_vat is net.
    """

    kind: SettledItemKind  # adjustment: what else changes what we receive
    reference: str  # the acquirer's id
    order_id: str  # ours, or empty
    amount: int  # what the payer paid, or got back (negative)
    fee: int | None  # what the acquirer keeps of it; None if it did not say so
    fee_vat: int | None
    net: int  # what the entry adds to the transfer, as the ledger has it
    description: str = ""  # the acquirer's name for an adjustment, such as `dispute.started.debit`


@dataclass(frozen=True, slots=True)
class AcquirerTransfer:
    """A transfer of the acquirer to our bank account.

    Its items add up to its amount if the whole balance was transferred. The caller checks that.
    """

    id: str
    amount: int  # what leaves our balance at the acquirer
    fee: int  # the price of the transfer itself
    fee_vat: int
    net: int  # what arrives at our bank: amount - fee - fee_vat
    state: AcquirerTransferState  # sent: the acquirer's bank has it; paid: it arrived; failed: it will not
    created_at: datetime
    sent_at: datetime | None
    paid_at: datetime | None
    items: tuple[SettledItem, ...]  # what the transfer pays out


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """An item that the acquirer owes us."""

    id: str  # the acquirer's
    transferable_at: datetime  # transfers pay the item from this time on
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

    seconds: float  # the longest time that `charge` takes

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
