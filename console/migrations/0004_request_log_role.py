from django.db import migrations

from console import roles


class Migration(migrations.Migration):

    dependencies = [
        ('console', '0003_roles'),
        ('request_log', '0001_initial'),
    ]

    operations = [
        migrations.RunPython(roles.apply, migrations.RunPython.noop),
    ]
