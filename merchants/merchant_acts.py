"""What staff can do to a merchant and to its keys, and how they create one."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.utils.translation import gettext, gettext_lazy as _

from audit_trail.act_pages import ObjectAct, ShownOnce
from audit_trail.acts import Act
from merchants import forms, page_settings, services
from merchants.models import ApiKey, LateMoneyPolicy, Merchant, Mode

_new = partial(ObjectAct, is_recorded_by_service=True)
_act = partial(_new, words={"id": "id", "name": "name", "mode": "get_mode_display"})
_of_key = partial(_new, words={"name": "merchant.name", "key": "__str__"})


def _issue(merchant: Merchant, values: dict[str, Any], now: datetime) -> ShownOnce:
    key, secret = services.issue_key(
        merchant=merchant,
        now=now,
        expires_at=now + timedelta(hours=values["hours"]) if values["hours"] else None,
        scopes=values["scopes"],
        networks=values["networks"],
    )
    return _shown_once(key, secret)


def _shown_once(key: ApiKey, secret: str) -> ShownOnce:
    text, merchant = gettext("The new secret key of %(name)s (%(mode)s)."), key.merchant
    return ShownOnce(key, text % {"name": merchant.name, "mode": merchant.get_mode_display()}, secret)


def _policy(name: str, value: object, permission: str) -> dict[str, Any]:
    """How a merchant gets the policy that it does not have."""
    return {
        "act": services.POLICIES[name],
        "permission": permission,
        "run": lambda merchant, values, now: services.set_policy(merchant.pk, **{name: value}),
        "is_possible": lambda merchant, now: (
            getattr(merchant, name) != value and (name != "shows_proof" or merchant.mode == Mode.LIVE)
        ),
    }


def _set_page(merchant: Merchant, values: dict[str, Any], now: datetime) -> None:
    fields = {name: values[name] for name in forms.PAGE_TEXTS}
    if values["logo"] or values["removes_logo"]:
        fields["logo"] = values["logo"]
    page_settings.change(merchant.pk, now=now, **fields)


NEW_MERCHANT_ACTS = (
    _new(
        "create", _("Add merchant"), Act.MERCHANT_CREATED, "merchants.create_merchant",
        _(
            "A new merchant with a page of its own. It can do nothing before it has a key. A live merchant "
            "must also be connected to its bank. The next page says how."
        ),
        lambda row, values, now: services.add_merchant(
            name=values["name"], mode=values["mode"], late_money=values["late_money"], now=now
        ),
        form=forms.NewMerchantForm,
    ),
)  # fmt: skip
MERCHANT_ACTS = (
    _act(
        "issue-key", _("Issue a secret key"), Act.KEY_ISSUED, "merchants.issue_key",
        _(
            "A new secret key for %(name)s (%(mode)s). The next page shows it once. Select only the "
            "scopes that it needs: they cannot be changed later."
        ),
        _issue,
        form=forms.IssueKeyForm,
    ),
    _act(
        "suspend", _("Suspend"), Act.MERCHANT_SUSPENDED, "merchants.suspend_merchant",
        _(
            "From now on the keys of %(name)s are refused. It makes no codes, charges no cards, and its "
            "refunds and withdrawals wait. Money that arrives is credited. Lifting it restores all."
        ),
        lambda merchant, values, now: services.suspend(merchant.pk, now=now),
        is_possible=lambda merchant, now: merchant.suspended_at is None, is_dangerous=True,
    ),
    _act(
        "lift-suspension", _("Lift the suspension"), Act.SUSPENSION_LIFTED, "merchants.suspend_merchant",
        _("%(name)s works as before, and the orders that waited are sent."),
        lambda merchant, values, now: services.lift_suspension(merchant.pk),
        is_possible=lambda merchant, now: merchant.suspended_at is not None and merchant.moved_at is None,
    ),
    _act(
        "accept-late-money", _("Accept payments after expiry"),
        explain=_(
            "From now on, a payment after the expiry of its code succeeds. Nobody has to decide about it."
        ),
        **_policy("late_money", LateMoneyPolicy.ACCEPT, "merchants.set_late_money"),
    ),
    _act(
        "review-late-money", _("Review payments after expiry"),
        explain=_(
            "From now on, a payment after the expiry of its code becomes an exception, and staff decide."
        ),
        **_policy("late_money", LateMoneyPolicy.REVIEW, "merchants.set_late_money"),
    ),
    _act(
        "withdraw-unsettled", _("Allow to withdraw before settlement"),
        explain=_(
            "From now on, money of card payments is available at once. %(name)s can withdraw it before "
            "the acquirer has paid it to you."
        ),
        is_dangerous=True, **_policy("may_withdraw_unsettled", True, "merchants.set_unsettled"),
    ),
    _act(
        "wait-for-settlement", _("Withdraw only after settlement"),
        explain=_(
            "From now on, money of card payments becomes available when the acquirer has paid it to you."
        ),
        **_policy("may_withdraw_unsettled", False, "merchants.set_unsettled"),
    ),
    _act(
        "rename", _("Rename"), Act.MERCHANT_RENAMED, "merchants.rename_merchant",
        _(
            "Staff see the new name in all lists, and customers who pay by card from now on. The id "
            "%(id)s, keys and codes stay as they are."
        ),
        lambda merchant, values, now: services.rename_merchant(merchant_id=merchant.pk, name=values["name"]),
        form=forms.NameForm,
    ),
    _act(
        "tax-details", _("Tax details"), Act.TAX_DETAILS_SET, "merchants.set_tax_details",
        _("The accountant's files of %(name)s have them from now on, also those of earlier months."),
        lambda merchant, values, now: services.set_tax_details(
            merchant.pk, tax_id=values["tax_id"], branch=values["branch"], withholds=values["withholds"]
        ),
        form=forms.TaxForm,
    ),
    _act(
        "refuse-open-references", _("Refuse a second open code of a reference"),
        explain=_("From now on, a QR code is refused if another open code has its reference."),
        **_policy("refuses_open_reference", True, "merchants.set_open_references"),
    ),
    _act(
        "allow-open-references", _("Allow several open codes of a reference"),
        explain=_("From now on, several open QR codes can have the same reference."),
        **_policy("refuses_open_reference", False, "merchants.set_open_references"),
    ),
    _act(
        "publish-proof", _("Publish the proof page"),
        explain=_(
            "Anybody can read at /proof/%(id)s how fast and complete the payments of %(name)s were reported "
            "on each day from now on, without names, amounts or ids. Each day is signed and stays as it is."
        ),
        **_policy("shows_proof", True, "merchants.set_proof"),
    ),
    _act(
        "withdraw-proof", _("Withdraw the proof page"),
        explain=_("Nobody can read the proof page of %(name)s any more. Copies that others keep stay true."),
        **_policy("shows_proof", False, "merchants.set_proof"),
    ),
    _act(
        "hold-payers", _("Hold payments of other payers"), Act.HELD_PAYERS_CHANGED, "merchants.set_holds",
        _(
            "From now on, such a payment of %(name)s succeeds and its money is credited, but it says: do "
            "not ship yet. It needs the name or the account of the client in the code."
        ),
        lambda merchant, values, now: services.set_policy(merchant.pk, holds_payers=values["holds_payers"]),
        form=forms.HoldsForm,
    ),
    _act(
        "page-origins", _("Sites of the payment page"), Act.PAGE_ORIGINS_CHANGED,
        "merchants.set_page_origins",
        _(
            "Pages of these sites may show the payment page in a frame, and the payment page links back "
            "to them. No other site can do either."
        ),
        lambda merchant, values, now: services.set_page_origins(merchant.pk, values["origins"]),
        form=forms.OriginsForm,
    ),
    _act(
        "page-settings", _("Change the payment page"), Act.PAGE_SETTINGS_CHANGED,
        "merchants.set_page_settings",
        _("Payers of %(name)s see this logo, colour and contact on all pages that they open from now on."),
        _set_page,
        form=forms.PageSettingsForm,
    ),
)  # fmt: skip
KEY_ACTS = (
    _of_key(
        "roll", _("Roll the key"), Act.KEY_ROLLED, "merchants.roll_key",
        _(
            "A new key takes the place of %(key)s of %(name)s, with the same scopes, networks and "
            "lifetime. The next page shows it once. The old key works on for the hours that you give."
        ),
        lambda key, values, now: _shown_once(
            *services.roll_key(key_id=key.pk, overlap_hours=values["overlap_hours"], now=now)
        ),
        is_possible=ApiKey.is_usable, form=forms.RollKeyForm,
    ),
    _of_key(
        "revoke", _("Revoke at once"), Act.KEY_REVOKED, "merchants.revoke_key",
        _("Requests of %(name)s with the key %(key)s are refused at once. Nothing can undo this."),
        lambda key, values, now: services.revoke_key(key_id=key.pk, now=now),
        is_possible=lambda key, now: key.revoked_at is None, is_dangerous=True,
    ),
)  # fmt: skip
