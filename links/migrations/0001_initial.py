from pathlib import Path

import core.database.columns
import core.database.triggers
import datetime
import django.db.models.deletion
import django.db.models.expressions
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('counts', '0001_initial'),
        ('merchants', '0001_initial'),
        ('payments', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='PaymentLink',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('status', models.CharField(choices=[('active', 'Active'), ('deactivated', 'Deactivated')], default='active', max_length=11)),
                ('amount', models.BigIntegerField(null=True)),
                ('amount_min', models.BigIntegerField(null=True, verbose_name='smallest amount')),
                ('amount_max', models.BigIntegerField(null=True, verbose_name='largest amount')),
                ('description', models.CharField(max_length=255, null=True)),
                ('reference', models.CharField(max_length=35, null=True)),
                ('metadata', core.database.columns.RawJson(null=True)),
                ('max_payments', models.IntegerField(null=True, verbose_name='largest number of payments')),
                ('expiry_minutes', models.IntegerField(verbose_name='minutes of each code')),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('payments', models.IntegerField(default=0)),
                ('deactivated_at', models.DateTimeField(null=True)),
                ('deactivated_by', models.CharField(blank=True, default='', max_length=160)),
                ('merchant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
            ],
            options={
                'permissions': [('deactivate_paymentlink', 'Can deactivate payment links')],
            },
        ),
        migrations.CreateModel(
            name='LinkCode',
            fields=[
                ('payment', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='link_code', serialize=False, to='payments.payment')),
                ('visitor', models.CharField(max_length=22)),
                ('number', models.IntegerField()),
                ('link', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='codes', to='links.paymentlink')),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.AddIndex(
            model_name='paymentlink',
            index=models.Index(fields=['merchant', 'created_at', 'id'], name='paymentlink_newest_first'),
        ),
        migrations.AddIndex(
            model_name='paymentlink',
            index=models.Index(condition=models.Q(('reference__isnull', False)), fields=['reference', 'merchant', 'created_at', 'id'], name='paymentlink_by_reference'),
        ),
        migrations.AddConstraint(
            model_name='paymentlink',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['active', 'deactivated'])), name='paymentlink_status_known'),
        ),
        migrations.AddConstraint(
            model_name='paymentlink',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('amount_max__isnull', True), ('amount_min__isnull', True), ('amount__gte', 100), ('amount__isnull', False), ('amount__lte', 200000000)), models.Q(('amount__isnull', True), ('amount_min__lte', models.F('amount_max')), ('amount_min__gte', 100), ('amount_min__isnull', False), ('amount_min__lte', 200000000), ('amount_max__gte', 100), ('amount_max__isnull', False), ('amount_max__lte', 200000000)), _connector='OR'), name='paymentlink_amount_or_limits'),
        ),
        migrations.AddConstraint(
            model_name='paymentlink',
            constraint=models.CheckConstraint(condition=models.Q(('max_payments__isnull', True), models.Q(('max_payments__gte', 1), ('max_payments__lte', 10000)), _connector='OR'), name='paymentlink_max_payments_in_range'),
        ),
        migrations.AddConstraint(
            model_name='paymentlink',
            constraint=models.CheckConstraint(condition=models.Q(('expiry_minutes__gte', 1), ('expiry_minutes__lte', 1440)), name='paymentlink_expiry_minutes_in_range'),
        ),
        migrations.AddConstraint(
            model_name='paymentlink',
            constraint=models.CheckConstraint(condition=models.Q(('expires_at__gte', models.F('created_at')), ('expires_at__lte', django.db.models.expressions.CombinedExpression(models.F('created_at'), '+', models.Value(datetime.timedelta(days=366))))), name='paymentlink_lives_a_year_at_most'),
        ),
        migrations.AddConstraint(
            model_name='paymentlink',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('deactivated_at__isnull', True), ('deactivated_by', ''), ('status', 'active')), models.Q(('deactivated_at__isnull', False), ('status', 'deactivated')), _connector='OR'), name='paymentlink_deactivated_at_iff_deactivated'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='paymentlink',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a payment link is deactivated, never deleted' USING ERRCODE = 'insufficient_privilege';", hash='cb14c22ee14514dc7fbf7028d939082cefba39c9', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_13d18', table='links_paymentlink', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='paymentlink',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id" OR OLD."amount" IS DISTINCT FROM NEW."amount" OR OLD."amount_min" IS DISTINCT FROM NEW."amount_min" OR OLD."amount_max" IS DISTINCT FROM NEW."amount_max" OR OLD."description" IS DISTINCT FROM NEW."description" OR OLD."reference" IS DISTINCT FROM NEW."reference" OR OLD."metadata"::pg_catalog.text IS DISTINCT FROM NEW."metadata"::pg_catalog.text OR OLD."max_payments" IS DISTINCT FROM NEW."max_payments" OR OLD."expiry_minutes" IS DISTINCT FROM NEW."expiry_minutes" OR OLD."created_at" IS DISTINCT FROM NEW."created_at")) THEN RAISE EXCEPTION \'a payment link never changes\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='41e84d2d6424ecd79f32b1eee7dcede992eec226', operation='UPDATE', pgid='pgtrigger_read_only_a6f0a', table='links_paymentlink', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='paymentlink',
            trigger=pgtrigger.compiler.Trigger(name='payments_counted', sql=core.database.triggers.TriggerSql(func="IF (NEW.payments <> OLD.payments AND (pg_trigger_depth() < 2 OR current_user <> (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = TG_RELID))) THEN RAISE EXCEPTION 'only a payment that succeeds is counted' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='938d9debde05b48b47f3b1426e7704f2bbb3f4e0', operation='UPDATE', pgid='pgtrigger_payments_counted_5cafd', table='links_paymentlink', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='paymentlink',
            trigger=pgtrigger.compiler.Trigger(name='payments_initial', sql=core.database.triggers.TriggerSql(condition="WHEN (NEW.payments NOT IN ('0'))", func="RAISE EXCEPTION 'a payment link cannot begin like that' USING ERRCODE = 'check_violation';", hash='1e584518769628b705ac6d474fedee175e7f8e23', operation='INSERT', pgid='pgtrigger_payments_initial_afd2c', table='links_paymentlink', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='paymentlink',
            trigger=pgtrigger.compiler.Trigger(name='expires_no_later', sql=core.database.triggers.TriggerSql(func="IF (NEW.expires_at > OLD.expires_at) THEN RAISE EXCEPTION 'a payment link never expires later than it was to' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='749dfd79e4baab128b5fa66d05ed83cd21608886', operation='UPDATE', pgid='pgtrigger_expires_no_later_dd634', table='links_paymentlink', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='paymentlink',
            trigger=pgtrigger.compiler.Trigger(name='status_initial', sql=core.database.triggers.TriggerSql(condition="WHEN (NEW.status NOT IN ('active'))", func="RAISE EXCEPTION 'a payment link cannot begin like that' USING ERRCODE = 'check_violation';", hash='bd575fc317eb3e96187d2aa519cf00343194a83d', operation='INSERT', pgid='pgtrigger_status_initial_3d7d1', table='links_paymentlink', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='paymentlink',
            trigger=pgtrigger.compiler.Trigger(name='transitions', sql=core.database.triggers.TriggerSql(func="IF (OLD.status <> NEW.status AND (OLD.status, NEW.status) NOT IN (('active', 'deactivated'))) THEN RAISE EXCEPTION 'payment link cannot change from % to %', OLD.status, NEW.status USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='9c0814c45f9e2c62a218f41717553b1430e4d1b9', operation='UPDATE', pgid='pgtrigger_transitions_be435', table='links_paymentlink', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='paymentlink',
            trigger=pgtrigger.compiler.Trigger(name='status_final', sql=core.database.triggers.TriggerSql(func="IF (OLD.status NOT IN ('active') AND NEW.status = OLD.status AND (NEW.deactivated_at, NEW.deactivated_by) IS DISTINCT FROM (OLD.deactivated_at, OLD.deactivated_by)) THEN RAISE EXCEPTION 'a payment link keeps who deactivated it' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='7925d8edfa58abbdee191bc8d0aeba109fb57ab4', operation='UPDATE', pgid='pgtrigger_status_final_0c2c0', table='links_paymentlink', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='linkcode',
            constraint=models.UniqueConstraint(fields=('link', 'visitor', 'number'), name='linkcode_once'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='linkcode',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'who made a code of a link never changes' USING ERRCODE = 'insufficient_privilege';", hash='4c7ed78d409c31cd47aa5270ac070ec54ef96e7f', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_6644b', table='links_linkcode', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
