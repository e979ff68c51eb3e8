from django.db import migrations

from core.migrations import PartitionByMonth


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ('request_log', '0001_initial'),
        ('operations', '0006_partitions'),
    ]

    operations = [
        PartitionByMonth('requestrecord', 'id'),
    ]
