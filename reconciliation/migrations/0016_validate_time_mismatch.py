from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('reconciliation', '0015_time_mismatch'),
    ]

    operations = [
        ValidateConstraint('banktransaction', 'banktxn_match_result_known'),
        ValidateConstraint('banktransaction', 'banktxn_only_held_are_resolved'),
    ]
