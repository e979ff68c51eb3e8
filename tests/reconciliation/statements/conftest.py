from collections.abc import Iterator

import pytest

from tests.conftest import Shop
from tests.reconciliation.statements.statement_files import open_shop_with_biller


@pytest.fixture
def shop(db: None) -> Shop:
    return open_shop_with_biller("Somtam House")


@pytest.fixture(autouse=True)
def no_error_is_logged(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test whose import logs a fallback or an error, unless it has the mark `logs_errors`."""
    yield
    if not request.node.get_closest_marker("logs_errors"):
        errors = [record for record in caplog.get_records("call") if record.levelname == "ERROR"]
        assert not errors, [record.getMessage() for record in errors]
