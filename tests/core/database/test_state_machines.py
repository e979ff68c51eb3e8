"""Transitions of many rows by one statement. Each model's table is tested beside its model."""

import re
from pathlib import Path

import pytest

from core.database.state_machines import IllegalTransition, StateMachine, transition_all, transition_where
from payments.models import Payment, PaymentStatus
from tests.factories import PaymentFactory

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[3]


def test_transition_all_writes_nothing_if_one_transition_is_illegal() -> None:
    pending, failed = PaymentFactory(), PaymentFactory(status=PaymentStatus.FAILED, failure_code="declined")
    with pytest.raises(IllegalTransition, match=f"{failed.id}: 'failed' to 'expired'"):
        transition_all([(pending, {}), (failed, {})], PaymentStatus.EXPIRED)
    assert set(Payment.objects.values_list("status", flat=True)) == {"pending", "failed"}


def test_transition_where_changes_only_rows_in_the_source_state() -> None:
    PaymentFactory()
    PaymentFactory(status=PaymentStatus.FAILED, failure_code="declined")
    changed = transition_where(Payment.objects.all(), PaymentStatus.PENDING, PaymentStatus.EXPIRED)
    assert changed == 1
    assert set(Payment.objects.values_list("status", flat=True)) == {"expired", "failed"}


def test_transition_where_refuses_a_transition_that_the_table_does_not_have() -> None:
    with pytest.raises(IllegalTransition, match="Payment: 'failed' to 'succeeded'"):
        transition_where(Payment.objects.all(), PaymentStatus.FAILED, PaymentStatus.SUCCEEDED)


def test_only_state_machines_assign_states() -> None:
    apps = {model._meta.app_label for model in StateMachine.__subclasses__()}
    assignment = re.compile(
        r"^ +\w+\.(?:status|state|resolution_state) = |\.update\([^)]*\b(?:status|state)=", re.M
    )
    sources = [path for app in apps for path in (ROOT / app).rglob("*.py") if "migrations" not in path.parts]
    assert len(sources) > 50
    # What merchants read about held money is a copy of the states of its bank transaction.
    sources.remove(ROOT / "payments" / "exceptions.py")
    assert [path for path in sources if assignment.search(path.read_text())] == []
