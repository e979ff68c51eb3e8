from django.db import migrations

from core.migrations import PartitionByMonth


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ('reconciliation', '0008_labels_of_match_results'),
        ('operations', '0006_partitions'),
    ]

    operations = [
        PartitionByMonth('inquiryanswer', 'payment_id'),
    ]
