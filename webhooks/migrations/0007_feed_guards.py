from pathlib import Path

from django.db import migrations

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    dependencies = [
        ('webhooks', '0006_event_append_only'),
    ]

    operations = [
        migrations.RunSQL((SQL / "feed_guards.sql").read_text()),
    ]
