import pytest
from django.test import Client

from tests.approvals.builders import staff
from tests.transfers.conftest import served_by

__all__ = ["served_by"]


@pytest.fixture
def malee(db: None) -> Client:
    return staff("malee", "decide_approval", "view_personal_data")
