from django.db import migrations

from console import roles


class Migration(migrations.Migration):

    dependencies = [
        ('console', '0006_claim_link_role'),
        ('transfers', '0002_safe_mode'),
    ]

    operations = [
        migrations.RunPython(roles.apply, migrations.RunPython.noop),
    ]
