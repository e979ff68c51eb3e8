from pathlib import Path

import core.database.columns
import core.database.triggers
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='CountDelta',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('list', models.CharField(max_length=12)),
                ('owner_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('kind', models.CharField(max_length=40)),
                ('period', models.DateTimeField()),
                ('delta', models.BigIntegerField()),
                ('amount', models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='ListCount',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('list', models.CharField(max_length=12)),
                ('owner_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('kind', models.CharField(max_length=40)),
                ('bucket', models.CharField(choices=[('month', 'Month'), ('day', 'Day'), ('hour', 'Hour'), ('minute', 'Minute')], max_length=6)),
                ('starts_at', models.DateTimeField()),
                ('count', models.BigIntegerField()),
                ('amount', models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='OpenPeriod',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('period', models.DateTimeField()),
                ('owner_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='CountClock',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('closed', models.DateTimeField()),
                ('announced', models.DateTimeField()),
                ('marked_by', models.BigIntegerField(null=True)),
                ('target', models.DateTimeField(null=True)),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='countclock_is_one')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='countclock',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'there is one clock of the counts' USING ERRCODE = 'insufficient_privilege';", hash='94ec5fe3404a76a371597272bb758bb5502f0a5a', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_83a08', table='counts_countclock', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='countdelta',
            index=models.Index(fields=['owner_id', 'list'], name='countdelta_of_list'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='countdelta',
            trigger=pgtrigger.compiler.Trigger(name='written_by_triggers', sql=core.database.triggers.TriggerSql(func="IF pg_trigger_depth() < 2 OR current_user <> (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = TG_RELID) THEN RAISE EXCEPTION 'only triggers change the counts' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NULL;", hash='5b870631c50737683d4c5237b25a0a4f3286d60f', level='STATEMENT', operation='INSERT OR UPDATE OR TRUNCATE', pgid='pgtrigger_written_by_triggers_af195', table='counts_countdelta', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='listcount',
            index=models.Index(condition=models.Q(('bucket__in', ['day', 'hour']), ('list__in', ['payments', 'transactions'])), fields=['list', 'bucket', 'starts_at'], name='listcount_of_all_owners'),
        ),
        migrations.AddConstraint(
            model_name='listcount',
            constraint=models.UniqueConstraint(fields=('owner_id', 'list', 'bucket', 'starts_at', 'kind'), name='listcount_once'),
        ),
        migrations.AddConstraint(
            model_name='listcount',
            constraint=models.CheckConstraint(condition=models.Q(('bucket__in', ['month', 'day', 'hour', 'minute'])), name='listcount_bucket_known'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='listcount',
            trigger=pgtrigger.compiler.Trigger(name='written_by_triggers', sql=core.database.triggers.TriggerSql(func="IF pg_trigger_depth() < 2 OR current_user <> (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = TG_RELID) THEN RAISE EXCEPTION 'only triggers change the counts' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NULL;", hash='a01414bedc3a76f08192bc0b9a90fc5b466c6d48', level='STATEMENT', operation='INSERT OR UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_written_by_triggers_0e392', table='counts_listcount', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='openperiod',
            index=models.Index(fields=['period', 'owner_id'], name='openperiod_of_owner'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='openperiod',
            trigger=pgtrigger.compiler.Trigger(name='written_by_triggers', sql=core.database.triggers.TriggerSql(func="IF pg_trigger_depth() < 2 OR current_user <> (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = TG_RELID) THEN RAISE EXCEPTION 'only triggers change the counts' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NULL;", hash='84944aa0ec9f540254e4debdf35dc4db8c3e9a42', level='STATEMENT', operation='INSERT OR UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_written_by_triggers_d8001', table='counts_openperiod', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
