from collections.abc import Iterator

import pytest
from pytest_django import Settings

from config.devstack import ports
from sandbox.counter import Counter, open_counter
from tests.conftest import Shop, open_shop


@pytest.fixture
def acquirer(transactional_db: None, settings: Settings) -> Iterator[Counter]:
    """The sandbox bank's acquirer, over HTTP as always."""
    settings.SANDBOX_ACQUIRER_URL = f"http://127.0.0.1:{ports.pick()}"
    with open_counter() as counter:
        yield counter


@pytest.fixture
def till(acquirer: Counter) -> Shop:
    """A shop that takes test cards."""
    return open_shop("Somtam House")
