"""Card charges and refunds at the sandbox bank: JSON over HTTP, amounts in satang, times in UTC."""

from datetime import datetime
from typing import Any, ClassVar

from banks import http_client, paging
from banks.base import (
    AcquirerTransfer,
    AcquirerTransferState,
    ChargeOutcome,
    ChargeRequest,
    ChargeResult,
    DeclineCode,
    InquiryFailed,
    LedgerCopy,
    SettledItem,
    SettledItemKind,
    TokenErrorCode,
    TransferOrder,
    TransferResult,
)
from banks.http_client import CallFailed, Response
from banks.paging import Json, TooManyRows
from core import clock
from core.failures import REJECTED_BY_ACQUIRER

# Short, because a merchant's test waits for the charge, and the server is on this network.
CONNECT_SECONDS, READ_SECONDS = 1.0, 2.0
# The limits of one reading of settlements.
MAX_PAGES, SETTLEMENT_SECONDS = 400, 60.0
TOKEN_ERRORS: dict[str, TokenErrorCode] = {
    "invalid_token": "invalid_token_id",
    "used_token": "token_already_used",
}
DECLINES: dict[str, DeclineCode] = {
    "insufficient_funds": "insufficient_funds",
    "do_not_honor": "card_declined",
    "expired_card": "expired_card",
    "authentication_failed": "card_declined",
}
STATUSES: dict[str, ChargeOutcome] = {"succeeded": "succeeded", "failed": "declined", "pending": "pending"}
TRANSFER_STATES: dict[str, AcquirerTransferState] = {"sent": "sent", "paid": "paid"}
ITEM_KINDS: dict[str, SettledItemKind] = {"charge": "charge", "refund": "refund"}


class SandboxAcquirer:
    IS_VOID_ONLY: ClassVar[bool] = False
    seconds = CONNECT_SECONDS + READ_SECONDS + 1.0

    def __init__(self, secret: str, url: str) -> None:
        self._secret, self._url = secret, url

    def charge(self, charge: ChargeRequest) -> ChargeResult:
        body = {
            "order_id": charge.order_id,
            "token": charge.token,
            "amount": charge.amount,
            "return_uri": charge.return_uri,
        }
        try:
            response = self._request("POST", "/charges", body)
        except CallFailed as failure:
            return ChargeResult(failure.outcome)
        refusal = TOKEN_ERRORS.get(str(response.data.get("code"))) if response.status == 400 else None
        return ChargeResult("refused", failure_code=refusal) if refusal else _parse_charge(response)

    def find(self, order_id: str, *, charge_id: str, starts_at: datetime) -> ChargeResult:
        try:
            response = self._request("GET", f"/charges/{order_id}")
        except CallFailed:
            return ChargeResult("unknown")
        return ChargeResult("missing") if response.status == 404 else _parse_charge(response)

    def send(self, order: TransferOrder) -> TransferResult:
        body = {"order_id": order.order_id, "charge_id": order.charge_id, "amount": order.amount}
        try:
            response = self._request("POST", "/refunds", body)
        except CallFailed as failure:
            return TransferResult(failure.outcome)
        if response.status == 400:
            return TransferResult("failed", failure_code=REJECTED_BY_ACQUIRER)
        return _parse_refund(response)

    def inquire(self, order: TransferOrder) -> TransferResult:
        try:
            return _parse_refund(self._request("GET", f"/refunds/{order.order_id}"))
        except CallFailed:
            return TransferResult("unknown")

    def settlements(self, since: datetime, until: datetime, ledger: LedgerCopy) -> list[AcquirerTransfer]:
        pages = paging.pages(MAX_PAGES, SETTLEMENT_SECONDS)
        period = {"from": clock.iso(since), "to": clock.iso(until)}
        try:
            rows = paging.read_all(self._get, "/transfers", period, pages).values()
            return [
                _parse_transfer(row, paging.read_all(self._get, f"/transfers/{row['id']}/items", {}, pages))
                for row in rows
            ]
        except CallFailed as failure:
            raise InquiryFailed("a list of the sandbox is incomplete", cause=failure.cause) from None
        except (TooManyRows, KeyError, TypeError, ValueError) as error:
            raise InquiryFailed(f"a list of the sandbox is malformed or too long: {error!r}") from None

    def _get(self, path: str, params: Json) -> Response:
        return self._request("GET", path, params=params)

    def _request(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, params: Json | None = None
    ) -> Response:
        return http_client.request(
            method,
            self._url + path,
            json=body,
            params=params,
            headers={"Authorization": f"Bearer {self._secret}"},
            bank="sandbox",
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            is_internal=True,
        )


def _parse_charge(response: Response) -> ChargeResult:
    if response.status != 200:
        return ChargeResult("unknown")
    data = response.data
    try:
        outcome = STATUSES[data["status"]]
        reason = DECLINES.get(data["failure_code"], "processing_error") if outcome == "declined" else None
        return ChargeResult(
            outcome,
            charge_id=data["id"],
            failure_code=reason,
            brand=data["card"]["brand"],
            last4=data["card"]["last4"],
            paid_at=datetime.fromisoformat(data["created_at"]) if outcome == "succeeded" else None,
            amount=data["amount"],
            currency=data["currency"],
            authorize_uri=data["authorize_uri"] or "",
            fee=data["fee"],
            fee_vat=data["fee_vat"],
        )
    except (KeyError, TypeError, ValueError):
        return ChargeResult("unknown")


def _parse_refund(response: Response) -> TransferResult:
    if response.status == 200 and response.data.get("status") == "succeeded":
        return TransferResult("succeeded", str(response.data.get("id", "")))
    return TransferResult("unknown")


def _parse_transfer(row: Json, items: dict[str, Json]) -> AcquirerTransfer:
    return AcquirerTransfer(
        id=row["id"],
        amount=row["amount"],
        fee=row["fee"],
        fee_vat=row["fee_vat"],
        net=row["net"],
        state=TRANSFER_STATES[row["status"]],
        created_at=datetime.fromisoformat(row["created_at"]),
        sent_at=datetime.fromisoformat(row["sent_at"]),
        paid_at=datetime.fromisoformat(row["paid_at"]) if row["paid_at"] else None,
        items=tuple(_parse_item(item) for item in items.values()),
    )


def _parse_item(item: Json) -> SettledItem:
    kind = ITEM_KINDS[item["kind"]]
    names = ("reference", "order_id", "amount", "fee", "fee_vat", "net")
    return SettledItem(kind, **{name: item[name] for name in names})
