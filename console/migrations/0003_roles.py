from django.db import migrations

from console import roles


class Migration(migrations.Migration):

    dependencies = [
        ('console', '0002_roles'),
        ('merchants', '0004_test_connection'),
    ]

    operations = [
        migrations.RunPython(roles.apply, migrations.RunPython.noop),
    ]
