from tests.settlements.conftest import acquirer

__all__ = ["acquirer"]
