from django.db import migrations

from console import roles


class Migration(migrations.Migration):

    # The declared permissions are of models of all these apps.
    dependencies = [
        ('approvals', '0001_initial'),
        ('audit_trail', '0001_initial'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('console', '0001_initial'),
        ('counts', '0001_initial'),
        ('idempotency', '0001_initial'),
        ('ledger', '0001_initial'),
        ('merchants', '0001_initial'),
        ('operations', '0001_initial'),
        ('payments', '0001_initial'),
        ('qrcodes', '0001_initial'),
        ('reconciliation', '0001_initial'),
        ('refunds', '0001_initial'),
        ('sandbox', '0001_initial'),
        ('transactions', '0001_initial'),
        ('transfers', '0001_initial'),
        ('webhooks', '0001_initial'),
        ('withdrawals', '0001_initial'),
    ]

    operations = [
        migrations.RunPython(roles.apply, migrations.RunPython.noop),
    ]
