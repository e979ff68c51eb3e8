"""The sentence with which a page about settlements begins: how it stands, and what to do next."""

from datetime import datetime

from django.contrib.admin.utils import quote
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.timezone import localtime
from django.utils.translation import gettext as _, gettext_lazy, ngettext

import banks
from core import clock, money
from core.console.summaries import Summary
from settlements.models import (
    OPEN_STATES,
    AcquirerTransfer,
    AcquirerTransferState,
    OpenQuestion,
    Settlement,
    SettlementStatus,
)
from settlements.on_the_way import OnTheWay

CLOSE = "settlements.close_question"


def open_questions(**of: object) -> "QuerySet[OpenQuestion]":
    """The oldest first."""
    return OpenQuestion.objects.filter(closed_at__isnull=True, **of).order_by("opened_at", "id")


def of_acquirer(found: OnTheWay, late: int, questions: int) -> Summary:
    """What the acquirer owes, and whether a person must look at it. late: transfers that have not arrived."""
    net = money.display(found.net)
    words = {
        "acquirer": capfirst(banks.title(found.acquirer)),
        "net": _("at least %(amount)s") % {"amount": net} if found.is_more else net,
        "count": f"{found.payments:,}" + ("+" if found.is_more else ""),
        "day": f"{localtime(found.since):%Y-%m-%d}" if found.since else "",
    }
    if found.payments:
        text = ngettext(
            "%(acquirer)s owes %(net)s of %(count)s card payment since %(day)s.",
            "%(acquirer)s owes %(net)s of %(count)s card payments since %(day)s.",
            found.payments,
        )
    elif found.net:
        text = _("%(acquirer)s has paid all card payments. %(net)s remain on its account.")
    else:
        text = _("%(acquirer)s owes nothing.")
    sentences = [text % words]
    if late:
        text = ngettext("%(count)s transfer is late.", "%(count)s transfers are late.", late)
        sentences.append(text % {"count": late})
    if questions:
        sentences.append(_asked(questions))
    if not late and not questions:
        sentences.append(_("Nothing is late."))
    return Summary(" ".join(sentences), "bad" if late else "wait" if questions else "good")


def of_transfer(transfer: AcquirerTransfer, now: datetime) -> Summary:
    count = sum(transfer.settlements.values_list("payment_count", flat=True))
    text = ngettext(
        "%(acquirer)s transfers %(net)s for %(count)s card payment.",
        "%(acquirer)s transfers %(net)s for %(count)s card payments.",
        count,
    )
    net, acquirer = money.display(transfer.net_amount), capfirst(banks.title(transfer.acquirer))
    words = {"acquirer": acquirer, "net": net, "count": f"{count:,}"}
    if transfer.state == AcquirerTransferState.FAILED:
        what = _("The transfer failed: a later one pays this money.")
        return _with_question(f"{text % words} {what}", "calm", transfer)
    is_open = transfer.state in OPEN_STATES
    status = SettlementStatus.ARRIVED
    if is_open:
        status = SettlementStatus.LATE if now >= transfer.expected_at else SettlementStatus.EXPECTED
    return _with_question(f"{text % words} {_when(status, transfer)}", ARRIVAL[status][0], transfer)


def of_settlement(settlement: Settlement, now: datetime) -> Summary:
    text = ngettext(
        "%(merchant)s gets %(net)s for %(count)s card payment.",
        "%(merchant)s gets %(net)s for %(count)s card payments.",
        settlement.payment_count,
    )
    net, count = money.display(settlement.net_amount), f"{settlement.payment_count:,}"
    words = {"merchant": settlement.merchant.name, "net": net, "count": count}
    status = settlement.status_at(now)
    sentence = f"{text % words} {_when(status, settlement)}"
    return _with_question(sentence, ARRIVAL[status][0], settlement.transfer)


def of_question(question: OpenQuestion, now: datetime) -> Summary:
    what = f"{question.get_kind_display()}{difference(question)}."
    if question.closed_at is not None:
        at = clock.display(question.closed_at)
        text = _("Closed on %(at)s: %(note)s") % {"at": at, "note": question.note}
        return Summary(f"{what} {text}", "calm")
    age = clock.format_duration(now - question.opened_at)
    waits = _("It is open for %(duration)s.") % {"duration": age}
    url = reverse("admin:settlements_openquestion_act", args=[quote(question.pk), "close"])
    return Summary(f"{what} {waits}", "bad", url, _("Close the question"), CLOSE)


def difference(question: OpenQuestion) -> str:
    """How much came more or less, to follow what is not as expected."""
    if not question.difference:
        return ""
    text = _(": %(amount)s more") if question.difference > 0 else _(": %(amount)s less")
    return text % {"amount": money.display(abs(question.difference))}


# The tone of a page, and when its money arrives.
ARRIVAL = {
    SettlementStatus.EXPECTED: ("wait", gettext_lazy("It should arrive by %(at)s.")),
    SettlementStatus.LATE: (
        "bad", gettext_lazy("It should have arrived by %(at)s: ask the acquirer where it is.")
    ),
    SettlementStatus.ARRIVED: ("good", gettext_lazy("It arrived on %(at)s.")),
    SettlementStatus.DIFFERS: (
        "bad", gettext_lazy("It arrived on %(at)s, and an amount is not the expected one.")
    ),
}  # fmt: skip


def _when(status: SettlementStatus, row: AcquirerTransfer | Settlement) -> str:
    return str(ARRIVAL[status][1] % {"at": clock.display(row.arrived_at or row.expected_at)})


def _with_question(text: str, tone: str, transfer: AcquirerTransfer) -> Summary:
    """With a link to the oldest open question about the transfer, if there is one."""
    asked = list(open_questions(transfer=transfer)[:100])
    if not asked:
        return Summary(text, tone)
    url = reverse("admin:settlements_openquestion_change", args=[quote(asked[0].pk)])
    link, permission = _("See the question"), "settlements.view_openquestion"
    return Summary(f"{text} {_asked(len(asked))}", "bad", url, link, permission)


def _asked(count: int) -> str:
    text = ngettext("%(count)s question is open.", "%(count)s questions are open.", count)
    return text % {"count": count}
