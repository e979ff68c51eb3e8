from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('reconciliation', '0016_validate_time_mismatch'),
    ]

    operations = [
        RemoveIndexConcurrently('banktransaction', 'banktxn_open_exceptions'),
    ]
