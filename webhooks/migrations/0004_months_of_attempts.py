from django.db import migrations

from core.migrations import PartitionByMonth


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ('webhooks', '0003_event_traceparent'),
        ('operations', '0006_partitions'),
    ]

    operations = [
        PartitionByMonth('deliveryattempt', 'started_at'),
    ]
