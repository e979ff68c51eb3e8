from tests.reconciliation.conftest import old_codes, pictures_may_take_long, seller, served_by
from tests.reconciliation.statements.conftest import no_error_is_logged, shop

__all__ = ["no_error_is_logged", "old_codes", "pictures_may_take_long", "seller", "served_by", "shop"]
