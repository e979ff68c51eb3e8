"""The first page of a shop: the money of today, and what waits. Each figure needs its permission."""

from typing import Any

from django.urls import reverse
from django.utils.translation import ngettext

from console.home.figures import RECEIVED
from core import clock
from core.database import rows
from core.thai import bangkok_days
from counts.counting import CLOSED
from ledger import services as ledger
from operations.data_protection import shop_fence
from reconciliation.models import ReconciliationException

# Of the merchant since midnight in Bangkok: the counts, and the rows of the last seconds, which they lack.
# It costs the same for any number.
_TODAY = f"""
SELECT coalesce(sum(count), 0)::bigint, coalesce(sum(amount), 0)::bigint FROM (
    SELECT count, amount FROM counts_listcount
    WHERE owner_id = %(merchant)s AND list = 'transactions' AND kind = ANY(%(kinds)s) AND bucket = 'hour'
        AND starts_at >= %(start)s
    UNION ALL
    SELECT delta, amount FROM counts_countdelta
    WHERE owner_id = %(merchant)s AND list = 'transactions' AND kind = ANY(%(kinds)s) AND period >= %(start)s
        AND period < {CLOSED}
    UNION ALL
    SELECT 1, amount FROM transactions_transaction
    WHERE merchant_id = %(merchant)s AND type = 'payment' AND status IN ('succeeded', 'refunded')
        AND created_at >= greatest(%(start)s, {CLOSED}) AND created_at < 'infinity'
) AS part
"""  # noqa: S608
MAX_COUNTED = 100


def context(request: Any) -> dict[str, Any]:
    may, merchant = request.user.has_perm, request.membership.merchant
    shown: dict[str, Any] = {}
    with shop_fence.lifted():  # each statement names the merchant
        if may("shop.view_today"):
            span = bangkok_days.between("today", clock.now())
            assert span is not None
            wanted = {"merchant": merchant.pk, "kinds": RECEIVED, "start": span[0]}
            count, amount = rows.run(_TODAY, wanted).fetchone()
            shown["today"] = {"count": count, "amount": amount}
        if may("shop.view_balance"):
            shown["balance"] = ledger.balance(merchant.pk)
        if may("payments.view_paymentexception"):
            shown["notices"] = _waiting(merchant.pk)
    return shown


def _waiting(merchant_id: str) -> list[dict[str, Any]]:
    waiting = ReconciliationException.objects.filter(merchant=merchant_id)
    count = waiting.order_by()[:MAX_COUNTED].count()
    if not count:
        return []
    text = ngettext("%(count)d waits for a decision", "%(count)d wait for a decision", count)
    return [{"text": text % {"count": count}, "url": reverse("admin:payments_paymentexception_changelist")}]
