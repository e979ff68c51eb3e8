from pathlib import Path

import core.database.columns
import core.database.triggers
import datetime
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('approvals', '0001_initial'),
        ('counts', '0001_initial'),
        ('merchants', '0001_initial'),
        ('transfers', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='PayoutSchedule',
            fields=[
                ('merchant', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='merchants.merchant')),
                ('days', models.CharField(choices=[('every_day', 'Every day'), ('weekdays', 'Monday to Friday')], max_length=9)),
                ('time', models.TimeField()),
                ('float_amount', models.BigIntegerField(verbose_name='float')),
                ('due_at', models.DateTimeField(null=True)),
                ('changed_by', models.CharField(max_length=160)),
                ('changed_at', models.DateTimeField()),
                ('account', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='approvals.payoutaccount')),
            ],
            options={
                'verbose_name': 'payout schedule',
                'verbose_name_plural': 'payout schedules',
                'default_permissions': ('view', 'change'),
            },
        ),
        migrations.CreateModel(
            name='Withdrawal',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('processing', 'Processing'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('canceled', 'Canceled')], default='pending', max_length=10)),
                ('amount', models.BigIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('bank', models.CharField(max_length=20)),
                ('bank_code', models.CharField(max_length=3)),
                ('account_sealed', models.TextField(editable=False)),
                ('account_last4', models.CharField(max_length=4)),
                ('account_name', models.CharField(max_length=140)),
                ('account_digest', models.CharField(blank=True, db_default='', default='', editable=False, max_length=64)),
                ('reference', models.CharField(max_length=35, null=True)),
                ('metadata', core.database.columns.RawJson(null=True)),
                ('payout_night', models.DateField(null=True)),
                ('failure_code', models.CharField(max_length=40, null=True)),
                ('bank_reference', models.CharField(max_length=64, null=True)),
                ('awaiting_approval', models.BooleanField(default=False)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('completed_at', models.DateTimeField(null=True)),
                ('merchant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
            ],
            options={
                'permissions': [('cancel_withdrawal', 'Can cancel withdrawals')],
            },
        ),
        migrations.CreateModel(
            name='PayoutNight',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('day', models.DateField(verbose_name='night')),
                ('amount', models.BigIntegerField()),
                ('skip_reason', models.CharField(blank=True, choices=[('nothing_available', 'Nothing was above the float'), ('too_small', 'Less than the smallest withdrawal was above the float'), ('negative_balance', 'The merchant had a debt'), ('payout_account_not_allowed', 'The account was not on the list any more'), ('payout_account_too_new', 'The waiting period of the account was not over'), ('merchant_suspended', 'The merchant was suspended'), ('safe_mode', 'All outgoing money was paused'), ('missed', 'Nothing ran at its time or later on its day')], default='', max_length=26)),
                ('created_at', models.DateTimeField()),
                ('merchant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
            ],
            options={
                'verbose_name': 'nightly payout',
                'verbose_name_plural': 'nightly payouts',
                'default_permissions': ('view',),
                'indexes': [models.Index(fields=['day', 'id'], name='payout_night_newest_first')],
                'constraints': [models.UniqueConstraint(fields=('merchant', 'day'), name='payout_night_once'), models.CheckConstraint(condition=models.Q(models.Q(('amount', 0), ('skip_reason__in', ['nothing_available', 'too_small', 'negative_balance', 'payout_account_not_allowed', 'payout_account_too_new', 'merchant_suspended', 'safe_mode', 'missed'])), models.Q(('amount__gt', 0), ('skip_reason', '')), _connector='OR'), name='payout_night_paid_or_skipped')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payoutnight',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'what became of a night never changes' USING ERRCODE = 'insufficient_privilege';", hash='f25bd886c25c5b1142fd93055eeb516ddc003a42', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_903ed', table='withdrawals_payoutnight', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payoutnight',
            trigger=pgtrigger.compiler.Trigger(name='paid_on_its_day', sql=core.database.triggers.TriggerSql(condition="WHEN (NEW.amount > 0 AND NEW.day <> (NEW.created_at AT TIME ZONE 'Asia/Bangkok')::date)", func="RAISE EXCEPTION 'a night is paid on its day in Bangkok, or never' USING ERRCODE = 'check_violation';", hash='e25ac1aa927de78614cca16407439f16a5355cd3', operation='INSERT', pgid='pgtrigger_paid_on_its_day_35c05', table='withdrawals_payoutnight', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='payoutschedule',
            index=models.Index(fields=['due_at'], name='payout_schedule_due'),
        ),
        migrations.AddConstraint(
            model_name='payoutschedule',
            constraint=models.CheckConstraint(condition=models.Q(('days__in', ['every_day', 'weekdays'])), name='payout_schedule_days_known'),
        ),
        migrations.AddConstraint(
            model_name='payoutschedule',
            constraint=models.CheckConstraint(condition=models.Q(('time__lte', datetime.time(23, 30))), name='payout_schedule_in_time'),
        ),
        migrations.AddConstraint(
            model_name='payoutschedule',
            constraint=models.CheckConstraint(condition=models.Q(('float_amount__gte', 0), ('float_amount__lte', 1000000000000)), name='payout_schedule_float'),
        ),
        migrations.AddConstraint(
            model_name='payoutschedule',
            constraint=models.CheckConstraint(condition=models.Q(('changed_by', ''), _negated=True), name='payout_schedule_changed_by_somebody'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payoutschedule',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a payout schedule is switched off, and its row stays' USING ERRCODE = 'insufficient_privilege';", hash='d66f621faca04436d4b0551313031a0c39113d9d', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_532b4', table='withdrawals_payoutschedule', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payoutschedule',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id")) THEN RAISE EXCEPTION \'a payout schedule keeps its merchant\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='87fd24d0172bc05b7d30f061b5189cbf05699435', operation='UPDATE', pgid='pgtrigger_read_only_6a941', table='withdrawals_payoutschedule', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='withdrawal',
            index=models.Index(fields=['merchant', 'created_at', 'id'], name='withdrawal_newest_first'),
        ),
        migrations.AddIndex(
            model_name='withdrawal',
            index=models.Index(fields=['merchant', 'status', 'created_at', 'id'], name='withdrawal_filtered'),
        ),
        migrations.AddIndex(
            model_name='withdrawal',
            index=models.Index(condition=models.Q(('reference__isnull', False)), fields=['reference', 'merchant'], name='withdrawal_by_reference'),
        ),
        migrations.AddIndex(
            model_name='withdrawal',
            index=models.Index(condition=models.Q(('bank_reference__isnull', False)), fields=['bank_reference'], name='withdrawal_by_bank_reference'),
        ),
        migrations.AddIndex(
            model_name='withdrawal',
            index=models.Index(condition=models.Q(('status', 'pending')), fields=['merchant'], name='withdrawal_pending'),
        ),
        migrations.AddIndex(
            model_name='withdrawal',
            index=models.Index(condition=models.Q(('payout_night__isnull', False)), fields=['merchant', 'payout_night'], name='withdrawal_of_night'),
        ),
        migrations.AddConstraint(
            model_name='withdrawal',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'processing', 'succeeded', 'failed', 'canceled'])), name='withdrawal_status_known'),
        ),
        migrations.AddConstraint(
            model_name='withdrawal',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gte', 100), ('amount__lte', 200000000)), name='withdrawal_amount_in_range'),
        ),
        migrations.AddConstraint(
            model_name='withdrawal',
            constraint=models.CheckConstraint(condition=models.Q(('currency', 'THB')), name='withdrawal_currency_is_thb'),
        ),
        migrations.AddConstraint(
            model_name='withdrawal',
            constraint=models.CheckConstraint(condition=models.Q(('account_last4__regex', '^[0-9]{4}$'), ('bank_code__regex', '^[0-9]{3}$'), models.Q(('bank', ''), _negated=True), models.Q(('account_sealed', ''), _negated=True), models.Q(('account_name', ''), _negated=True)), name='withdrawal_goes_to_an_account'),
        ),
        migrations.AddConstraint(
            model_name='withdrawal',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('failure_code__isnull', False), ('status', 'failed')), models.Q(models.Q(('status', 'failed'), _negated=True), ('failure_code__isnull', True)), _connector='OR'), name='withdrawal_reason_iff_failed'),
        ),
        migrations.AddConstraint(
            model_name='withdrawal',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('completed_at__isnull', False), ('status', 'succeeded')), models.Q(('completed_at__isnull', False), ('failure_code', 'returned_by_bank'), ('status', 'failed')), models.Q(('completed_at__isnull', True), ('status', 'failed'), models.Q(('failure_code', 'returned_by_bank'), _negated=True)), models.Q(('completed_at__isnull', True), ('status__in', ['pending', 'processing', 'canceled'])), _connector='OR'), name='withdrawal_completed_iff_arrived'),
        ),
        migrations.AddConstraint(
            model_name='withdrawal',
            constraint=models.CheckConstraint(condition=models.Q(('awaiting_approval', False), ('status', 'pending'), _connector='OR'), name='withdrawal_awaits_approval_while_pending'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='withdrawal',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a withdrawal is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='793343e847753493a2d02c99aff124301a010edd', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_1580f', table='withdrawals_withdrawal', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='withdrawal',
            trigger=pgtrigger.compiler.Trigger(name='status_initial', sql=core.database.triggers.TriggerSql(condition="WHEN (NEW.status NOT IN ('pending'))", func="RAISE EXCEPTION 'a withdrawal cannot begin like that' USING ERRCODE = 'check_violation';", hash='5d154d621af4bd081a4dec44e3cb69ff95b7b9ba', operation='INSERT', pgid='pgtrigger_status_initial_fd9a1', table='withdrawals_withdrawal', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='withdrawal',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id" OR OLD."amount" IS DISTINCT FROM NEW."amount" OR OLD."currency" IS DISTINCT FROM NEW."currency" OR OLD."bank" IS DISTINCT FROM NEW."bank" OR OLD."bank_code" IS DISTINCT FROM NEW."bank_code" OR OLD."account_last4" IS DISTINCT FROM NEW."account_last4" OR OLD."account_name" IS DISTINCT FROM NEW."account_name" OR OLD."account_digest" IS DISTINCT FROM NEW."account_digest" OR OLD."reference" IS DISTINCT FROM NEW."reference" OR OLD."metadata"::pg_catalog.text IS DISTINCT FROM NEW."metadata"::pg_catalog.text OR OLD."payout_night" IS DISTINCT FROM NEW."payout_night" OR OLD."created_at" IS DISTINCT FROM NEW."created_at") OR OLD."account_sealed" IS DISTINCT FROM NEW."account_sealed" AND (current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND substr(OLD.account_sealed, 1, 7) = \'sealed:\' AND substr(NEW.account_sealed, 1, 7) = \'sealed:\') IS NOT TRUE OR current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."status" IS DISTINCT FROM NEW."status" OR OLD."failure_code" IS DISTINCT FROM NEW."failure_code" OR OLD."bank_reference" IS DISTINCT FROM NEW."bank_reference" OR OLD."awaiting_approval" IS DISTINCT FROM NEW."awaiting_approval" OR OLD."updated_at" IS DISTINCT FROM NEW."updated_at" OR OLD."completed_at" IS DISTINCT FROM NEW."completed_at")) THEN RAISE EXCEPTION \'what was asked for never changes\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='84d326ef09faad8c6f5089a68dd47897be1b2604', operation='UPDATE', pgid='pgtrigger_read_only_dbfdb', table='withdrawals_withdrawal', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='withdrawal',
            trigger=pgtrigger.compiler.Trigger(name='completed_at_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.completed_at IS NOT NULL AND NEW.completed_at IS DISTINCT FROM OLD.completed_at) THEN RAISE EXCEPTION 'a withdrawal keeps when it arrived' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='8bb5bf655ef83423588131ab662adad7944b73c5', operation='UPDATE', pgid='pgtrigger_completed_at_set_once_79e6f', table='withdrawals_withdrawal', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='withdrawal',
            trigger=pgtrigger.compiler.Trigger(name='approved_once', sql=core.database.triggers.TriggerSql(func="IF (NEW.awaiting_approval AND NOT OLD.awaiting_approval) THEN RAISE EXCEPTION 'a withdrawal that is approved does not wait again' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='3f4072fb002d696296c38581c68a062f801f6903', operation='UPDATE', pgid='pgtrigger_approved_once_bc60c', table='withdrawals_withdrawal', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='withdrawal',
            trigger=pgtrigger.compiler.Trigger(name='status_final', sql=core.database.triggers.TriggerSql(func="IF (OLD.status NOT IN ('pending', 'processing') AND NEW.status = OLD.status AND (NEW.bank_reference, NEW.failure_code) IS DISTINCT FROM (OLD.bank_reference, OLD.failure_code)) THEN RAISE EXCEPTION 'a withdrawal keeps how it ended' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='5ccb56448f2a96e07d0f3724f0032d7d5aae80a2', operation='UPDATE', pgid='pgtrigger_status_final_6c96f', table='withdrawals_withdrawal', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='withdrawal',
            trigger=pgtrigger.compiler.Trigger(name='transitions', sql=core.database.triggers.TriggerSql(func="IF (OLD.status <> NEW.status AND (OLD.status, NEW.status) NOT IN (('pending', 'canceled'), ('pending', 'failed'), ('pending', 'processing'), ('processing', 'failed'), ('processing', 'succeeded'), ('succeeded', 'failed'))) THEN RAISE EXCEPTION 'withdrawal cannot change from % to %', OLD.status, NEW.status USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='6449a0e2e1d87ed1efe2fe6fefcb28f5be8bc4d8', operation='UPDATE', pgid='pgtrigger_transitions_0489c', table='withdrawals_withdrawal', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
