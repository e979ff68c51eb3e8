from django.contrib.postgres.operations import RemoveIndexConcurrently
from django.db import migrations


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('reconciliation', '0004_index_of_inquiry_answers'),
    ]

    operations = [
        RemoveIndexConcurrently('inquiryanswer', 'inquiryanswer_by_payment'),
    ]
