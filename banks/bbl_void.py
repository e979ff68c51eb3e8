"""What Bangkok Bank takes back: a payment of the same day, whole, until 23:00. The payer has it at once."""

from datetime import datetime, time
from typing import Any

from banks import bbl, bbl_api, reading
from banks.base import Link, Order, Word
from banks.exchange import Answer, NoAnswer, NotSent
from core import clock, money
from core.errors import InvalidRequest

CLOSES = time(23, 0)
CLOSED, REJECTED = "void_window_closed", "rejected_by_bank"
DONE = "000"
# Codes by which it surely refused: unknown biller, nothing found, wrong data, amount, reference, payee.
REFUSED = {"052", "209", "211", "213", "331", "332"}
# Statuses of a door that was not opened.
NOT_TAKEN = {401, 403, 404, 429}


class BblVoid:
    """`Order.charge_id` is the bank's transaction id of the payment, as `bbl.transaction_id` makes it."""

    def __init__(self, link: Link) -> None:
        self._biller_id = link.biller_id
        self._credentials = link.credentials

    def send(self, order: Order) -> Word:
        """The bank names a payment by its time and approval code: it is asked for them first.

        Whatever goes wrong with that question, the void was not sent.
        """
        if not _is_open(order, clock.now()):
            return Word("failed", failure_code=CLOSED)
        caller = bbl_api.Caller(self._credentials)
        try:
            told = self._payment(caller, order)
            words = bbl.words(told, self._biller_id) if told else []
        except (NotSent, NoAnswer, InvalidRequest, ValueError, OverflowError):
            return Word("not_sent")
        if not told or words[0].amount != order.amount:
            return Word("failed", failure_code=REJECTED)
        return _void(caller, told, order) if len(words) == 1 else Word("succeeded", order.charge_id)

    def inquire(self, order: Order) -> Word:
        """A payment that still stands proves nothing: the void may be on its way."""
        try:
            told = self._payment(bbl_api.Caller(self._credentials), order)
            words = bbl.words(told, self._biller_id) if told else []
        except (NotSent, NoAnswer, InvalidRequest, ValueError, OverflowError):
            return Word("unknown")
        return Word("succeeded", order.charge_id) if len(words) == 2 else Word("unknown")

    def _payment(self, caller: bbl_api.Caller, order: Order) -> dict[str, Any] | None:
        """What the bank says of the payment; None for one that it does not know.

        Raises NotSent, NoAnswer, InvalidRequest, ValueError.
        """
        day, reference1 = _place(order)
        asked = {
            "billerId": self._biller_id,
            "transDate": f"{day:%Y-%m-%d}",
            "amount": money.baht(order.amount),
            "reference1": reference1,
        }
        answer = caller.ask("inquiry_path", asked)
        if answer.status == 200 and bbl_api.code(answer) == bbl.UNPAID:
            return None
        if answer.status != 200 or bbl_api.code(answer) != bbl.FOUND:
            raise NoAnswer()
        told = reading.loads(answer.body)
        is_it = bbl.notice(told, self._biller_id).bank_transaction_id == order.charge_id
        return told if is_it else None


def _void(caller: bbl_api.Caller, told: dict[str, Any], order: Order) -> Word:
    names = ("billerId", "reference1", "reference2", "transDate", "transTime", "approvalCode")
    asked = {name: str(told.get(name) or "") for name in names} | {"amount": money.baht(order.amount)}
    try:
        return _word(caller.ask("void_path", asked), order)
    except NotSent:
        return Word("not_sent")
    except NoAnswer:
        return Word("unknown")


def _word(answer: Answer, order: Order) -> Word:
    if answer.status in NOT_TAKEN:
        return Word("not_sent")
    code = bbl_api.code(answer)
    if answer.status == 200 and code == DONE:
        return Word("succeeded", order.charge_id)
    return Word("failed", failure_code=REJECTED) if code in REFUSED else Word("unknown")


def _is_open(order: Order, now: datetime) -> bool:
    """Whether the day of the payment is today in Bangkok, and not over for the bank."""
    local = now.astimezone(clock.BANGKOK)
    try:
        day, _ = _place(order)
    except ValueError:
        return False
    return day.date() == local.date() and local.time() < CLOSES


def _place(order: Order) -> tuple[datetime, str]:
    """Day and reference of the payment. Raises ValueError for an id that this adapter did not make."""
    day, _, rest = order.charge_id.partition(".")
    reference1, _, bank_reference = rest.rpartition(".")
    if not reference1 or not bank_reference:
        raise ValueError("no transaction id of this bank")
    return datetime.strptime(day, "%Y%m%d").replace(tzinfo=clock.BANGKOK), reference1
