"""The scenarios of the sandbox bank: what happens to a payment, and when the bank reports it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from core import received, references
from sandbox.errors import InvalidScenario
from sandbox.models import SandboxEntryType

AT_ONCE = timedelta(0)
# The bank does not know the expiry of a code. Every code expires within a day.
AFTER_EXPIRY = timedelta(days=1, minutes=1)


@dataclass(frozen=True, slots=True)
class SimulatedTransfer:
    """Money to a biller, in satang, with its entries, and callbacks for each entry from `report_at` on."""

    biller_id: str
    reference1: str
    reference2: str
    reference3: str
    amount: int
    paid_at: datetime
    report_at: datetime
    entries: tuple[SandboxEntryType, ...] = (SandboxEntryType.CREDIT,)
    callback_count: int = 1
    names_payer: bool = True

    @property
    def booked_at(self) -> datetime:
        """Return when inquiries first find the transfer: not later than a callback reports it."""
        return min(self.paid_at, self.report_at) if self.callback_count else self.paid_at


@dataclass(frozen=True, slots=True)
class Scenario:
    """`apply` turns the ordered transfer into the transfers that happen.

    pays_after, reports_after: used if the order has no `paid_at` or `report_at`. needs_key: not on the public
    page, because its money becomes an exception for staff.
    """

    name: str
    label_en: str
    label_th: str
    apply: Callable[[SimulatedTransfer], list[SimulatedTransfer]] = lambda transfer: [transfer]
    needs_key: bool = False
    pays_after: timedelta = AT_ONCE
    reports_after: timedelta = AT_ONCE


def _changed(**changes: object) -> Callable[[SimulatedTransfer], list[SimulatedTransfer]]:
    return lambda transfer: [replace(transfer, **changes)]  # type: ignore[arg-type]


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("paid", "Paid", "จ่ายสำเร็จ"),
        Scenario("declined", "Declined", "ถูกปฏิเสธ", _changed(entries=(SandboxEntryType.DECLINE,))),
        Scenario("late", "Paid after expiry", "จ่ายหลัง QR หมดอายุ", pays_after=AFTER_EXPIRY),
        Scenario(
            "reported_late",
            "Paid in time, reported after expiry",
            "จ่ายทันเวลา แต่แจ้งหลัง QR หมดอายุ",
            reports_after=AFTER_EXPIRY,
        ),
        Scenario("twice", "Paid twice", "จ่ายซ้ำสองครั้ง", lambda transfer: [transfer, transfer]),
        Scenario(
            "over",
            "Paid double the amount",
            "จ่ายเกิน เป็นสองเท่า",
            lambda transfer: [replace(transfer, amount=transfer.amount * 2)],
        ),
        Scenario(
            "under",
            "Paid half the amount",
            "จ่ายขาด เพียงครึ่งเดียว",
            lambda transfer: [replace(transfer, amount=max(transfer.amount // 2, 1))],
        ),
        Scenario("callback_lost", "Paid, never reported", "จ่ายสำเร็จ แต่ไม่แจ้ง", _changed(callback_count=0)),
        Scenario(
            "callback_repeated",
            "Paid, reported three times",
            "จ่ายสำเร็จ แจ้งซ้ำสามครั้ง",
            _changed(callback_count=3),
        ),
        Scenario(
            "payer_unknown", "Paid, payer not reported", "จ่ายสำเร็จ แต่ไม่แจ้งผู้จ่าย", _changed(names_payer=False)
        ),
        Scenario(
            "unknown_reference",
            "Paid with an unknown reference",
            "จ่ายด้วยเลขอ้างอิงที่ไม่มีอยู่",
            lambda transfer: [replace(transfer, reference1=references.new())],
            needs_key=True,
        ),
        Scenario(
            "reversed",
            "Paid, and reversed 3 s later",
            "จ่ายสำเร็จ แล้วถูกดึงเงินคืน",
            _changed(entries=(SandboxEntryType.CREDIT, SandboxEntryType.REVERSAL)),
        ),
    )
}


def find(name: str) -> Scenario:
    """Raises InvalidScenario."""
    try:
        return SCENARIOS[name]
    except KeyError:
        shown = received.describe(name, is_shown=True)
        raise InvalidScenario(param="scenario", detail="is not known", received=shown) from None
