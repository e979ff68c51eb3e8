"""Each thing that staff can do in the console has an act of the audit trail."""

from typing import Any

from django.contrib import admin

from audit_trail.act_pages import ActPages
from audit_trail.acts import Act
from core.admin import RecordedAdmin

# A new action of a list needs a line here, and `recorded` around its service or inside of it.
ACTS_OF_ACTIONS = {
    "console.loginthrottle.lift": {Act.LOCKOUT_LIFTED},
    "approvals.payoutaccount.remove": {Act.PAYOUT_ACCOUNT_REMOVED},
    "merchants.apikey.revoke": {Act.KEY_REVOKED},
    "merchants.merchant.issue_key": {Act.KEY_ISSUED},
    "merchants.merchant.accept_late_money": {Act.LATE_MONEY_CHANGED},
    "merchants.merchant.review_late_money": {Act.LATE_MONEY_CHANGED},
}


def test_each_action_of_a_list_has_an_act() -> None:
    registered = {
        f"{model._meta.label_lower}.{name}"
        for model, found in admin.site._registry.items()
        for name in found.actions or ()
    }
    assert registered == set(ACTS_OF_ACTIONS)


def test_each_page_of_the_console_records_forms_and_deletions() -> None:
    assert [found for found in admin.site._registry.values() if not isinstance(found, RecordedAdmin)] == []


def test_acts_on_objects_have_different_addresses() -> None:
    pages: Any = [found for found in admin.site._registry.values() if isinstance(found, ActPages)]
    assert pages
    for found in pages:
        slugs = [each.slug for each in found.object_acts]
        assert len(set(slugs)) == len(slugs), found
