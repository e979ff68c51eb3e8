from django.db import migrations, models
from django.db.models import Q

from core.migrations import BuildIndex


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('transfers', '0003_erasure'),
    ]

    operations = [
        BuildIndex('transfer', models.Index(condition=Q(submitted_at__isnull=False), fields=['-submitted_at'], name='transfer_last_submitted')),
    ]
