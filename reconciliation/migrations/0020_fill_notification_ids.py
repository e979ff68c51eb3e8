from django.db import migrations

# The trigger adds those that are stored meanwhile.
FILL = """
INSERT INTO reconciliation_notificationid (notification_id)
SELECT id FROM reconciliation_banknotification ON CONFLICT DO NOTHING
"""


class Migration(migrations.Migration):

    dependencies = [
        ('reconciliation', '0019_notification_ids'),
    ]

    operations = [
        migrations.RunSQL(FILL),
    ]
