from tests.transfers.conftest import served_by

__all__ = ["served_by"]
