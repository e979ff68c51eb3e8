"""A migration whose indexes, constraints and triggers are made together."""

from typing import Any

from django.db.migrations.loader import MigrationLoader

from core.database.migrations import Together, together


def options(loader: MigrationLoader) -> dict[Any, Any]:
    return {key: model.options for key, model in loader.project_state().models.items()}


def test_rules_made_together_leave_the_same_models() -> None:
    loader = MigrationLoader(None)
    one_by_one = options(loader)
    for migration in loader.graph.nodes.values():
        migration.operations = [*together(migration.operations)]
    assert options(loader) == one_by_one
    refunds = loader.get_migration("refunds", "0001_initial").operations
    assert any(isinstance(each, Together) for each in refunds)
