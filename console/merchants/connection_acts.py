"""The act that tests the connection of a merchant to its bank, and its result in words."""

from datetime import datetime
from functools import partial
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.text import capfirst
from django.utils.translation import gettext as _, gettext_lazy, gettext_noop

import banks
from audit_trail.act_pages import ObjectAct, Told
from audit_trail.acts import Act
from core import request_context
from core.http import rate_limits
from core.http.rate_limits import RateLimit
from merchants.models import Merchant
from reconciliation.inquiries import connection_tests
from reconciliation.inquiries.connection_tests import ConnectionOutcome

# Of one member of staff: each test holds a thread of the web server, and the bank's rate limit.
TESTS = RateLimit(per_second=0.1, burst=3)
TEXTS: dict[ConnectionOutcome, str] = {
    "answered": gettext_noop("%(bank)s answered in %(ms)s ms. The connection works."),
    "credentials": gettext_noop(
        "%(bank)s answered in %(ms)s ms and refused the credentials. Renew the connection."
    ),
    "timeout": gettext_noop("%(bank)s did not answer within %(ms)s ms."),
    "unreachable": gettext_noop(
        "%(bank)s cannot be reached: there was no connection to its API after %(ms)s ms."
    ),
    "other": gettext_noop("%(bank)s answered in %(ms)s ms with an error, or broke off the connection."),
    "unreadable": gettext_noop("%(bank)s answered in %(ms)s ms, but its answer cannot be read."),
    "busy": gettext_noop("The bank is busy with other inquiries: try again in a moment."),
    "not_set_up": gettext_noop("The bank cannot be asked: its connection is not set up correctly."),
}


def _explain(bank: str, merchant: Merchant) -> str:
    text = _(
        "We ask %(bank)s once about a payment that does not exist, with the credentials of %(name)s. The "
        "next page shows what came back, after ten seconds at most. No money moves, and nothing changes."
    )
    return text % {"bank": banks.title(getattr(merchant, bank)), "name": merchant.name}


def _check_limit(merchant: Merchant, values: dict[str, Any], now: datetime) -> None:
    limit = rate_limits.consume(f"connection-test:{request_context.current().actor}", TESTS)
    if limit is not None and not limit.allowed:
        text = _("You tested several connections just now. Try again in %(seconds)s seconds.")
        raise ValidationError(text % {"seconds": limit.retry_after})


def _ask(bank: str, merchant: Merchant, now: datetime) -> Told:
    found = connection_tests.run(merchant, getattr(merchant, bank), now=now)
    words = {"bank": capfirst(banks.title(getattr(merchant, bank))), "ms": f"{found.milliseconds:,}"}
    return Told(_(TEXTS[found.outcome]) % words, is_good=found.outcome == "answered")


def _is_connected(bank: str, merchant: Merchant, now: datetime) -> bool:
    return bool(getattr(merchant, bank))


CONNECTION_ACTS = tuple(
    ObjectAct(
        slug, label, Act.CONNECTION_TESTED, "merchants.test_connection",
        partial(_explain, bank),
        _check_limit,
        after=partial(_ask, bank), is_possible=partial(_is_connected, bank),
    )
    for slug, label, bank in (
        ("test-connection", gettext_lazy("Test the connection"), "bank"),
        ("test-standby", gettext_lazy("Test the connection to the stand-by"), "standby_bank"),
    )
)  # fmt: skip
