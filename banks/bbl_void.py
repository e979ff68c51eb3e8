"""What Bangkok Bank takes back: a payment of the same day, whole, until 23:00. The payer has it at once."""

from datetime import datetime, time
from typing import Any

from banks import bbl, bbl_api, parsing
from banks.base import AdapterConfig, TransferOrder, TransferResult
from banks.http_client import NoResponse, NotSent, Response
from core import clock, money
from core.errors import InvalidRequest

CLOSING_TIME = time(23, 0)
CODE_WINDOW_CLOSED, CODE_REJECTED = "void_window_closed", "rejected_by_bank"
CODE_DONE = "000"
# Codes by which it surely refused: unknown biller, nothing found, wrong data, amount, reference, payee.
FINAL_REFUSAL_CODES = {"052", "209", "211", "213", "331", "332"}
# Statuses of a door that was not opened.
NOT_ACCEPTED_STATUSES = {401, 403, 404, 429}


class BblVoidSender:
    """`TransferOrder.charge_id` is the bank's transaction id, as `bbl.transaction_id` makes it."""

    def __init__(self, config: AdapterConfig) -> None:
        self._biller_id = config.biller_id
        self._credentials = config.credentials

    def send(self, order: TransferOrder) -> TransferResult:
        """The bank names a payment by its time and approval code: it is asked for them first.

        Whatever goes wrong with that question, the void was not sent.
        """
        if not _is_window_open(order, clock.now()):
            return TransferResult("failed", failure_code=CODE_WINDOW_CLOSED)
        client = bbl_api.BblClient(self._credentials)
        try:
            data = self._payment(client, order)
            transactions = bbl.parse_transactions(data, self._biller_id) if data else []
        except (NotSent, NoResponse, InvalidRequest, ValueError, OverflowError):
            return TransferResult("not_sent")
        if not data or transactions[0].amount != order.amount:
            return TransferResult("failed", failure_code=CODE_REJECTED)
        return (
            _void(client, data, order)
            if len(transactions) == 1
            else TransferResult("succeeded", order.charge_id)
        )

    def inquire(self, order: TransferOrder) -> TransferResult:
        """A payment that still stands proves nothing: the void may be on its way."""
        try:
            data = self._payment(bbl_api.BblClient(self._credentials), order)
            transactions = bbl.parse_transactions(data, self._biller_id) if data else []
        except (NotSent, NoResponse, InvalidRequest, ValueError, OverflowError):
            return TransferResult("unknown")
        return (
            TransferResult("succeeded", order.charge_id)
            if len(transactions) == 2
            else TransferResult("unknown")
        )

    def _payment(self, client: bbl_api.BblClient, order: TransferOrder) -> dict[str, Any] | None:
        """What the bank says of the payment; None for one that it does not know.

        Raises NotSent, NoResponse, InvalidRequest, ValueError.
        """
        day, reference1 = _split_transaction_id(order)
        body = {
            "billerId": self._biller_id,
            "transDate": f"{day:%Y-%m-%d}",
            "amount": money.baht(order.amount),
            "reference1": reference1,
        }
        response = client.request("inquiry_path", body)
        if response.status == 200 and bbl_api.response_code(response) == bbl.CODE_NOT_FOUND:
            return None
        if response.status != 200 or bbl_api.response_code(response) != bbl.CODE_FOUND:
            raise NoResponse()
        data = parsing.parse_json(response.body)
        is_it = bbl.parse_transaction(data, self._biller_id).bank_transaction_id == order.charge_id
        return data if is_it else None


def _void(client: bbl_api.BblClient, data: dict[str, Any], order: TransferOrder) -> TransferResult:
    names = ("billerId", "reference1", "reference2", "transDate", "transTime", "approvalCode")
    body = {name: str(data.get(name) or "") for name in names} | {"amount": money.baht(order.amount)}
    try:
        return _parse_result(client.request("void_path", body), order)
    except NotSent:
        return TransferResult("not_sent")
    except NoResponse:
        return TransferResult("unknown")


def _parse_result(response: Response, order: TransferOrder) -> TransferResult:
    if response.status in NOT_ACCEPTED_STATUSES:
        return TransferResult("not_sent")
    code = bbl_api.response_code(response)
    if response.status == 200 and code == CODE_DONE:
        return TransferResult("succeeded", order.charge_id)
    return (
        TransferResult("failed", failure_code=CODE_REJECTED)
        if code in FINAL_REFUSAL_CODES
        else TransferResult("unknown")
    )


def _is_window_open(order: TransferOrder, now: datetime) -> bool:
    """Whether the day of the payment is today in Bangkok, and not over for the bank."""
    local = now.astimezone(clock.BANGKOK)
    try:
        day, _ = _split_transaction_id(order)
    except ValueError:
        return False
    return day.date() == local.date() and local.time() < CLOSING_TIME


def _split_transaction_id(order: TransferOrder) -> tuple[datetime, str]:
    """Day and reference of the payment. Raises ValueError for an id that this adapter did not make."""
    day, _, rest = order.charge_id.partition(".")
    reference1, _, bank_reference = rest.rpartition(".")
    if not reference1 or not bank_reference:
        raise ValueError("no transaction id of this bank")
    return datetime.strptime(day, "%Y%m%d").replace(tzinfo=clock.BANGKOK), reference1
