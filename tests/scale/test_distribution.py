"""What Citus would take of our tables and statements, and that docs/scale.md names all the rest.

A new table, constraint or statement that does not fit needs a line there. So does one that fits now.
"""

from ipaddress import ip_network

import pytest
from pytest_django import Settings

from tests.scale import catalogue, hot_path, page
from tests.test_hot_path import Caller, caller, named
from tests.webhook_receiver import running_receiver

pytestmark = pytest.mark.slow

__all__ = ["caller"]  # a fixture

COPIED = page.listed("Copied to every server")
KEPT = page.listed("Kept on one server")


def spread() -> set[str]:
    """All other tables."""
    return catalogue.tables().keys() - COPIED - KEPT


@pytest.mark.django_db
def test_copied_and_kept_tables_exist() -> None:
    assert catalogue.tables().keys() >= COPIED | KEPT
    assert not COPIED & KEPT


@pytest.mark.django_db
def test_each_table_of_a_merchant_has_the_merchant_or_is_listed() -> None:
    found = catalogue.tables()
    without = {name for name in spread() if not found[name]}
    assert without == page.listed("Tables without `merchant_id`")


@pytest.mark.django_db
def test_each_row_has_a_merchant_or_its_table_is_listed() -> None:
    assert catalogue.may_be_empty() & spread() == page.listed("Tables whose `merchant_id` may be empty")


@pytest.mark.django_db
def test_each_unique_index_has_the_merchant_or_is_listed() -> None:
    without = {
        each.name
        for each in catalogue.unique_indexes()
        if each.table in spread() and not each.is_primary and catalogue.COLUMN not in each.columns
    }
    assert without == page.listed("Unique indexes without `merchant_id`")


@pytest.mark.django_db
def test_only_the_listed_primary_keys_have_the_merchant() -> None:
    with_merchant = {
        each.table
        for each in catalogue.unique_indexes()
        if each.table in spread() and each.is_primary and catalogue.COLUMN in each.columns
    }
    assert with_merchant == page.listed("Primary keys with `merchant_id`")


@pytest.mark.django_db
def test_no_foreign_key_between_spread_tables_has_the_merchant_yet() -> None:
    """The page says so. The first that has it is the begin of another list."""
    keys = [key for key in catalogue.foreign_keys() if key.table in spread() and key.target in spread()]
    assert keys
    assert [key for key in keys if catalogue.COLUMN in key.columns] == []


@pytest.mark.django_db
def test_no_foreign_key_leads_from_a_copied_or_kept_table_to_a_spread_one() -> None:
    """Citus refuses those, whatever columns they have."""
    found = catalogue.foreign_keys()
    assert [key for key in found if key.table not in spread() and key.target in spread()] == []
    assert [key for key in found if key.table in spread() and key.target in KEPT] == []


def test_each_statement_of_the_hot_path_names_its_merchant_or_is_listed(
    caller: Caller, settings: Settings
) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.WEBHOOK_ALLOW_HTTP = True
    tables = spread() | catalogue.functions()
    with running_receiver() as receiver:
        recorded = hot_path.record(caller, receiver.url())
    assert all(recorded.values())
    without = {
        f"{part}: {named(sql)}"
        for part, statements in recorded.items()
        for sql in statements
        if not catalogue.goes_to_one_merchant(sql, tables)
    }
    assert {_short(each) for each in without} == page.listed("Statements that name no merchant")


def _short(name: str) -> str:
    """Each table once."""
    part, _, rest = name.partition(": ")
    return f"{part}: {' '.join(dict.fromkeys(rest.split()))}"


@pytest.mark.parametrize(
    ("sql", "fits"),
    [
        ("SELECT 1 FROM payments_payment WHERE merchant_id = %s AND id = %s", True),
        ('SELECT 1 FROM payments_payment WHERE "payments_payment"."merchant_id" = ANY(%s)', True),
        ("SELECT merchant_id FROM payments_payment WHERE id = %s", False),
        ("SELECT 1 FROM merchants_apikey k JOIN payments_payment p ON p.merchant_id = k.merchant_id", False),
        ("UPDATE payments_payment AS old SET merchant_id = new.merchant_id WHERE old.id = new.id", False),
        ("INSERT INTO payments_payment (id, merchant_id) VALUES (%s, %s)", True),
        ("INSERT INTO payments_payment (id) VALUES (%s)", False),
        ("SELECT 1 FROM merchants_merchant WHERE id = %s", True),
    ],
)
def test_statement_must_give_the_merchant_itself(sql: str, fits: bool) -> None:
    assert catalogue.goes_to_one_merchant(sql, {"payments_payment"}) is fits
