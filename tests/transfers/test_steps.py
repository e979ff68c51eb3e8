"""Orders from before their steps were kept: what they say of themselves."""

from collections.abc import Callable
from importlib import import_module

import pytest
from django.db import connection

from banks import Word
from core import clock
from tests.transfers.cast import Bank, Recorder, queued, work
from transfers import services as transfers
from transfers.models import Step, Transfer
from transfers.schedule import OVERDUE

KNOWN = import_module("transfers.migrations.0007_steps").KNOWN
pytestmark = pytest.mark.django_db


def kept_anew() -> list[tuple[str, str]]:
    """The steps that the migration makes: what it was, by whom."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET LOCAL session_replication_role = replica; DELETE FROM transfers_step")
        cursor.execute("SET LOCAL session_replication_role = origin")
        cursor.execute(KNOWN)
    return list(Step.objects.order_by("id").values_list("what", "actor"))


def test_an_order_that_staff_ended_names_them(owner: Recorder, served_by: Callable[..., Bank]) -> None:
    served_by(sends=[Word("unknown")])
    transfer = queued(at=clock.now() - 2 * OVERDUE)
    work(owner)
    Transfer.objects.update(told_at=clock.now() - 2 * OVERDUE)
    transfers.settle_by_hand(transfer.id, Word("succeeded"), owner, by="malee", now=clock.now())
    assert kept_anew() == [("queued", ""), ("told", ""), ("succeeded", "staff:malee")]


def test_an_order_that_nobody_was_told_of_was_only_given(owner: Recorder) -> None:
    queued()
    assert kept_anew() == [("queued", "")]
