from pathlib import Path

import core.database.columns
import core.database.triggers
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('ledger', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='EncryptionKeyCheck',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('text_sealed', models.TextField(editable=False)),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ErasureCursor',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('last_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='EvidenceSeal',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=52, primary_key=True, serialize=False)),
                ('body', models.TextField()),
                ('signature', models.CharField(max_length=88)),
                ('count', models.IntegerField()),
                ('nodes', models.BinaryField()),
            ],
            options={
                'permissions': [('view_evidence', 'Can download the evidence of payments')],
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Heartbeat',
            fields=[
                ('name', models.CharField(max_length=20, primary_key=True, serialize=False)),
                ('recorded_at', models.DateTimeField()),
            ],
            options={
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='JobRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('job', models.CharField(choices=[('daily_close', 'Close of the day'), ('audit', 'Audit of the books'), ('retention', 'Deletion of old rows'), ('import_statements', 'Import of statements'), ('reconcile', 'Comparison with the banks'), ('anonymise', 'Erasure of personal data')], max_length=20, verbose_name='job')),
                ('day', models.DateField(null=True, verbose_name='day')),
                ('attempts', models.SmallIntegerField(default=0, verbose_name='attempts')),
                ('started_at', models.DateTimeField(verbose_name='began')),
                ('lease_until', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True, verbose_name='ended')),
                ('seconds', models.FloatField(null=True, verbose_name='duration')),
                ('differences', models.IntegerField(null=True, verbose_name='differences')),
                ('error', models.CharField(blank=True, max_length=60, verbose_name='error')),
            ],
            options={
                'verbose_name': 'nightly job',
                'verbose_name_plural': 'nightly jobs',
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='Measurement',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=20)),
                ('labels', models.CharField(max_length=250)),
                ('bucket', models.SmallIntegerField()),
                ('count', models.BigIntegerField()),
                ('seconds', models.FloatField()),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='MonthClose',
            fields=[
                ('number', models.BigIntegerField(primary_key=True, serialize=False)),
                ('body', models.TextField()),
                ('hash', models.CharField(max_length=64)),
                ('previous_hash', models.CharField(blank=True, max_length=64)),
                ('signature', models.CharField(max_length=88)),
                ('public_key', models.CharField(max_length=44)),
                ('month', models.DateField(unique=True, verbose_name='month')),
            ],
            options={
                'verbose_name': 'month',
                'verbose_name_plural': 'months',
                'permissions': [('close_month', 'Can close months')],
                'abstract': False,
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='PaymentEvidence',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.IntegerField()),
                ('payment_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('text', models.TextField()),
                ('seed_sealed', models.TextField(blank=True, editable=False)),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ProcessReport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('host', models.CharField(max_length=64)),
                ('pid', models.IntegerField()),
                ('process', models.CharField(max_length=40)),
                ('version', models.CharField(max_length=40)),
                ('started_at', models.DateTimeField()),
                ('reported_at', models.DateTimeField()),
                ('memory_bytes', models.BigIntegerField()),
                ('open_files', models.IntegerField()),
                ('max_files', models.BigIntegerField()),
                ('processor_seconds', models.FloatField()),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ProofDay',
            fields=[
                ('pk', models.CompositePrimaryKey('merchant_id', 'day', blank=True, editable=False, primary_key=True, serialize=False)),
                ('merchant_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('day', models.DateField()),
                ('body', models.TextField()),
                ('signature', models.CharField(max_length=88)),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='WaitingErasure',
            fields=[
                ('bank_transaction_id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
            ],
            options={
                'abstract': False,
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='DailyClose',
            fields=[
                ('number', models.BigIntegerField(primary_key=True, serialize=False)),
                ('body', models.TextField()),
                ('hash', models.CharField(max_length=64)),
                ('previous_hash', models.CharField(blank=True, max_length=64)),
                ('signature', models.CharField(max_length=88)),
                ('public_key', models.CharField(max_length=44)),
                ('day', models.DateField(unique=True, verbose_name='day')),
            ],
            options={
                'verbose_name': 'daily close',
                'verbose_name_plural': 'daily closes',
                'abstract': False,
                'default_permissions': ('view',),
                'constraints': [models.UniqueConstraint(fields=('previous_hash',), name='dailyclose_one_successor'), models.CheckConstraint(condition=models.Q(('number__gte', 1)), name='dailyclose_number_positive')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='dailyclose',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a daily close is never changed' USING ERRCODE = 'insufficient_privilege';", hash='b214f4996264f2306d5e8654aa32dda224fafd91', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_a82b6', table='operations_dailyclose', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='encryptionkeycheck',
            constraint=models.CheckConstraint(condition=models.Q(('id', 1)), name='encryption_key_check_single_row'),
        ),
        migrations.AddConstraint(
            model_name='erasurecursor',
            constraint=models.CheckConstraint(condition=models.Q(('id', 1)), name='erasurecursor_single_row'),
        ),
        migrations.AddField(
            model_name='evidenceseal',
            name='close',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='seals', to='operations.dailyclose'),
        ),
        migrations.AddIndex(
            model_name='jobrun',
            index=models.Index(fields=['job', '-started_at'], name='jobrun_newest_of_job'),
        ),
        migrations.AddIndex(
            model_name='jobrun',
            index=models.Index(condition=models.Q(('lease_until__isnull', False)), fields=['lease_until'], name='jobrun_leased'),
        ),
        migrations.AddConstraint(
            model_name='jobrun',
            constraint=models.UniqueConstraint(fields=('job', 'day'), name='jobrun_once_a_day'),
        ),
        migrations.AddConstraint(
            model_name='jobrun',
            constraint=models.CheckConstraint(condition=models.Q(('job__in', ['daily_close', 'audit', 'retention', 'import_statements', 'reconcile', 'anonymise'])), name='jobrun_job_known'),
        ),
        migrations.AddConstraint(
            model_name='measurement',
            constraint=models.UniqueConstraint(fields=('name', 'labels', 'bucket'), name='measurement_once_per_bucket'),
        ),
        migrations.AddConstraint(
            model_name='monthclose',
            constraint=models.UniqueConstraint(fields=('previous_hash',), name='monthclose_one_successor'),
        ),
        migrations.AddConstraint(
            model_name='monthclose',
            constraint=models.CheckConstraint(condition=models.Q(('number__gte', 1)), name='monthclose_number_positive'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='monthclose',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'the close of a month is never changed' USING ERRCODE = 'insufficient_privilege';", hash='b8b1a58fbe153066b297dd77c1c555890c38b4c2', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_d15a5', table='operations_monthclose', when='BEFORE')),
        ),
        migrations.AddField(
            model_name='paymentevidence',
            name='seal',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='payments', to='operations.evidenceseal'),
        ),
        migrations.AddConstraint(
            model_name='processreport',
            constraint=models.UniqueConstraint(fields=('host', 'pid'), name='processreport_once'),
        ),
        migrations.AddField(
            model_name='proofday',
            name='close',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='proofs', to='operations.dailyclose'),
        ),
        migrations.AddConstraint(
            model_name='evidenceseal',
            constraint=models.CheckConstraint(condition=models.Q(('count__gte', 1)), name='evidenceseal_of_payments'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='evidenceseal',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a seal is never changed' USING ERRCODE = 'insufficient_privilege';", hash='de5413f822d50b8acc53f09f587a607a9a5bda39', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_fe4b2', table='operations_evidenceseal', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='paymentevidence',
            constraint=models.UniqueConstraint(fields=('seal', 'number'), name='paymentevidence_one_leaf'),
        ),
        migrations.AddConstraint(
            model_name='paymentevidence',
            constraint=models.UniqueConstraint(fields=('payment_id', 'seal'), name='paymentevidence_once_a_day'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='paymentevidence',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'what was sealed is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='d4a773d9346abb8e313efce2365fdc502ab00ea1', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_4c98b', table='operations_paymentevidence', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='paymentevidence',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."seal_id" IS DISTINCT FROM NEW."seal_id" OR OLD."number" IS DISTINCT FROM NEW."number" OR OLD."payment_id" IS DISTINCT FROM NEW."payment_id" OR OLD."text" IS DISTINCT FROM NEW."text") OR OLD."seed_sealed" IS DISTINCT FROM NEW."seed_sealed" AND (current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND substr(OLD.seed_sealed, 1, 7) = \'sealed:\' AND substr(NEW.seed_sealed, 1, 7) = \'sealed:\') IS NOT TRUE AND (current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND coalesce(NEW.seed_sealed, \'\') = \'\' AND (true)) IS NOT TRUE) THEN RAISE EXCEPTION \'what was sealed never changes\' USING ERRCODE = \'insufficient_privilege\'; END IF; RETURN NEW;', hash='d0880ed71ea5dd53e0cbc4cb77e79660626c850e', operation='UPDATE', pgid='pgtrigger_read_only_90214', table='operations_paymentevidence', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='proofday',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'what a proof page said never changes' USING ERRCODE = 'insufficient_privilege';", hash='b0d61eaaab776bbfe13ffef09d4c5928c2d3c962', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_601f6', table='operations_proofday', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='proofday',
            trigger=pgtrigger.compiler.Trigger(name='is_of_its_row', sql=core.database.triggers.TriggerSql(condition="WHEN (NEW.body::jsonb ->> 'merchant_id' IS DISTINCT FROM NEW.merchant_id OR NEW.body::jsonb ->> 'day' IS DISTINCT FROM to_char(NEW.day, 'YYYY-MM-DD') OR NEW.body::jsonb #>> '{close,number}' IS DISTINCT FROM NEW.close_id::text)", func="RAISE EXCEPTION 'a proof is of its merchant and its close' USING ERRCODE = 'check_violation';", hash='243c1be7bec5052eb2b2a27c86d3d237f982deaf', operation='INSERT', pgid='pgtrigger_is_of_its_row_3d9d6', table='operations_proofday', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
