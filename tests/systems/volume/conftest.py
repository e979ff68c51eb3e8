from tests.reconciliation.conftest import pictures_may_take_long
from tests.reconciliation.statements.conftest import no_error_is_logged

__all__ = ["no_error_is_logged", "pictures_may_take_long"]
