"""A merchant, and each counted list in turn."""

from typing import Any

import pytest

from merchants.models import Merchant
from tests.counts.builders import BUILDERS, ListBuilder
from tests.factories import MerchantFactory


@pytest.fixture
def merchant() -> Merchant:
    made: Merchant = MerchantFactory()
    return made


@pytest.fixture(params=BUILDERS, ids=str)
def listed(request: Any) -> ListBuilder:
    builder: ListBuilder = request.param
    return builder
