import pytest
from django.test import Client

from tests.reconciliation.builders import RESOLVES, staff_client


@pytest.fixture
def malee(db: None) -> Client:
    return staff_client("malee", *RESOLVES, "view_personal_data")


@pytest.fixture
def viewer(db: None) -> Client:
    return staff_client("onlooker", "view_banktransaction", "view_personal_data")
