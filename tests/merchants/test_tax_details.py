"""The tax id of a merchant, its branch, and whether it withholds tax."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.test import Client

from core.thai import tax_ids
from merchants import services
from merchants.models import Merchant
from tests.conftest import Shop
from tests.reconciliation.builders import staff_client
from tests.staff_acts import REASON, acts_of_staff, run_act

# Of companies that publish theirs, and one whose weighted sum leaves 0 and one whose sum leaves 1.
VALID = ["0107536000269", "0107537000882", "0994000165501", "0000000000001", "0000000000060"]


@pytest.fixture
def malee(db: None) -> Client:
    return staff_client("malee", "view_merchant", "set_tax_details")


def set_details(merchant: Merchant, **changes: Any) -> None:
    values: dict[str, Any] = {"tax_id": "0107536000269", "branch": "00000", "withholds": False} | changes
    services.set_tax_details(merchant.pk, **values)


def test_staff_set_the_tax_details(malee: Client, shop: Shop) -> None:
    values = {"tax_id": "0-1075-36000-26-9", "branch": "00012", "withholds": "on"}
    run_act(malee, Merchant, shop.merchant.pk, "tax-details", **values)
    merchant = Merchant.objects.get(pk=shop.merchant.pk)
    assert (merchant.tax_id, merchant.tax_branch, merchant.withholds_tax) == ("0107536000269", "00012", True)
    record = acts_of_staff().get()
    assert (record.act, record.reason, record.after["tax_id"]) == ("tax_details_set", REASON, "0107536000269")
    run_act(malee, Merchant, shop.merchant.pk, "tax-details", tax_id="", branch="")
    merchant.refresh_from_db()
    assert (merchant.tax_id, merchant.tax_branch, merchant.withholds_tax) == ("", "00000", False)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"tax_id": "0107536000268"}, "tax_id"),
        ({"tax_id": "010753600026"}, "tax_id"),
        ({"tax_id": "๐107536000269"}, "tax_id"),
        ({"tax_id": "0107536000269x"}, "tax_id"),
        ({"branch": "1"}, "branch"),
        ({"branch": "00๐12"}, "branch"),
    ],
)
def test_other_tax_details_are_refused_by_their_field(
    shop: Shop, changes: dict[str, str], field: str
) -> None:
    with pytest.raises(ValidationError) as refusal:
        set_details(shop.merchant, **changes)
    assert list(refusal.value.message_dict) == [field]
    assert Merchant.objects.get(pk=shop.merchant.pk).tax_id == ""


@pytest.mark.parametrize("text", VALID)
def test_database_and_program_agree_about_check_digits(shop: Shop, text: str) -> None:
    for digit in range(10):
        changed = f"{text[:-1]}{digit}"
        assert tax_ids.is_valid(changed) == (changed == text)
        try:
            with transaction.atomic():
                Merchant.objects.filter(pk=shop.merchant.pk).update(tax_id=changed)
        except IntegrityError:
            assert changed != text
        else:
            assert changed == text


@pytest.mark.parametrize("changes", [{"tax_id": "01075360002"}, {"tax_branch": "1"}, {"tax_branch": "0000x"}])
def test_database_refuses_other_texts(shop: Shop, changes: dict[str, str]) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Merchant.objects.filter(pk=shop.merchant.pk).update(**changes)
