from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parents[1] / 'sql'


class Migration(migrations.Migration):

    dependencies = [
        ('operations', '0005_job_runs'),
    ]

    operations = [
        migrations.RunSQL((SQL / 'partitions.sql').read_text()),
    ]
