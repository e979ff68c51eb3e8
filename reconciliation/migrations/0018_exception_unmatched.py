from django.db import migrations, models

from core.migrations import BuildIndex


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('reconciliation', '0017_remove_index_of_open_exceptions'),
    ]

    operations = [
        BuildIndex(
            'reconciliationexception',
            models.Index(
                fields=['merchant', 'amount', 'opened_at'],
                condition=models.Q(reason='unmatched'),
                name='exception_unmatched',
            ),
        ),
    ]
