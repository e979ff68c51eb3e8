"""The state machine. Its failed assertions show what they compared, as those of test modules do."""

import pytest

MODULES = ("payments_machine", "exceptions_machine", "card_payments", "statement_payments")
pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in MODULES))
