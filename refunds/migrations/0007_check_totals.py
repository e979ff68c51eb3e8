from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    dependencies = [
        ('payments', '0009_paid_after_creation'),
        ('refunds', '0006_keep_how_it_ended'),
    ]

    operations = [
        migrations.RunSQL((SQL / "totals.sql").read_text()),
    ]
