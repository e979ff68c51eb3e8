from django.db import migrations, models

from core.migrations import BuildIndex


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('reconciliation', '0003_inquiry_answers'),
    ]

    operations = [
        BuildIndex('inquiryanswer', models.Index(fields=['payment'], name='inquiryanswer_of_payment')),
    ]
