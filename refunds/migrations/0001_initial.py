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
        ('counts', '0001_initial'),
        ('merchants', '0001_initial'),
        ('payments', '0001_initial'),
        ('transactions', '0001_initial'),
        ('transfers', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Refund',
            fields=[
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('amount', models.BigIntegerField()),
                ('from_unsettled', models.BigIntegerField(db_default=0, default=0)),
                ('currency', models.CharField(max_length=3)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('completed', 'Completed'), ('failed', 'Failed'), ('canceled', 'Canceled')], default='pending', max_length=9)),
                ('route', models.CharField(blank=True, default='', max_length=30)),
                ('account_digest', models.CharField(blank=True, db_default='', default='', editable=False, max_length=64)),
                ('awaiting_approval', models.BooleanField(default=False)),
                ('reason', models.CharField(choices=[('requested_by_customer', 'Requested By Customer'), ('duplicate', 'Duplicate'), ('fraudulent', 'Fraudulent'), ('late_payment', 'Late Payment'), ('other', 'Other')], max_length=21, null=True)),
                ('note', models.CharField(max_length=255, null=True)),
                ('metadata', core.database.columns.RawJson(null=True)),
                ('failure_code', models.CharField(max_length=40, null=True)),
                ('cancel_actor', models.CharField(blank=True, default='', max_length=160)),
                ('cancel_request_id', models.CharField(blank=True, default='', max_length=64)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('completed_at', models.DateTimeField(null=True)),
                ('returned_at', models.DateTimeField(null=True)),
                ('merchant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
                ('payment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='refunds', to='payments.payment')),
                ('transaction', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='transactions.transaction')),
            ],
            options={
                'permissions': [('create_refund', 'Can refund payments'), ('cancel_refund', 'Can cancel refunds')],
            },
        ),
        migrations.CreateModel(
            name='ClaimLink',
            fields=[
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('token_digest', models.CharField(max_length=64, unique=True)),
                ('token_sealed', models.TextField(editable=False)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(null=True)),
                ('revoked_at', models.DateTimeField(null=True)),
                ('refund', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='claim_links', to='refunds.refund')),
            ],
            options={
                'permissions': [('revoke_claimlink', 'Can revoke claim links')],
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='RefundReversal',
            fields=[
                ('reversal_id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('amount', models.BigIntegerField()),
                ('refunded_amount', models.BigIntegerField(default=0)),
                ('route', models.CharField(max_length=30)),
                ('created_at', models.DateTimeField()),
                ('payment', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='reversal', to='payments.payment')),
            ],
        ),
        migrations.AddField(
            model_name='refund',
            name='reversal',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='refunds', to='refunds.refundreversal'),
        ),
        migrations.CreateModel(
            name='ClaimTry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.SmallIntegerField()),
                ('network', models.CharField(blank=True, max_length=43)),
                ('is_proven', models.BooleanField()),
                ('tried_at', models.DateTimeField()),
                ('link', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='tries', to='refunds.claimlink')),
            ],
            options={
                'verbose_name_plural': 'claim tries',
                'default_permissions': (),
                'indexes': [models.Index(fields=['network', 'tried_at'], name='claimtry_of_network')],
                'constraints': [models.UniqueConstraint(fields=('link', 'number'), name='claimtry_number_unique'), models.CheckConstraint(condition=models.Q(('number__gte', 1), ('number__lte', 5)), name='claimtry_number_limited')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='claimtry',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a try of a claim is never changed' USING ERRCODE = 'insufficient_privilege';", hash='54c8c1aa4d5c5c9c38d7cc8687c355142ae67a6f', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_6c322', table='refunds_claimtry', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='claimlink',
            constraint=models.UniqueConstraint(condition=models.Q(('revoked_at__isnull', True)), fields=('refund',), name='claimlink_one_of_refund'),
        ),
        migrations.AddConstraint(
            model_name='claimlink',
            constraint=models.CheckConstraint(condition=models.Q(('expires_at__gt', models.F('created_at'))), name='claimlink_expires_after_creation'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='claimlink',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a claim link is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='d4c805931ca5d85a2c587f8d34cd62bec73b7f1e', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_76ee0', table='refunds_claimlink', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='claimlink',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."actor" IS DISTINCT FROM NEW."actor" OR OLD."request_id" IS DISTINCT FROM NEW."request_id" OR OLD."id" IS DISTINCT FROM NEW."id" OR OLD."refund_id" IS DISTINCT FROM NEW."refund_id" OR OLD."token_digest" IS DISTINCT FROM NEW."token_digest" OR OLD."created_at" IS DISTINCT FROM NEW."created_at" OR OLD."expires_at" IS DISTINCT FROM NEW."expires_at") OR OLD."token_sealed" IS DISTINCT FROM NEW."token_sealed" AND (current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND substr(OLD.token_sealed, 1, 7) = \'sealed:\' AND substr(NEW.token_sealed, 1, 7) = \'sealed:\') IS NOT TRUE OR current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."used_at" IS DISTINCT FROM NEW."used_at" OR OLD."revoked_at" IS DISTINCT FROM NEW."revoked_at")) THEN RAISE EXCEPTION \'a claim link is replaced, never changed\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='8c7ac9376bcdd9eb1e9fff553b073439425aa64e', operation='UPDATE', pgid='pgtrigger_read_only_af31b', table='refunds_claimlink', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='claimlink',
            trigger=pgtrigger.compiler.Trigger(name='used_at_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.used_at IS NOT NULL AND NEW.used_at IS DISTINCT FROM OLD.used_at) THEN RAISE EXCEPTION 'a claim link is used once' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='da85c998d13eab3956b0dbb6b9abe8f197f5afb9', operation='UPDATE', pgid='pgtrigger_used_at_set_once_2d62c', table='refunds_claimlink', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='claimlink',
            trigger=pgtrigger.compiler.Trigger(name='revoked_at_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at) THEN RAISE EXCEPTION 'a revoked claim link stays revoked' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='aafeff385802db1405269be4280e01ac2457e36e', operation='UPDATE', pgid='pgtrigger_revoked_at_set_once_17b0f', table='refunds_claimlink', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='claimlink',
            trigger=pgtrigger.compiler.Trigger(name='revoked_is_not_used', sql=core.database.triggers.TriggerSql(func="IF (NEW.used_at IS NOT NULL AND OLD.used_at IS NULL AND OLD.revoked_at IS NOT NULL) THEN RAISE EXCEPTION 'a revoked claim link is not used' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='247e010ba88426867c939ac27d5ac8cf08635442', operation='UPDATE', pgid='pgtrigger_revoked_is_not_used_96d42', table='refunds_claimlink', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='refundreversal',
            constraint=models.CheckConstraint(condition=models.Q(('refunded_amount__gte', 0), ('refunded_amount__lte', models.F('amount'))), name='refundreversal_refunded_within_amount'),
        ),
        migrations.AddConstraint(
            model_name='refundreversal',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gte', 1)), name='refundreversal_amount_positive'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='refundreversal',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a refund reversal is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='762dc715541343c463257d50a9b1054c6ad03840', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_f6efb', table='refunds_refundreversal', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='refundreversal',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."reversal_id" IS DISTINCT FROM NEW."reversal_id" OR OLD."payment_id" IS DISTINCT FROM NEW."payment_id" OR OLD."amount" IS DISTINCT FROM NEW."amount" OR OLD."route" IS DISTINCT FROM NEW."route" OR OLD."created_at" IS DISTINCT FROM NEW."created_at")) THEN RAISE EXCEPTION \'a refund reversal never changes\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='feb6bf5ab5a06be9ce55baf48f2c60f02b9d192e', operation='UPDATE', pgid='pgtrigger_read_only_da311', table='refunds_refundreversal', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='refundreversal',
            trigger=pgtrigger.compiler.Trigger(name='refunded_amount_grows', sql=core.database.triggers.TriggerSql(func="IF (NEW.refunded_amount < OLD.refunded_amount) THEN RAISE EXCEPTION 'the refunded amount of a reversal only grows' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='b18ec2d111c7f09d5c598e9debbfc7a6b70930d6', operation='UPDATE', pgid='pgtrigger_refunded_amount_grows_bc551', table='refunds_refundreversal', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='refund',
            index=models.Index(fields=['merchant', 'created_at', 'id'], name='refund_newest_first'),
        ),
        migrations.AddIndex(
            model_name='refund',
            index=models.Index(fields=['merchant', 'status', 'created_at', 'id'], name='refund_filtered'),
        ),
        migrations.AddIndex(
            model_name='refund',
            index=models.Index(condition=models.Q(('returned_at__isnull', False)), fields=['returned_at'], name='refund_returned'),
        ),
        migrations.AddConstraint(
            model_name='refund',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'completed', 'failed', 'canceled'])), name='refund_status_known'),
        ),
        migrations.AddConstraint(
            model_name='refund',
            constraint=models.CheckConstraint(condition=models.Q(('reason__isnull', True), ('reason__in', ['requested_by_customer', 'duplicate', 'fraudulent', 'late_payment', 'other']), _connector='OR'), name='refund_reason_known'),
        ),
        migrations.AddConstraint(
            model_name='refund',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gte', 1)), name='refund_amount_positive'),
        ),
        migrations.AddConstraint(
            model_name='refund',
            constraint=models.CheckConstraint(condition=models.Q(('from_unsettled__gte', 0), ('from_unsettled__lte', models.F('amount'))), name='refund_from_unsettled_within_amount'),
        ),
        migrations.AddConstraint(
            model_name='refund',
            constraint=models.CheckConstraint(condition=models.Q(('currency', 'THB')), name='refund_currency_is_thb'),
        ),
        migrations.AddConstraint(
            model_name='refund',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('completed_at__isnull', False), ('status', 'completed')), models.Q(models.Q(('status', 'completed'), _negated=True), ('completed_at__isnull', True), ('returned_at__isnull', True)), _connector='OR'), name='refund_completed_has_time'),
        ),
        migrations.AddConstraint(
            model_name='refund',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('failure_code__isnull', False), ('status', 'failed')), models.Q(models.Q(('status', 'failed'), _negated=True), ('failure_code__isnull', True)), _connector='OR'), name='refund_failed_has_reason'),
        ),
        migrations.AddConstraint(
            model_name='refund',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status__in', ['completed', 'failed']), _negated=True), models.Q(('route', ''), _negated=True), _connector='OR'), name='refund_ends_by_a_route'),
        ),
        migrations.AddConstraint(
            model_name='refund',
            constraint=models.CheckConstraint(condition=models.Q(('awaiting_approval', False), models.Q(('status', 'pending'), models.Q(('route', ''), _negated=True)), _connector='OR'), name='refund_awaits_approval_with_a_route'),
        ),
        migrations.AddConstraint(
            model_name='refund',
            constraint=models.CheckConstraint(condition=models.Q(('reversal__isnull', True), models.Q(('returned_at__isnull', True), ('status', 'completed')), _connector='OR'), name='refund_by_reversal_is_completed'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='refund',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a refund is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='4b939e3e61528e04d613d38a4732fe0f3bdc953c', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_a7d08', table='refunds_refund', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='refund',
            trigger=pgtrigger.compiler.Trigger(name='status_initial', sql=core.database.triggers.TriggerSql(condition="WHEN (NEW.status <> (CASE WHEN NEW.reversal_id IS NULL THEN 'pending' ELSE 'completed' END))", func="RAISE EXCEPTION 'a refund cannot begin like that' USING ERRCODE = 'check_violation';", hash='6707e257f3055d8db49858d59ce3d29917257c99', operation='INSERT', pgid='pgtrigger_status_initial_e480f', table='refunds_refund', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='refund',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."actor" IS DISTINCT FROM NEW."actor" OR OLD."request_id" IS DISTINCT FROM NEW."request_id" OR OLD."id" IS DISTINCT FROM NEW."id" OR OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id" OR OLD."payment_id" IS DISTINCT FROM NEW."payment_id" OR OLD."transaction_id" IS DISTINCT FROM NEW."transaction_id" OR OLD."amount" IS DISTINCT FROM NEW."amount" OR OLD."from_unsettled" IS DISTINCT FROM NEW."from_unsettled" OR OLD."currency" IS DISTINCT FROM NEW."currency" OR OLD."reason" IS DISTINCT FROM NEW."reason" OR OLD."metadata"::pg_catalog.text IS DISTINCT FROM NEW."metadata"::pg_catalog.text OR OLD."created_at" IS DISTINCT FROM NEW."created_at" OR OLD."reversal_id" IS DISTINCT FROM NEW."reversal_id") OR OLD."note" IS DISTINCT FROM NEW."note" AND (current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND coalesce(NEW.note, \'\') = \'\' AND (OLD.status <> \'pending\')) IS NOT TRUE OR current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."status" IS DISTINCT FROM NEW."status" OR OLD."route" IS DISTINCT FROM NEW."route" OR OLD."account_digest" IS DISTINCT FROM NEW."account_digest" OR OLD."awaiting_approval" IS DISTINCT FROM NEW."awaiting_approval" OR OLD."failure_code" IS DISTINCT FROM NEW."failure_code" OR OLD."cancel_actor" IS DISTINCT FROM NEW."cancel_actor" OR OLD."cancel_request_id" IS DISTINCT FROM NEW."cancel_request_id" OR OLD."updated_at" IS DISTINCT FROM NEW."updated_at" OR OLD."completed_at" IS DISTINCT FROM NEW."completed_at" OR OLD."returned_at" IS DISTINCT FROM NEW."returned_at")) THEN RAISE EXCEPTION \'what was asked for never changes\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='79f76c378e5c61c38254ae861c10e712b936777e', operation='UPDATE', pgid='pgtrigger_read_only_df79f', table='refunds_refund', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='refund',
            trigger=pgtrigger.compiler.Trigger(name='route_set_once', sql=core.database.triggers.TriggerSql(func="IF ((NEW.route, NEW.account_digest) <> (OLD.route, OLD.account_digest) AND (OLD.route <> '' OR OLD.status <> 'pending')) THEN RAISE EXCEPTION 'a refund keeps its route and its destination' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='a8768a66b189e5f26047d7d4716e0ae0e201c4ad', operation='UPDATE', pgid='pgtrigger_route_set_once_61803', table='refunds_refund', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='refund',
            trigger=pgtrigger.compiler.Trigger(name='approved_once', sql=core.database.triggers.TriggerSql(func="IF (NEW.awaiting_approval AND NOT OLD.awaiting_approval AND OLD.route <> '') THEN RAISE EXCEPTION 'a refund that is approved does not wait again' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='deb9fe6f744b59a08b1619da63657b998e514e30', operation='UPDATE', pgid='pgtrigger_approved_once_35d3c', table='refunds_refund', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='refund',
            trigger=pgtrigger.compiler.Trigger(name='transitions', sql=core.database.triggers.TriggerSql(func="IF (OLD.status <> NEW.status AND (OLD.status, NEW.status) NOT IN (('pending', 'canceled'), ('pending', 'completed'), ('pending', 'failed'))) THEN RAISE EXCEPTION 'refund cannot change from % to %', OLD.status, NEW.status USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='8f23a90db6d8d20e0415f1ce5d825913296098e4', operation='UPDATE', pgid='pgtrigger_transitions_aa007', table='refunds_refund', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='refund',
            trigger=pgtrigger.compiler.Trigger(name='status_final', sql=core.database.triggers.TriggerSql(func="IF (OLD.status NOT IN ('pending') AND NEW.status = OLD.status AND (NEW.completed_at, NEW.failure_code, NEW.cancel_actor, NEW.cancel_request_id) IS DISTINCT FROM (OLD.completed_at, OLD.failure_code, OLD.cancel_actor, OLD.cancel_request_id)) THEN RAISE EXCEPTION 'a refund keeps how it ended' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='004159116acb91cbf97264b344cdff4c3e62360c', operation='UPDATE', pgid='pgtrigger_status_final_4929b', table='refunds_refund', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='refund',
            trigger=pgtrigger.compiler.Trigger(name='returned_at_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.returned_at IS NOT NULL AND NEW.returned_at IS DISTINCT FROM OLD.returned_at) THEN RAISE EXCEPTION 'a refund keeps when its money came back' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='46952098b15245035df3e98af34c14b58b99f4e6', operation='UPDATE', pgid='pgtrigger_returned_at_set_once_564bc', table='refunds_refund', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
