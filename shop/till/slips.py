"""What the till says about a payer's slip: is it for us, real and new, and what did it pay?"""

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from core import clock, money
from core.http import rate_limits
from core.http.rate_limits import RateLimit
from core.work import decoders
from merchants.models import Merchant
from reconciliation.models import SlipCheck, SlipVerdict
from reconciliation.slips import checking, pictures, verdicts
from reconciliation.slips.explanations import Finding

# Of a merchant, with its keys. A picture takes 0.6 s of CPU, a malicious one 3 s.
RATE = RateLimit(per_second=0.5, burst=20)
TOO_MANY = _("Many slips were checked within a minute. Try again in a moment.")
REAL = _("It is real, and for this shop: %(amount)s on %(at)s.")
PAID = _("Order %(order)s is paid.")
SHOWN_BEFORE = _("This slip was shown before, on %(at)s.")
NEW = _("Nobody has shown this slip before.")
NOT_ARRIVED = _("No bank has reported this money. Do not hand over yet; check again in a moment.")
WARNINGS = {
    SlipVerdict.UNKNOWN: NOT_ARRIVED,
    SlipVerdict.WRONG_AMOUNT: _("It has paid no code: the owner of the shop decides about it."),
}
ERRORS = {
    SlipVerdict.WRONG_RECEIVER: _("This money is not for this shop."),
    SlipVerdict.NOT_FOUND: _("There is no such money: nobody sent it, or it went back to the payer."),
}


def check(merchant: Merchant, picture: bytes) -> list[Finding]:
    """Read the slip, judge it as the API does, and record that it was shown."""
    room = rate_limits.consume(f"slips:{merchant.id}", RATE)
    if room is not None and not room.allowed:
        return [("error", str(TOO_MANY))]
    try:
        texts = pictures.read_qr_codes(picture, decoders.PICTURE_OF_MERCHANT)
        checking.parse_slip(texts)
    except (pictures.UnreadablePicture, checking.InvalidSlip) as problem:
        return [("error", str(problem))]
    judgment = verdicts.judge(merchant, texts, now=clock.now)
    with transaction.atomic():
        shown = verdicts.store(judgment, merchant=merchant, payment_id=None, amount=None, now=clock.now())
    verdict, arrived = SlipVerdict(shown.verdict), judgment.money
    if verdict in ERRORS:
        return [("error", str(ERRORS[verdict]))]
    if (
        arrived is None or shown.bank_transaction is None
    ):  # perhaps its bank knows it, but has not reported it
        return [("warning", str(NOT_ARRIVED))]
    words = {"amount": money.display(arrived.amount), "at": clock.display(arrived.paid_at)}
    real: Finding = ("success", REAL % words)
    if verdict in WARNINGS:
        return [real, ("warning", str(WARNINGS[verdict]))]
    payment = arrived.payment
    assert payment is not None, "its money paid it"
    return [real, ("success", PAID % {"order": payment.reference or payment.id}), _whether_new(shown)]


def _whether_new(shown: SlipCheck) -> Finding:
    if shown.verdict == SlipVerdict.VALID:
        return "success", str(NEW)
    same = {"sending_bank": shown.sending_bank, "transaction_id": shown.transaction_id}
    first = SlipCheck.objects.get(merchant=shown.merchant, is_first=True, **same)
    return "error", SHOWN_BEFORE % {"at": clock.display(first.checked_at)}
