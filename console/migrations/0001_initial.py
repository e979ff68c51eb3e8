from pathlib import Path

import core.triggers
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
import core.triggers
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
import core.triggers
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models


SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('admin', '0003_logentry_add_action_flag_choices'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='LoginThrottle',
            fields=[
                ('subject', models.CharField(max_length=200, primary_key=True, serialize=False)),
                ('failure_count', models.IntegerField()),
                ('expires_at', models.DateTimeField(db_index=True, verbose_name='counted until')),
            ],
            options={
                'verbose_name': 'failed logins',
                'verbose_name_plural': 'failed logins',
                'permissions': [('lift_lockout', 'Can lift a lockout')],
                'default_permissions': ('view',),
                'constraints': [models.CheckConstraint(condition=models.Q(('failure_count__gte', 0)), name='login_throttle_failure_count_not_negative')],
            },
        ),
        migrations.CreateModel(
            name='SecondFactor',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('secret_sealed', models.TextField()),
                ('created_at', models.DateTimeField()),
                ('last_step', models.BigIntegerField()),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='second_factor', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'second factor',
                'verbose_name_plural': 'second factors',
                'permissions': [('reset_second_factor', 'Can reset the second factor of others')],
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='StaffSession',
            fields=[
                ('session_key', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='session key')),
                ('session_data', models.TextField(verbose_name='session data')),
                ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                ('last_used_at', models.DateTimeField(db_index=True)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'session',
                'verbose_name_plural': 'sessions',
                'permissions': [('end_sessions', 'Can end the sessions of others')],
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='RecoveryCode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64)),
                ('used_at', models.DateTimeField(null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recovery_codes', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'recovery code',
                'verbose_name_plural': 'recovery codes',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('user', 'digest'), name='recoverycode_once')],
            },
        ),
        migrations.CreateModel(
            name='Export',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('list', models.CharField(max_length=80)),
                ('query', models.TextField(blank=True, default='')),
                ('file_type', models.CharField(max_length=8)),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed')], default='waiting', max_length=7)),
                ('total', models.BigIntegerField(null=True)),
                ('rows', models.BigIntegerField(default=0)),
                ('attempts', models.IntegerField(default=0)),
                ('lease_until', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(db_index=True, null=True)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='exports', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'export',
                'verbose_name_plural': 'exports',
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(condition=models.Q(('state__in', ['waiting', 'running'])), fields=('owner',), name='export_one_open'), models.CheckConstraint(condition=models.Q(('state__in', ['waiting', 'running', 'done', 'failed'])), name='export_state_known')],
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
                'constraints': [models.UniqueConstraint(fields=('export', 'number'), name='exportpart_once')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='recoverycode',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.triggers.TriggerSql(condition='WHEN ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."user_id" IS DISTINCT FROM NEW."user_id" OR OLD."digest" IS DISTINCT FROM NEW."digest"))', func="RAISE EXCEPTION 'a recovery code is used, never changed' USING ERRCODE = 'check_violation';", hash='a7d970d1c4df608bf82c61e143f12b21cb712d5b', operation='UPDATE', pgid='pgtrigger_read_only_49524', table='console_recoverycode', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='recoverycode',
            trigger=pgtrigger.compiler.Trigger(name='used_at_set_once', sql=core.triggers.TriggerSql(condition='WHEN (OLD.used_at IS NOT NULL AND NEW.used_at IS DISTINCT FROM OLD.used_at)', func="RAISE EXCEPTION 'each recovery code is used once' USING ERRCODE = 'check_violation';", hash='f87eb291fcadc3e1767fd6c12288b56877c053a3', operation='UPDATE', pgid='pgtrigger_used_at_set_once_d0a35', table='console_recoverycode', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='secondfactor',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.triggers.TriggerSql(condition='WHEN ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."user_id" IS DISTINCT FROM NEW."user_id" OR OLD."created_at" IS DISTINCT FROM NEW."created_at") OR NOT current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."secret_sealed" IS DISTINCT FROM NEW."secret_sealed") OR current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."last_step" IS DISTINCT FROM NEW."last_step"))', func="RAISE EXCEPTION 'a second factor is replaced, never changed' USING ERRCODE = 'check_violation';", hash='3295e21fa7c6772c8bce91dcaedabcedc6018197', operation='UPDATE', pgid='pgtrigger_read_only_85932', table='console_secondfactor', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='secondfactor',
            trigger=pgtrigger.compiler.Trigger(name='code_once', sql=core.triggers.TriggerSql(condition='WHEN (NEW.last_step < OLD.last_step)', func="RAISE EXCEPTION 'each code is used once' USING ERRCODE = 'check_violation';", hash='db8810f537d36b15b1d43f90c4deabe8f9effde6', operation='UPDATE', pgid='pgtrigger_code_once_57575', table='console_secondfactor', when='BEFORE')),
        ),
        migrations.CreateModel(
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('expires_at', models.DateTimeField()),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='invitation', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'invitation',
                'verbose_name_plural': 'invitations',
                'default_permissions': (),
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='invitation',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.triggers.TriggerSql(condition='WHEN ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."user_id" IS DISTINCT FROM NEW."user_id" OR OLD."digest" IS DISTINCT FROM NEW."digest" OR OLD."expires_at" IS DISTINCT FROM NEW."expires_at"))', func="RAISE EXCEPTION 'an invitation is replaced, never changed' USING ERRCODE = 'check_violation';", hash='010a36ac3c1e5a2261600b74fbd42603ebd87169', operation='UPDATE', pgid='pgtrigger_read_only_c91d5', table='console_invitation', when='BEFORE')),
        ),
        migrations.CreateModel(
            name='Passkey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=60)),
                ('credential_id', models.TextField(unique=True)),
                ('public_key', models.TextField()),
                ('sign_count', models.BigIntegerField()),
                ('created_at', models.DateTimeField()),
                ('last_used_at', models.DateTimeField(null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='passkeys', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'passkey',
                'verbose_name_plural': 'passkeys',
                'default_permissions': (),
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='passkey',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.triggers.TriggerSql(condition='WHEN ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."user_id" IS DISTINCT FROM NEW."user_id" OR OLD."name" IS DISTINCT FROM NEW."name" OR OLD."credential_id" IS DISTINCT FROM NEW."credential_id" OR OLD."public_key" IS DISTINCT FROM NEW."public_key" OR OLD."created_at" IS DISTINCT FROM NEW."created_at"))', func="RAISE EXCEPTION 'a passkey is replaced, never changed' USING ERRCODE = 'check_violation';", hash='c5f5b3cb98f527e84ef374fc67481eeb9e5ce612', operation='UPDATE', pgid='pgtrigger_read_only_9ab68', table='console_passkey', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='passkey',
            trigger=pgtrigger.compiler.Trigger(name='count_rises', sql=core.triggers.TriggerSql(condition='WHEN (NEW.sign_count < OLD.sign_count)', func="RAISE EXCEPTION 'signatures are counted' USING ERRCODE = 'check_violation';", hash='6bdd42f2ea0c4cba0d5470b9c2a9449ae8a61a2e', operation='UPDATE', pgid='pgtrigger_count_rises_c76cf', table='console_passkey', when='BEFORE')),
        ),
        migrations.CreateModel(
            name='SavedFilter',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('list_label', models.CharField(help_text='The label of the model, such as payments.payment.', max_length=100)),
                ('name', models.CharField(max_length=60)),
                ('query', models.CharField(help_text='The filters as in the address of the list.', max_length=1000)),
                ('created_at', models.DateTimeField()),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_filters', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'saved filter',
                'verbose_name_plural': 'saved filters',
                'ordering': ['name', 'id'],
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('user', 'list_label', 'name'), name='savedfilter_name_once'), models.CheckConstraint(condition=models.Q(models.Q(('name', ''), _negated=True), models.Q(('query', ''), _negated=True)), name='savedfilter_not_empty')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='savedfilter',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.triggers.TriggerSql(condition='WHEN ((OLD."user_id" IS DISTINCT FROM NEW."user_id" OR OLD."list_label" IS DISTINCT FROM NEW."list_label" OR OLD."name" IS DISTINCT FROM NEW."name"))', func="RAISE EXCEPTION 'a saved filter is replaced, never changed' USING ERRCODE = 'check_violation';", hash='3d83a2f8f0679dd616bc137ad6655cd6ed294cfb', operation='UPDATE', pgid='pgtrigger_read_only_49521', table='console_savedfilter', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
