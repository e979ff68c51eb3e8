"""Random steps over the real API and PostgreSQL.

After each step the money agrees with a small model, and the audit finds nothing.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import closing

import hypothesis
import pytest
from django.conf import settings
from hypothesis import HealthCheck
from hypothesis.stateful import run_state_machine_as_test

from tests.examples import examples
from tests.state_machine.card_payments import CardPayments
from tests.state_machine.http_service import HttpConnectionClient, run_acquirer, serve
from tests.state_machine.model import DAILY_LIMIT, ITEM_LIMIT
from tests.state_machine.statement_payments import StatementPayments

pytestmark = pytest.mark.slow
EXAMPLES = int(os.environ.get("EXAMPLES", "0"))
STEPS = 50


class StateMachine(CardPayments, StatementPayments):
    """All steps of all machines."""


@pytest.fixture
def base_url(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Run the service and the acquirer, and return the URL of the service."""
    with serve() as base_url, run_acquirer():
        monkeypatch.setattr(settings, "BASE_URL", base_url)
        monkeypatch.setattr(settings, "RATE_LIMIT", 0)
        monkeypatch.setattr(settings, "APPROVAL_ITEM_LIMIT", ITEM_LIMIT)
        monkeypatch.setattr(settings, "APPROVAL_DAILY_LIMIT", DAILY_LIMIT)
        logging.disable(logging.WARNING)  # 100,000 requests would write too many lines
        yield base_url
        logging.disable(logging.NOTSET)


def test_ledger_balances_match_the_model_after_any_steps(base_url: str) -> None:
    """Run the same examples each time. With EXAMPLES=5000, run 5,000 random examples."""
    with closing(HttpConnectionClient(base_url)) as client:
        run_state_machine_as_test(
            lambda: StateMachine(client),  # type: ignore[arg-type]  # a factory is enough
            settings=hypothesis.settings(
                max_examples=EXAMPLES or examples(20),
                stateful_step_count=STEPS,
                derandomize=not EXAMPLES,
                database=None,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                print_blob=True,
            ),
        )
