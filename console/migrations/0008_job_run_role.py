from django.db import migrations

from console import roles


class Migration(migrations.Migration):

    dependencies = [
        ('console', '0007_safe_mode_role'),
        ('operations', '0005_job_runs'),
    ]

    operations = [
        migrations.RunPython(roles.apply, migrations.RunPython.noop),
    ]
