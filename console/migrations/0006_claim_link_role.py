from django.db import migrations

from console import roles


class Migration(migrations.Migration):

    dependencies = [
        ('console', '0005_export_language'),
        ('refunds', '0002_claim_links'),
    ]

    operations = [
        migrations.RunPython(roles.apply, migrations.RunPython.noop),
    ]
