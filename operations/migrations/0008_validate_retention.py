from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('operations', '0007_retention'),
    ]

    operations = [
        ValidateConstraint('jobrun', 'jobrun_job_known'),
    ]
