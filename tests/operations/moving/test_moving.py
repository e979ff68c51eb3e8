"""A merchant moves to another instance with its books, and nothing of it happens twice."""

from pathlib import Path

from django.apps import apps

from audit_trail.chain import Verification
from core import clock
from operations.audit import findings
from operations.moving import exporting, tables
from operations.moving.importing import Importer
from tests.conftest import SandboxBankClient, Shop
from tests.operations.moving.conftest import Instance


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
        assert not list(findings.find(Verification()))
        assert shop.payment(code["payment_id"])["status"] == "succeeded"
        assert bank.notify(open_code).status_code == 200
        assert shop.payment(open_code["payment_id"])["status"] == "succeeded"
        assert not list(findings.find(Verification()))
