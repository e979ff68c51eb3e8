"""What owners set of their shop: its name and its nightly payout, on record."""

from datetime import time
from typing import Any

import pytest
from django.test import Client

from approvals import payout_accounts
from approvals.models import PayoutAccount
from audit_trail.models import AuditRecord
from console.people.roles import ShopRole
from core import clock
from tests.conftest import Shop
from tests.context import acting_as
from tests.shop.people import person_of, row_url
from tests.staff_acts import REASON, act_form
from withdrawals.models import PayoutSchedule

pytestmark = pytest.mark.django_db


def act(client: Client, shop: Shop, slug: str, **values: Any) -> Any:
    page = row_url(shop.merchant).replace("/change/", f"/do/{slug}/")
    return client.post(page, act_form(**values), follow=True)


def account_of(shop: Shop) -> PayoutAccount:
    given = {"bank_code": "014", "bank_account": "4051234567", "account_name": "Malee"}
    with acting_as("staff:lek"):
        return payout_accounts.add(shop.merchant, **given, now=clock.now())


def terms(account: PayoutAccount) -> dict[str, Any]:
    return {"days": "every_day", "time": "21:00", "float_amount": "100", "account": account.pk}


def test_owner_renames_the_shop(shop: Shop) -> None:
    assert "/do/rename/" in (owner := person_of(shop)).get(row_url(shop.merchant)).text
    assert "Lek Coffee" in act(owner, shop, "rename", name="Lek Coffee").text
    shop.merchant.refresh_from_db()
    assert shop.merchant.name == "Lek Coffee"
    record = AuditRecord.objects.get()
    assert (record.act, record.actor, record.reason) == ("merchant_renamed", "person:owner-somtam", REASON)
    assert (record.before["name"], record.after["name"]) == ("Somtam House", "Lek Coffee")


def test_owner_sets_and_stops_the_nightly_payout(shop: Shop) -> None:
    account, owner = account_of(shop), person_of(shop)
    act(owner, shop, "set-nightly-payout", **terms(account))
    schedule = PayoutSchedule.objects.get()
    assert (schedule.merchant, schedule.account, schedule.time) == (shop.merchant, account, time(21))
    assert (schedule.float_amount, schedule.changed_by) == (10_000, "person:owner-somtam")
    page = owner.get(row_url(shop.merchant)).text
    assert "21:00" in page
    assert "100.00 THB" in page
    act(owner, shop, "stop-nightly-payout")
    schedule.refresh_from_db()
    assert schedule.due_at is None
    assert "21:00" not in owner.get(row_url(shop.merchant)).text
    acts = AuditRecord.objects.filter(actor="person:owner-somtam").values_list("act", flat=True)
    assert list(acts) == ["payout_schedule_changed"] * 2


def test_nightly_payout_that_is_off_is_not_stopped(shop: Shop) -> None:
    assert "Nothing changed" in act(person_of(shop), shop, "stop-nightly-payout").text
    assert not PayoutSchedule.objects.exists()


def test_nightly_payout_goes_to_an_account_of_the_shop_only(shop: Shop, other_shop: Shop) -> None:
    theirs, _ = account_of(other_shop), account_of(shop)
    page = act(person_of(shop), shop, "set-nightly-payout", **terms(theirs))
    assert list(page.context["form"].errors) == ["account"]
    assert not PayoutSchedule.objects.exists()


@pytest.mark.parametrize("role", [each for each in ShopRole if each != ShopRole.OWNER])
def test_others_set_neither(shop: Shop, role: ShopRole) -> None:
    account, person = account_of(shop), person_of(shop, role)
    for slug in ("rename", "set-nightly-payout", "stop-nightly-payout"):
        assert act(person, shop, slug, name="Mine", **terms(account)).status_code == 403
    shop.merchant.refresh_from_db()
    assert (shop.merchant.name, PayoutSchedule.objects.exists()) == ("Somtam House", False)
