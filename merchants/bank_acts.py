"""How staff connect a live merchant to its bank, and renew the connection."""

from datetime import datetime
from functools import partial
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

import banks
from audit_trail.act_pages import ObjectAct, ShownOnce
from audit_trail.acts import Act
from merchants import bank_connections
from merchants.bank_forms import form_of
from merchants.models import Merchant, Mode


def _explain_connect(bank: str, merchant: Merchant) -> str:
    text = _(
        "Codes of %(name)s carry this biller id from now on, and customers pay to its account at %(bank)s. "
        "Credentials are stored encrypted and never shown. The next page shows once which address the bank "
        "must call. After its first code the merchant keeps its bank and biller id."
    )
    return text % {"name": merchant.name, "bank": _(banks.LIVE_BANKS[bank].title)}


def _explain_renew(bank: str, merchant: Merchant) -> str:
    text = _(
        "What you enter replaces the credentials, references and networks of %(name)s at %(bank)s at once. "
        "With wrong credentials no payment is confirmed. The notification address stays, unless you ask for "
        "a new one."
    )
    return text % {"name": merchant.name, "bank": _(banks.LIVE_BANKS[bank].title)}


def _connect(merchant: Merchant, values: dict[str, Any], now: datetime) -> ShownOnce | None:
    connection, secret = bank_connections.connect(
        merchant_id=merchant.pk,
        config=values["config"],
        now=now,
        renew_address=values.get("renew_address", False),
        keeps_secrets=True,
    )
    if secret is None:
        return None
    text = _(
        "Register this address with %(bank)s, which calls it after each payment of %(name)s. Treat it like a "
        "password."
    )
    explanation = text % {"name": merchant.name, "bank": _(banks.LIVE_BANKS[connection.bank].title)}
    return ShownOnce(connection, explanation, bank_connections.notification_url(connection, secret))


def _is_unconnected(merchant: Merchant, now: datetime) -> bool:
    return merchant.mode == Mode.LIVE and not merchant.bank


def _is_connected_to(bank: str, merchant: Merchant, now: datetime) -> bool:
    return merchant.mode == Mode.LIVE and merchant.bank == bank


def _acts_of(bank: str) -> tuple[ObjectAct, ObjectAct]:
    title = gettext_lazy(banks.LIVE_BANKS[bank].title)
    return (
        ObjectAct(
            slug=f"connect-{bank}",
            label=format_lazy(gettext_lazy("Connect to {bank}"), bank=title),
            act=Act.BANK_CONNECTED,
            permission="merchants.connect_bank",
            explain=partial(_explain_connect, bank),
            run=_connect,
            is_possible=_is_unconnected,
            form=form_of(bank, is_renewal=False),
            is_recorded_by_service=True,
        ),
        ObjectAct(
            slug=f"renew-{bank}",
            label=gettext_lazy("Renew the connection"),
            act=Act.BANK_CONNECTED,
            permission="merchants.connect_bank",
            explain=partial(_explain_renew, bank),
            run=_connect,
            is_possible=partial(_is_connected_to, bank),
            form=form_of(bank, is_renewal=True),
            is_recorded_by_service=True,
        ),
    )


BANK_ACTS = tuple(act for bank in banks.LIVE_BANKS for act in _acts_of(bank))
