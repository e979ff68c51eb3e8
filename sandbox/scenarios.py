"""The scenarios of the sandbox bank: what happens to a payment, and when the bank reports it."""

from dataclasses import dataclass
from datetime import timedelta
from fractions import Fraction

from core.http import received
from sandbox.errors import InvalidScenario
from sandbox.models import SandboxEntryType

AT_ONCE = timedelta(0)
# The bank does not know the expiry of a code. Every code expires within a day.
AFTER_EXPIRY = timedelta(days=1, minutes=1)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens to the money that somebody orders to pay.

    transfers: how many there are. share: of the amount, in each. callbacks: for each entry.
    has_unknown_reference: the payment becomes an exception for staff, and the public page does not offer it.
    pays_after, reports_after: used if the order has no `paid_at` or `report_at`.
    """

    label_en: str
    label_th: str
    transfers: int = 1
    share: Fraction = Fraction(1)
    entries: tuple[SandboxEntryType, ...] = (SandboxEntryType.CREDIT,)
    callbacks: int = 1
    names_payer: bool = True
    has_unknown_reference: bool = False
    pays_after: timedelta = AT_ONCE
    reports_after: timedelta = AT_ONCE


SCENARIOS = {
    "paid": Scenario("Paid", "จ่ายสำเร็จ"),
    "declined": Scenario("Declined", "ถูกปฏิเสธ", entries=(SandboxEntryType.DECLINE,)),
    "late": Scenario("Paid after expiry", "จ่ายหลัง QR หมดอายุ", pays_after=AFTER_EXPIRY),
    "reported_late": Scenario(
        "Paid in time, reported after expiry", "จ่ายทันเวลา แต่แจ้งหลัง QR หมดอายุ", reports_after=AFTER_EXPIRY
    ),
    "twice": Scenario("Paid twice", "จ่ายซ้ำสองครั้ง", transfers=2),
    "over": Scenario("Paid double the amount", "จ่ายเกิน เป็นสองเท่า", share=Fraction(2)),
    "under": Scenario("Paid half the amount", "จ่ายขาด เพียงครึ่งเดียว", share=Fraction(1, 2)),
    "callback_lost": Scenario("Paid, never reported", "จ่ายสำเร็จ แต่ไม่แจ้ง", callbacks=0),
    "callback_repeated": Scenario("Paid, reported three times", "จ่ายสำเร็จ แจ้งซ้ำสามครั้ง", callbacks=3),
    "payer_unknown": Scenario("Paid, payer not reported", "จ่ายสำเร็จ แต่ไม่แจ้งผู้จ่าย", names_payer=False),
    "unknown_reference": Scenario(
        "Paid with an unknown reference", "จ่ายด้วยเลขอ้างอิงที่ไม่มีอยู่", has_unknown_reference=True
    ),
    "reversed": Scenario(
        "Paid, and reversed 3 s later",
        "จ่ายสำเร็จ แล้วถูกดึงเงินคืน",
        entries=(SandboxEntryType.CREDIT, SandboxEntryType.REVERSAL),
    ),
}


def find(name: str) -> Scenario:
    """Raises InvalidScenario."""
    try:
        return SCENARIOS[name]
    except KeyError:
        shown = received.describe(name, is_shown=True)
        raise InvalidScenario(param="scenario", detail="is not known", received=shown) from None
