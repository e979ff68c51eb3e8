"""What staff can do to an API key."""

from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct, ShownOnce
from audit_trail.acts import Act
from merchants import services
from merchants.forms import RollKeyForm
from merchants.models import ApiKey


def _explain_roll(key: ApiKey) -> str:
    text = _(
        "A new key takes the place of %(key)s of %(name)s, with the same scopes, networks and lifetime. The "
        "next page shows it once. The old key works on for the hours that you give."
    )
    return text % {"key": key, "name": key.merchant.name}


def _roll(key: ApiKey, values: dict[str, Any], now: datetime) -> ShownOnce:
    rolled, secret = services.roll_key(key_id=key.pk, overlap_hours=values["overlap_hours"], now=now)
    text = _("The new secret key of %(name)s (%(mode)s).")
    merchant = key.merchant
    return ShownOnce(rolled, text % {"name": merchant.name, "mode": merchant.get_mode_display()}, secret)


def _is_usable(key: ApiKey, now: datetime) -> bool:
    return key.is_usable(now)


def _explain_revoke(key: ApiKey) -> str:
    text = _("Requests of %(name)s with the key %(key)s are refused at once. Nothing can undo this.")
    return text % {"key": key, "name": key.merchant.name}


def _revoke(key: ApiKey, values: dict[str, Any], now: datetime) -> None:
    services.revoke_key(key_id=key.pk, now=now)


def _is_not_revoked(key: ApiKey, now: datetime) -> bool:
    return key.revoked_at is None


KEY_ACTS = (
    ObjectAct(
        slug="roll",
        label=gettext_lazy("Roll the key"),
        act=Act.KEY_ROLLED,
        permission="merchants.roll_key",
        explain=_explain_roll,
        run=_roll,
        is_possible=_is_usable,
        form=RollKeyForm,
        is_recorded_by_service=True,
    ),
    ObjectAct(
        slug="revoke",
        label=gettext_lazy("Revoke at once"),
        act=Act.KEY_REVOKED,
        permission="merchants.revoke_key",
        explain=_explain_revoke,
        run=_revoke,
        is_possible=_is_not_revoked,
        is_dangerous=True,
        is_recorded_by_service=True,
    ),
)
