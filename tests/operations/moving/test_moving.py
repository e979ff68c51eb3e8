"""A merchant moves to another instance with its books, and nothing of it happens twice."""

from pathlib import Path

import pytest
from django.apps import apps

from audit_trail.chain import Verification
from core import clock
from operations.audit import findings
from operations.moving import exporting, tables
from operations.moving.file import Unusable
from operations.moving.importing import Importer
from pytest_django import Settings
from tests.approvals.builders import add_payout_account
from tests.audit import differences
from tests.operations.audit import scenarios
from tests.operations.audit.scenarios import SCENARIOS, Serving
from tests.refunds.builders import RefundShop
from tests.settlements.conftest import ReportingAcquirer
from tests.conftest import SandboxBankClient, Shop
from tests.operations.moving.conftest import Instance


def found_by_audit() -> list[str]:
    return [*findings.find(Verification()), *differences()]


def test_each_table_moves_or_stays_for_a_reason() -> None:
    stays = [label for labels in tables.STAYS.values() for label in labels]
    listed = [*tables.MOVES, *stays]
    assert sorted(listed) == sorted(
        model._meta.label_lower for model in apps.get_models(include_auto_created=True)
    )


def test_payment_moves(shop: Shop, bank: SandboxBankClient, other_instance: Instance, tmp_path: Path) -> None:
    code = shop.qr_code()
    open_code = shop.qr_code()
    bank.notify(code)
    key, _ = exporting.export(shop.merchant.pk, tmp_path / "file", now=clock.now())
    with other_instance():
        Importer().run(tmp_path / "file", key)
        assert not found_by_audit()
        assert shop.payment(code["payment_id"])["status"] == "succeeded"
        assert bank.notify(open_code).status_code == 200
        assert shop.payment(open_code["payment_id"])["status"] == "succeeded"
        assert not found_by_audit()


def test_all_rows_move(
    refund_shop: RefundShop,
    served_by: Serving,
    acquirer: ReportingAcquirer,
    settings: Settings,
    other_instance: Instance,
    tmp_path: Path,
) -> None:
    for scenario in SCENARIOS:
        scenario(refund_shop, served_by)
    scenarios.settle_cards(refund_shop, served_by, acquirer)
    scenarios.fail_transfer(refund_shop, served_by, acquirer)
    scenarios.void_card(refund_shop, served_by, acquirer)
    scenarios.request_approvals(refund_shop, served_by, settings)
    add_payout_account(refund_shop.shop)
    assert not found_by_audit()
    merchant_id = refund_shop.shop.merchant.pk
    with pytest.raises(Unusable) as refused:
        exporting.export(merchant_id, tmp_path / "file", now=clock.now())
    print(refused.value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting, "_unfinished", lambda merchant: [])
        key, _ = exporting.export(merchant_id, tmp_path / "file", now=clock.now())
    with other_instance():
        Importer().run(tmp_path / "file", key)
        assert not found_by_audit()
