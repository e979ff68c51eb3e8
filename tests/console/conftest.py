from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
import time_machine
from django.apps import apps

from console.people import roles
from tests.transfers.conftest import served_by

__all__ = ["served_by"]


@pytest.fixture
def declared_roles(db: None) -> None:
    """The groups that the migration makes. Tests with real transactions delete them."""
    roles.apply(apps)


@pytest.fixture
def clock(noon: datetime) -> Iterator[Any]:
    """Freeze the clock at noon in Bangkok. A test can move it."""
    with time_machine.travel(noon, tick=False) as clock:
        yield clock
