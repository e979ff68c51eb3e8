from tests.console.conftest import declared_roles, served_by

__all__ = ["declared_roles", "served_by"]
