"""Entries that wait are folded in batches, each where the one before it ended."""

from django.db import migrations, models

# A balance is read from the index alone where the table was vacuumed. After a long stop it has only grown.
TIDY = """
ALTER TABLE transactions_unfolded
    SET (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 10000);
"""
UNTIDY = """
ALTER TABLE transactions_unfolded
    RESET (autovacuum_vacuum_insert_scale_factor, autovacuum_vacuum_insert_threshold);
"""


class Migration(migrations.Migration):
    dependencies = [("transactions", "0011_unconfirmed")]
    operations = [
        # Millions of rows may wait.
        migrations.RunSQL("SET LOCAL statement_timeout = 0", migrations.RunSQL.noop),
        migrations.RemoveIndex(model_name="unfolded", name="unfolded_of_account"),
        migrations.AddIndex(
            model_name="unfolded",
            index=models.Index(fields=["account_id", "entry"], include=("amount",), name="unfolded_in_order"),
        ),
        migrations.RunSQL(TIDY, UNTIDY),
    ]
