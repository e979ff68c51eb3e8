"""Only what nobody has decided about goes back; what a dismissed reversal takes back may be told after all."""

from importlib import import_module

from django.db import migrations

BEFORE = import_module("receipts.migrations.0006_guard_exceptions")
FUNCTIONS = "CREATE OR REPLACE FUNCTION receipts_guard_moves() {}\nCREATE OR REPLACE FUNCTION receipts_guard_return() {}"


def body_of(function: str) -> str:
    """From the head of a function of the guard before to its end."""
    return BEFORE.GUARD.partition(f"CREATE FUNCTION {function}() ")[2].partition("END $$;")[0] + "END $$;"


MOVES, RETURN = body_of("receipts_guard_moves"), body_of("receipts_guard_return")
GUARD = FUNCTIONS.format(
    MOVES.replace(
        "AND NOT (OLD.kind = 'reversal' AND OLD.outcome = 'unmatched' AND NEW.outcome = 'reversed')",
        "AND NOT (OLD.kind = 'reversal' AND OLD.resolution = '' AND (OLD.outcome || '>' || NEW.outcome) IN (\n"
        "           'unmatched>reversed', 'unmatched>ordered'))",
    ).replace("'sent_back>'\n", "'sent_back>', 'dismissed>'\n"),
    RETURN.replace("AND kind = 'credit'\n", "AND kind = 'credit' AND resolution = ''\n"),
)


class Migration(migrations.Migration):
    dependencies = [("receipts", "0010_ordered")]
    operations = [migrations.RunSQL(GUARD, FUNCTIONS.format(MOVES, RETURN))]
