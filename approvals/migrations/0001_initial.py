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
        ('merchants', '0001_initial'),
        ('transfers', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='PayoutPolicy',
            fields=[
                ('merchant', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='merchants.merchant')),
                ('is_restricted', models.BooleanField()),
                ('changed_by', models.CharField(max_length=160)),
                ('changed_at', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'payout policy',
                'verbose_name_plural': 'payout policies',
            },
        ),
        migrations.CreateModel(
            name='Approval',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('withdrawal', 'Withdrawal'), ('refund', 'Refund'), ('return', 'Return'), ('return_by_hand', 'Return sent by hand'), ('write_off', 'Write-off'), ('never_arrived', 'Order that never arrived')], max_length=14)),
                ('subject_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('amount', models.BigIntegerField()),
                ('bank_code', models.CharField(blank=True, default='', max_length=3)),
                ('account_last4', models.CharField(blank=True, default='', max_length=4)),
                ('account_name', models.CharField(blank=True, default='', max_length=140)),
                ('account_digest', models.CharField(blank=True, db_default='', default='', editable=False, max_length=64)),
                ('status', models.CharField(choices=[('within_limits', 'Within Limits'), ('waiting', 'Waiting'), ('approved', 'Approved'), ('rejected', 'Rejected'), ('canceled', 'Canceled')], max_length=13)),
                ('reason', models.CharField(blank=True, choices=[('', 'within the limits'), ('item_limit', 'above the limit per item'), ('daily_limit', 'above the limit per 24 hours')], max_length=11, verbose_name='reason for approval')),
                ('requested_by', models.CharField(blank=True, max_length=160)),
                ('request_id', models.CharField(blank=True, max_length=64)),
                ('requested_at', models.DateTimeField()),
                ('note', models.CharField(blank=True, default='', max_length=500)),
                ('decided_by', models.CharField(blank=True, default='', max_length=160)),
                ('decided_at', models.DateTimeField(null=True)),
                ('decision_note', models.CharField(blank=True, default='', max_length=500)),
                ('merchant', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
            ],
            options={
                'permissions': [('decide_approval', 'Can approve and reject outgoing money')],
            },
        ),
        migrations.CreateModel(
            name='PayoutAccount',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('bank_code', models.CharField(max_length=3)),
                ('account_sealed', models.TextField(editable=False)),
                ('account_fingerprint', models.CharField(editable=False, max_length=64)),
                ('account_last4', models.CharField(max_length=4)),
                ('account_name', models.CharField(max_length=140)),
                ('account_digest', models.CharField(blank=True, db_default='', default='', editable=False, max_length=64)),
                ('added_by', models.CharField(max_length=160)),
                ('added_at', models.DateTimeField()),
                ('usable_at', models.DateTimeField()),
                ('removed_by', models.CharField(blank=True, default='', max_length=160)),
                ('removed_at', models.DateTimeField(null=True)),
                ('merchant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
            ],
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payoutpolicy',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a payout policy is switched off, and its row stays' USING ERRCODE = 'insufficient_privilege';", hash='0acafa5e043333618d0f59596d92b606f9658d72', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_2fba2', table='approvals_payoutpolicy', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payoutpolicy',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id")) THEN RAISE EXCEPTION \'a payout policy keeps its merchant\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='5e2838258c1eb997ad1487c88538e5dcdcac011e', operation='UPDATE', pgid='pgtrigger_read_only_0d0f9', table='approvals_payoutpolicy', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='approval',
            index=models.Index(fields=['status', 'requested_at', 'id'], name='approval_by_status'),
        ),
        migrations.AddIndex(
            model_name='approval',
            index=models.Index(fields=['requested_at', 'id'], name='approval_newest_first'),
        ),
        migrations.AddIndex(
            model_name='approval',
            index=models.Index(fields=['subject_id'], name='approval_of_subject'),
        ),
        migrations.AddIndex(
            model_name='approval',
            index=models.Index(condition=models.Q(('status__in', ('within_limits', 'waiting', 'approved'))), fields=['merchant', 'requested_at'], include=('amount',), name='approval_counted'),
        ),
        migrations.AddConstraint(
            model_name='approval',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['withdrawal', 'refund', 'return', 'return_by_hand', 'write_off', 'never_arrived'])), name='approval_kind_known'),
        ),
        migrations.AddConstraint(
            model_name='approval',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['within_limits', 'waiting', 'approved', 'rejected', 'canceled'])), name='approval_status_known'),
        ),
        migrations.AddConstraint(
            model_name='approval',
            constraint=models.CheckConstraint(condition=models.Q(('reason__in', ['', 'item_limit', 'daily_limit'])), name='approval_reason_known'),
        ),
        migrations.AddConstraint(
            model_name='approval',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gte', 1)), name='approval_amount_positive'),
        ),
        migrations.AddConstraint(
            model_name='approval',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('reason', ''), ('status', 'within_limits')), models.Q(models.Q(('status', 'within_limits'), _negated=True), models.Q(('reason', ''), _negated=True)), _connector='OR'), name='approval_has_reason_iff_needed'),
        ),
        migrations.AddConstraint(
            model_name='approval',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('decided_at__isnull', True), ('decided_by', ''), ('status__in', ['within_limits', 'waiting'])), models.Q(('decided_at__isnull', False), ('status', 'canceled')), models.Q(('decided_at__isnull', False), ('status__in', ('approved', 'rejected')), models.Q(('decided_by', ''), _negated=True)), _connector='OR'), name='approval_decided_by_somebody'),
        ),
        migrations.AddConstraint(
            model_name='approval',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status__in', ('approved', 'rejected')), _negated=True), models.Q(('decided_by', models.F('requested_by')), _negated=True), _connector='OR'), name='approval_decided_by_another'),
        ),
        migrations.AddConstraint(
            model_name='approval',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'rejected'), _negated=True), models.Q(('decision_note', ''), _negated=True), _connector='OR'), name='approval_rejected_has_note'),
        ),
        migrations.AddConstraint(
            model_name='approval',
            constraint=models.UniqueConstraint(condition=models.Q(('kind__in', ('write_off', 'never_arrived')), _negated=True), fields=('subject_id',), name='approval_once_per_subject'),
        ),
        migrations.AddConstraint(
            model_name='approval',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'waiting')), fields=('subject_id', 'kind'), name='approval_waits_once'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='approval',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'an approval is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='af931e3a6b03205862009bd5ad0c10cb6e2f8f44', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_190bb', table='approvals_approval', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='approval',
            trigger=pgtrigger.compiler.Trigger(name='status_initial', sql=core.database.triggers.TriggerSql(condition="WHEN (NEW.status NOT IN ('waiting', 'within_limits'))", func="RAISE EXCEPTION 'an approval cannot begin like that' USING ERRCODE = 'check_violation';", hash='4f7e9bc505a2db9e50de6f294ef0300e401c8059', operation='INSERT', pgid='pgtrigger_status_initial_2edea', table='approvals_approval', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='approval',
            trigger=pgtrigger.compiler.Trigger(name='transitions', sql=core.database.triggers.TriggerSql(func="IF (OLD.status <> NEW.status AND (OLD.status, NEW.status) NOT IN (('waiting', 'approved'), ('waiting', 'canceled'), ('waiting', 'rejected'))) THEN RAISE EXCEPTION 'approval cannot change from % to %', OLD.status, NEW.status USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='5792bcb61fbca81543075cfab2de169cd066b872', operation='UPDATE', pgid='pgtrigger_transitions_1c824', table='approvals_approval', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='approval',
            trigger=pgtrigger.compiler.Trigger(name='decided_once', sql=core.database.triggers.TriggerSql(func="IF ((OLD.status <> 'waiting' OR NEW.status = 'waiting') AND NOT current_setting('qr.erasing', true) IS NOT DISTINCT FROM 'on') THEN RAISE EXCEPTION 'an approval changes once, when it is decided' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='8ea3c811e1b009b17179a3c13bf2854d809f577f', operation='UPDATE', pgid='pgtrigger_decided_once_22270', table='approvals_approval', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='approval',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."kind" IS DISTINCT FROM NEW."kind" OR OLD."subject_id" IS DISTINCT FROM NEW."subject_id" OR OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id" OR OLD."amount" IS DISTINCT FROM NEW."amount" OR OLD."bank_code" IS DISTINCT FROM NEW."bank_code" OR OLD."account_digest" IS DISTINCT FROM NEW."account_digest" OR OLD."reason" IS DISTINCT FROM NEW."reason" OR OLD."requested_by" IS DISTINCT FROM NEW."requested_by" OR OLD."request_id" IS DISTINCT FROM NEW."request_id" OR OLD."requested_at" IS DISTINCT FROM NEW."requested_at") OR OLD."account_last4" IS DISTINCT FROM NEW."account_last4" AND (current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND coalesce(NEW.account_last4, \'\') = \'\' AND (OLD.status <> \'waiting\')) IS NOT TRUE OR OLD."account_name" IS DISTINCT FROM NEW."account_name" AND (current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND coalesce(NEW.account_name, \'\') = \'\' AND (OLD.status <> \'waiting\')) IS NOT TRUE OR OLD."note" IS DISTINCT FROM NEW."note" AND (current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND coalesce(NEW.note, \'\') = \'\' AND (OLD.status <> \'waiting\')) IS NOT TRUE OR current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."status" IS DISTINCT FROM NEW."status" OR OLD."decided_by" IS DISTINCT FROM NEW."decided_by" OR OLD."decided_at" IS DISTINCT FROM NEW."decided_at" OR OLD."decision_note" IS DISTINCT FROM NEW."decision_note")) THEN RAISE EXCEPTION \'what was asked for never changes\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='7ceafc052819203da31fbcee4458a5f3116a6b2f', operation='UPDATE', pgid='pgtrigger_read_only_4eb8a', table='approvals_approval', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='payoutaccount',
            index=models.Index(fields=['added_at', 'id'], name='payout_newest_first'),
        ),
        migrations.AddIndex(
            model_name='payoutaccount',
            index=models.Index(fields=['merchant'], name='payout_of_merchant'),
        ),
        migrations.AddConstraint(
            model_name='payoutaccount',
            constraint=models.UniqueConstraint(condition=models.Q(('removed_at__isnull', True)), fields=('merchant', 'bank_code', 'account_fingerprint'), name='payout_account_listed_once'),
        ),
        migrations.AddConstraint(
            model_name='payoutaccount',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('account_sealed', ''), _negated=True), models.Q(('account_fingerprint', ''), _negated=True), models.Q(('added_by', ''), _negated=True)), name='payout_account_added_by_somebody'),
        ),
        migrations.AddConstraint(
            model_name='payoutaccount',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('removed_at__isnull', True), ('removed_by', '')), models.Q(('removed_at__isnull', False), models.Q(('removed_by', ''), _negated=True)), _connector='OR'), name='payout_account_removed_by_somebody'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payoutaccount',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a payout account is removed from the list, and its row stays' USING ERRCODE = 'insufficient_privilege';", hash='933bbfc20af40813fcf6b7d1887adee6738896c3', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_5fd49', table='approvals_payoutaccount', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payoutaccount',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id" OR OLD."bank_code" IS DISTINCT FROM NEW."bank_code" OR OLD."account_last4" IS DISTINCT FROM NEW."account_last4" OR OLD."account_name" IS DISTINCT FROM NEW."account_name" OR OLD."account_digest" IS DISTINCT FROM NEW."account_digest" OR OLD."added_by" IS DISTINCT FROM NEW."added_by" OR OLD."added_at" IS DISTINCT FROM NEW."added_at" OR OLD."usable_at" IS DISTINCT FROM NEW."usable_at") OR OLD."account_sealed" IS DISTINCT FROM NEW."account_sealed" AND (current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND substr(OLD.account_sealed, 1, 7) = \'sealed:\' AND substr(NEW.account_sealed, 1, 7) = \'sealed:\') IS NOT TRUE OR OLD."account_fingerprint" IS DISTINCT FROM NEW."account_fingerprint" AND (current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\') IS NOT TRUE OR current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."removed_by" IS DISTINCT FROM NEW."removed_by" OR OLD."removed_at" IS DISTINCT FROM NEW."removed_at")) THEN RAISE EXCEPTION \'an account on the list never changes\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='5ca068930e46214c57717ac73c768cccbc617aef', operation='UPDATE', pgid='pgtrigger_read_only_516b9', table='approvals_payoutaccount', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payoutaccount',
            trigger=pgtrigger.compiler.Trigger(name='removed_at_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.removed_at IS NOT NULL AND NEW.removed_at IS DISTINCT FROM OLD.removed_at) THEN RAISE EXCEPTION 'an account that was removed stays removed' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='21e4429b7f10b6fa468b62fb5f5c944f666c9dcb', operation='UPDATE', pgid='pgtrigger_removed_at_set_once_8aaf5', table='approvals_payoutaccount', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payoutaccount',
            trigger=pgtrigger.compiler.Trigger(name='removed_by_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.removed_by <> '' AND NEW.removed_by IS DISTINCT FROM OLD.removed_by) THEN RAISE EXCEPTION 'an account that was removed stays removed' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='c9870b8b10f62950391caf5be1b9f3c661318586', operation='UPDATE', pgid='pgtrigger_removed_by_set_once_7d3d9', table='approvals_payoutaccount', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
