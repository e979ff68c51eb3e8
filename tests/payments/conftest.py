from collections.abc import Iterator

import pytest
from pytest_django import Settings

from config.devstack import ports
from sandbox.acquirer_server import AcquirerServer, run_acquirer_server
from tests.conftest import Shop, open_shop


@pytest.fixture
def acquirer(transactional_db: None, settings: Settings) -> Iterator[AcquirerServer]:
    """The sandbox bank's acquirer, over HTTP as always."""
    settings.SANDBOX_ACQUIRER_URL = f"http://127.0.0.1:{ports.pick()}"
    with run_acquirer_server() as counter:
        yield counter


@pytest.fixture
def card_shop(acquirer: AcquirerServer) -> Shop:
    """A shop that takes test cards."""
    return open_shop("Somtam House")
