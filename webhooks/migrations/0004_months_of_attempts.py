from django.db import migrations

from core.migrations import PartitionByMonth
from core.partitions import Monthly


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ('webhooks', '0003_event_traceparent'),
        ('operations', '0006_partitions'),
    ]

    operations = [
        PartitionByMonth('deliveryattempt', Monthly('started_at')),
    ]
