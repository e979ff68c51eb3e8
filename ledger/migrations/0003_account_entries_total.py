from pathlib import Path

from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    dependencies = [
        ('ledger', '0002_balance_transactions'),
    ]

    operations = [
        migrations.AddField(
            model_name='account',
            name='entries_total',
            field=models.BigIntegerField(db_default=0, default=0, editable=False, help_text='The same, as triggers of the entries sum it. Nobody else changes it.'),
        ),
        # In the same commit as the triggers, so no posting comes between. A merchant has three accounts or four.
        migrations.RunSQL("UPDATE ledger_account SET entries_total = rolled_up_balance", migrations.RunSQL.noop),
        migrations.RunSQL((SQL / "balances.sql").read_text()),
    ]
