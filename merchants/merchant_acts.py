"""What staff can do to a merchant, and how they create one."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct, ShownOnce
from audit_trail.acts import Act
from merchants import services
from merchants.forms import IssueKeyForm, NameForm, NewMerchantForm, OriginsForm
from merchants.models import LateMoneyPolicy, Merchant


def _explain_create(_row: None) -> str:
    return _(
        "A new merchant with a page of its own. It can do nothing before it has a key. A live merchant must "
        "also be connected to its bank. The next page says how."
    )


def _create(_row: None, values: dict[str, Any], now: datetime) -> Merchant:
    return services.add_merchant(
        name=values["name"], mode=values["mode"], late_money=values["late_money"], now=now
    )


def _explain_rename(merchant: Merchant) -> str:
    text = _(
        "Staff see the new name in all lists, and customers who pay by card from now on. The id %(id)s, keys "
        "and codes stay as they are."
    )
    return text % {"id": merchant.id}


def _rename(merchant: Merchant, values: dict[str, Any], now: datetime) -> None:
    services.rename_merchant(merchant_id=merchant.pk, name=values["name"])


def _explain_issue(merchant: Merchant) -> str:
    text = _(
        "A new secret key for %(name)s (%(mode)s). The next page shows it once. Select only the scopes that "
        "it needs: they cannot be changed later."
    )
    return text % {"name": merchant.name, "mode": merchant.get_mode_display()}


def _issue(merchant: Merchant, values: dict[str, Any], now: datetime) -> ShownOnce:
    key, secret = services.issue_key(
        merchant=merchant,
        now=now,
        expires_at=now + timedelta(hours=values["hours"]) if values["hours"] else None,
        scopes=values["scopes"],
        networks=values["networks"],
    )
    text = _("The new secret key of %(name)s (%(mode)s).")
    explanation = text % {"name": merchant.name, "mode": merchant.get_mode_display()}
    return ShownOnce(key, explanation, secret)


def _explain_accept(merchant: Merchant) -> str:
    return _("From now on, a payment after the expiry of its code succeeds. Nobody has to decide about it.")


def _explain_review(merchant: Merchant) -> str:
    return _("From now on, a payment after the expiry of its code becomes an exception, and staff decide.")


def _set_policy(
    late_money: LateMoneyPolicy, merchant: Merchant, values: dict[str, Any], now: datetime
) -> None:
    services.set_late_money_policy(merchant_id=merchant.pk, late_money=late_money)


def _has_policy(late_money: LateMoneyPolicy, merchant: Merchant, now: datetime) -> bool:
    return merchant.late_money == late_money


NEW_MERCHANT_ACTS = (
    ObjectAct(
        slug="create",
        label=gettext_lazy("Add merchant"),
        act=Act.MERCHANT_CREATED,
        permission="merchants.create_merchant",
        explain=_explain_create,
        run=_create,
        form=NewMerchantForm,
        is_recorded_by_service=True,
    ),
)


def _explain_refuse_references(merchant: Merchant) -> str:
    return _("From now on, a QR code is refused if another open code has its reference.")


def _explain_allow_references(merchant: Merchant) -> str:
    return _("From now on, several open QR codes can have the same reference.")


def _refuse_references(is_on: bool, merchant: Merchant, values: dict[str, Any], now: datetime) -> None:
    services.refuse_open_references(merchant.pk, is_on)


def _refuses_references(is_on: bool, merchant: Merchant, now: datetime) -> bool:
    return merchant.refuses_open_reference == is_on


def _explain_origins(merchant: Merchant) -> str:
    return _(
        "Pages of these sites may show the payment page in a frame, and the payment page links back to them. "
        "No other site can do either."
    )


def _set_origins(merchant: Merchant, values: dict[str, Any], now: datetime) -> None:
    services.set_page_origins(merchant.pk, values["origins"])


MERCHANT_ACTS = (
    ObjectAct(
        slug="issue-key",
        label=gettext_lazy("Issue a secret key"),
        act=Act.KEY_ISSUED,
        permission="merchants.issue_key",
        explain=_explain_issue,
        run=_issue,
        form=IssueKeyForm,
        is_recorded_by_service=True,
    ),
    ObjectAct(
        slug="accept-late-money",
        label=gettext_lazy("Accept payments after expiry"),
        act=Act.LATE_MONEY_CHANGED,
        permission="merchants.set_late_money",
        explain=_explain_accept,
        run=partial(_set_policy, LateMoneyPolicy.ACCEPT),
        is_possible=partial(_has_policy, LateMoneyPolicy.REVIEW),
        is_recorded_by_service=True,
    ),
    ObjectAct(
        slug="review-late-money",
        label=gettext_lazy("Review payments after expiry"),
        act=Act.LATE_MONEY_CHANGED,
        permission="merchants.set_late_money",
        explain=_explain_review,
        run=partial(_set_policy, LateMoneyPolicy.REVIEW),
        is_possible=partial(_has_policy, LateMoneyPolicy.ACCEPT),
        is_recorded_by_service=True,
    ),
    ObjectAct(
        slug="rename",
        label=gettext_lazy("Rename"),
        act=Act.MERCHANT_RENAMED,
        permission="merchants.rename_merchant",
        explain=_explain_rename,
        run=_rename,
        form=NameForm,
        is_recorded_by_service=True,
    ),
    ObjectAct(
        slug="refuse-open-references",
        label=gettext_lazy("Refuse a second open code of a reference"),
        act=Act.OPEN_REFERENCES_CHANGED,
        permission="merchants.set_open_references",
        explain=_explain_refuse_references,
        run=partial(_refuse_references, True),
        is_possible=partial(_refuses_references, False),
        is_recorded_by_service=True,
    ),
    ObjectAct(
        slug="allow-open-references",
        label=gettext_lazy("Allow several open codes of a reference"),
        act=Act.OPEN_REFERENCES_CHANGED,
        permission="merchants.set_open_references",
        explain=_explain_allow_references,
        run=partial(_refuse_references, False),
        is_possible=partial(_refuses_references, True),
        is_recorded_by_service=True,
    ),
    ObjectAct(
        slug="page-origins",
        label=gettext_lazy("Sites of the payment page"),
        act=Act.PAGE_ORIGINS_CHANGED,
        permission="merchants.set_page_origins",
        explain=_explain_origins,
        run=_set_origins,
        form=OriginsForm,
        is_recorded_by_service=True,
    ),
)
