"""A handler and a bank for transfers, both with scripted results, and due transfers."""

import threading
from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from banks import TransferOrder, TransferPurpose, TransferResult
from core import clock, ids
from transfers import services
from transfers.models import Transfer

ROUTE = "bank:sandbox"
Reply = TransferResult | BaseException | Callable[[], TransferResult]


class FakeHandler:
    """A handler that records its calls."""

    def __init__(self) -> None:
        self.submitted: list[str] = []
        self.completed: list[tuple[str, TransferResult]] = []
        self.crashes_at = ""
        self.holds = False
        self.ordered_digest = ""

    def lock(self, order_id: str) -> Any:
        self._reach("lock")
        digest = self.ordered_digest or str(Transfer.objects.get(pk=order_id).account_digest)
        return SimpleNamespace(account_digest=digest)

    def is_held(self, transfer: Transfer, *, now: datetime) -> bool:
        return self.holds

    def on_submitted(self, order_id: str, *, now: datetime) -> None:
        self._reach("submit")
        self.submitted.append(order_id)

    def on_completed(self, order_id: str, result: TransferResult, *, now: datetime) -> None:
        self._reach("complete")
        self.completed.append((order_id, result))

    @property
    def statuses(self) -> list[str]:
        return [result.status for _, result in self.completed]

    def _reach(self, point: str) -> None:
        if point == self.crashes_at:
            raise Killed


class Killed(BaseException):
    """The process dies here: no product code may catch this."""


class Bank:
    """A sender that returns the given results one after the other, and then repeats the last."""

    def __init__(self, *, sends: list[Reply] | None = None, inquiries: list[Reply] | None = None) -> None:
        self._sends: list[Reply] = sends or [TransferResult("processing", "b-1")]
        self._inquiries: list[Reply] = inquiries or [TransferResult("succeeded", "b-1")]
        self._lock = threading.Lock()
        self.sent: list[str] = []
        self.inquired: list[str] = []

    def send(self, order: TransferOrder) -> TransferResult:
        return self._reply(self.sent, self._sends, order)

    def inquire(self, order: TransferOrder) -> TransferResult:
        return self._reply(self.inquired, self._inquiries, order)

    def _reply(self, orders: list[str], replies: list[Reply], order: TransferOrder) -> TransferResult:
        with self._lock:
            orders.append(order.order_id)
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, BaseException):
            raise reply
        return reply if isinstance(reply, TransferResult) else reply()


Serving = Callable[..., Bank]


def an_order(purpose: TransferPurpose = "withdrawal", **changes: Any) -> TransferOrder:
    prefix = "wd_" if purpose == "withdrawal" else "ref_"
    fields: dict[str, Any] = {
        "order_id": ids.new(prefix, clock.now()),
        "amount": 150_000,
        "bank_code": "014",
        "account": "4051234567",
        "account_name": "สมชาย ใจดี",
        "charge_id": "",
    }
    return TransferOrder(purpose=purpose, **fields | changes)


def queued(purpose: TransferPurpose = "withdrawal", at: datetime | None = None, **changes: Any) -> Transfer:
    """A due transfer."""
    return queue(an_order(purpose, **changes), at=at)


def queue(
    order: TransferOrder,
    *,
    route: str = ROUTE,
    at: datetime | None = None,
    merchant_id: str = "",
    held: Collection[str] = (),
) -> Transfer:
    accounts, at = {order.order_id: services.seal_account(order)}, at or clock.now()
    (made,) = services.queue(order, accounts=accounts, route=route, at=at, merchant_id=merchant_id, held=held)
    return made


def pass_time(seconds: float = 3600) -> None:
    """Move due times and leases of all transfers into the past."""
    for transfer in Transfer.objects.all():
        transfer.due_at -= timedelta(seconds=seconds)
        if transfer.lease_until:
            transfer.lease_until -= timedelta(seconds=seconds)
        transfer.save(update_fields=["due_at", "lease_until"])


def send_due(handler: FakeHandler, purpose: TransferPurpose = "withdrawal") -> int:
    return services.run_due(purpose, handler, now=clock.now)
