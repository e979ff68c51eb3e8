from pathlib import Path

import django.db.models.deletion
from console.people import roles
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('admin', '0003_logentry_add_action_flag_choices'),
        ('approvals', '0001_initial'),
        ('audit_trail', '0001_initial'),
        ('auth', '0012_alter_user_first_name_max_length'),
        ('counts', '0001_initial'),
        ('idempotency', '0001_initial'),
        ('ledger', '0001_initial'),
        ('merchants', '0001_initial'),
        ('mfa', '0003_authenticator_type_uniq'),
        ('operations', '0001_initial'),
        ('payments', '0001_initial'),
        ('qrcodes', '0001_initial'),
        ('reconciliation', '0001_initial'),
        ('refunds', '0001_initial'),
        ('request_log', '0001_initial'),
        ('sandbox', '0001_initial'),
        ('transactions', '0001_initial'),
        ('transfers', '0001_initial'),
        ('webhooks', '0001_initial'),
        ('withdrawals', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='SignInLimit',
            fields=[
                ('cache_key', models.CharField(max_length=255, primary_key=True, serialize=False)),
                ('value', models.TextField()),
                ('expires', models.DateTimeField(db_index=True)),
            ],
            options={
                'permissions': [('lift_lockout', 'Can lift a lockout'), ('end_sessions', 'Can end the sessions of others'), ('reset_second_factor', 'Can reset the second factor of others')],
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Export',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed')], default='waiting', max_length=7)),
                ('attempts', models.IntegerField(default=0)),
                ('lease_until', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(db_index=True, null=True)),
                ('list', models.CharField(max_length=80)),
                ('query', models.TextField(blank=True, default='')),
                ('file_type', models.CharField(max_length=8)),
                ('language', models.CharField(db_default='en', max_length=10)),
                ('total', models.BigIntegerField(null=True)),
                ('rows', models.BigIntegerField(default=0)),
                ('failure', models.CharField(choices=[('not_allowed', 'You may no longer see this list.'), ('invalid', 'The filters are not valid.'), ('too_large', 'The file would be too large. Use narrower filters and try again.'), ('too_long_to_print', 'The report is too long to print. Choose a merchant, or download CSV or Excel.'), ('not_closed', 'No day of these payments has been closed yet.'), ('other', 'The file could not be written. Use narrower filters and try again.')], default='other', max_length=17)),
                ('has_personal_data', models.BooleanField(db_default=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='exports', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'export',
                'verbose_name_plural': 'exports',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ExportPart',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.IntegerField()),
                ('content', models.BinaryField()),
                ('export', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='console.export')),
            ],
            options={
                'verbose_name': 'part of an export',
                'verbose_name_plural': 'parts of exports',
                'default_permissions': (),
            },
        ),
        migrations.AddConstraint(
            model_name='export',
            constraint=models.UniqueConstraint(condition=models.Q(('state__in', ('waiting', 'running'))), fields=('owner',), name='export_one_open'),
        ),
        migrations.AddConstraint(
            model_name='export',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'running', 'done', 'failed'])), name='export_state_known'),
        ),
        migrations.AddConstraint(
            model_name='exportpart',
            constraint=models.UniqueConstraint(fields=('export', 'number'), name='exportpart_once'),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
        migrations.RunPython(roles.apply, migrations.RunPython.noop),
    ]
