from django.db import migrations

from core.migrations import PartitionByMonth
from core.partitions import Monthly


class Migration(migrations.Migration):

    atomic = False
    dependencies = [
        ('reconciliation', '0008_labels_of_match_results'),
        ('operations', '0006_partitions'),
    ]

    operations = [
        PartitionByMonth('inquiryanswer', Monthly('payment_id', prefix='pay_')),
    ]
