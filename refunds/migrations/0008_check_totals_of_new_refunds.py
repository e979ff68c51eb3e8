from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    dependencies = [
        ('refunds', '0007_check_totals'),
    ]

    operations = [
        migrations.RunSQL((SQL / "totals.sql").read_text()),
    ]
