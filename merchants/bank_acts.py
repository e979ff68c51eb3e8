"""How staff connect a live merchant to its bank, and renew the connection."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext as _, gettext_lazy

import banks
from audit_trail.act_pages import ObjectAct, ShownOnce
from audit_trail.acts import Act
from merchants import bank_connections
from merchants.bank_forms import form_of
from merchants.models import Merchant, Mode

CONNECT = gettext_lazy(
    "Codes of %(name)s carry this biller id from now on, and customers pay to its account at %(bank)s. "
    "Credentials are stored encrypted and never shown. The next page shows once which address the bank "
    "must call. After its first code the merchant keeps its bank and biller id."
)
STANDBY = gettext_lazy(
    "%(bank)s becomes the stand-by of %(name)s. New codes carry this biller id while the first bank does not "
    "answer; open codes stay with their bank. Money comes to two accounts then. After its first code at the "
    "stand-by, the merchant keeps it and this biller id. The next page shows once which address it must call."
)
RENEW = gettext_lazy(
    "What you enter replaces the credentials, references and networks of %(name)s at %(bank)s at once. "
    "With wrong credentials no payment is confirmed. The notification address stays, unless you ask for "
    "a new one."
)


def _about(text: Promise, bank: str) -> Callable[[Merchant], str]:
    """The explanation of an act, about the merchant and this bank."""
    return lambda merchant: str(text) % {"name": merchant.name, "bank": _(banks.LIVE_BANKS[bank].title)}


def _connect(merchant: Merchant, values: dict[str, Any], now: datetime) -> ShownOnce | None:
    connection, secret = bank_connections.connect(
        merchant_id=merchant.pk,
        config=values["config"],
        now=now,
        renew_address=values.get("renew_address", False),
        keeps_secrets=True,
        is_standby=merchant.bank not in ("", values["config"].bank),
    )
    if secret is None:
        return None
    text = gettext_lazy(
        "Register this address with %(bank)s, which calls it after each payment of %(name)s. Treat it like a "
        "password."
    )
    explanation = _about(text, connection.bank)(merchant)
    return ShownOnce(connection, explanation, bank_connections.notification_url(connection, secret))


def _acts_of(bank: str) -> tuple[ObjectAct, ...]:
    title = gettext_lazy(banks.LIVE_BANKS[bank].title)
    act = partial(
        ObjectAct,
        act=Act.BANK_CONNECTED,
        permission="merchants.connect_bank",
        run=_connect,
        is_recorded_by_service=True,
    )
    return (
        act(
            f"connect-{bank}",
            format_lazy(gettext_lazy("Connect to {bank}"), bank=title),
            explain=_about(CONNECT, bank),
            is_possible=lambda merchant, now: merchant.mode == Mode.LIVE and not merchant.bank,
            form=form_of(bank, is_renewal=False),
        ),
        act(
            f"standby-{bank}",
            format_lazy(gettext_lazy("Connect {bank} as the stand-by"), bank=title),
            explain=_about(STANDBY, bank),
            is_possible=lambda merchant, now: (
                merchant.mode == Mode.LIVE and merchant.bank not in ("", bank) and not merchant.standby_bank
            ),
            form=form_of(bank, is_renewal=False),
        ),
        act(
            f"renew-{bank}",
            format_lazy(gettext_lazy("Renew the connection to {bank}"), bank=title),
            explain=_about(RENEW, bank),
            is_possible=lambda merchant, now: bank in (merchant.bank, merchant.standby_bank),
            form=form_of(bank, is_renewal=True),
        ),
    )


BANK_ACTS = tuple(act for bank in banks.LIVE_BANKS for act in _acts_of(bank))
