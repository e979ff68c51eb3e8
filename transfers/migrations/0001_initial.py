import core.database.columns
import core.database.triggers
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='Transfer',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('purpose', models.CharField(choices=[('refund', 'Refund'), ('withdrawal', 'Withdrawal'), ('return', 'Return')], max_length=10)),
                ('merchant_id', core.database.columns.PublicId(blank=True, db_collation='C', default='', max_length=31)),
                ('route', models.CharField(max_length=30)),
                ('amount', models.BigIntegerField()),
                ('bank_code', models.CharField(blank=True, default='', max_length=3)),
                ('account_sealed', models.TextField(blank=True, default='', editable=False)),
                ('account_name', models.CharField(blank=True, default='', max_length=140)),
                ('account_digest', models.CharField(blank=True, db_default='', default='', editable=False, max_length=64)),
                ('charge_id', models.CharField(blank=True, default='', max_length=64)),
                ('state', models.CharField(choices=[('held', 'Held'), ('queued', 'Queued'), ('submitted', 'Submitted'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('returned', 'Returned'), ('canceled', 'Canceled')], default='queued', max_length=9)),
                ('due_at', models.DateTimeField()),
                ('lease_until', models.DateTimeField(null=True)),
                ('inquiries', models.IntegerField(default=0)),
                ('bank_reference', models.CharField(blank=True, default='', max_length=64)),
                ('failure_code', models.CharField(blank=True, default='', max_length=40)),
                ('created_at', models.DateTimeField()),
                ('submitted_at', models.DateTimeField(null=True)),
                ('completed_at', models.DateTimeField(null=True)),
                ('completed_by', models.CharField(blank=True, default='', max_length=160)),
            ],
            options={
                'permissions': [('complete_transfer', 'Can end transfers on which the bank is silent'), ('cancel_transfer', 'Can cancel transfers that never reached their bank')],
            },
        ),
        migrations.CreateModel(
            name='TransferContradiction',
            fields=[
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('subject_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('merchant_id', core.database.columns.PublicId(blank=True, db_collation='C', default='', max_length=31)),
                ('route', models.CharField(max_length=30)),
                ('amount', models.BigIntegerField()),
                ('state', models.CharField(max_length=9)),
                ('answer', models.CharField(max_length=10)),
                ('answer_amount', models.BigIntegerField(null=True)),
                ('answer_currency', models.CharField(blank=True, db_default='', default='', max_length=3)),
                ('bank_reference', models.CharField(blank=True, default='', max_length=64)),
                ('created_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='TransferEvent',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('type', models.CharField(choices=[('held', 'Held'), ('queued', 'Queued'), ('submitted', 'Submitted'), ('not_sent', 'Not Sent'), ('inquiry', 'Inquiry'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('returned', 'Returned'), ('canceled', 'Canceled')], max_length=9)),
                ('answer', models.CharField(blank=True, default='', max_length=10)),
                ('created_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='CircuitBreaker',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('route', models.CharField(max_length=30)),
                ('merchant_id', core.database.columns.PublicId(blank=True, db_collation='C', default='', max_length=31)),
                ('failures', models.IntegerField(default=0)),
                ('openings', models.IntegerField(default=0)),
                ('first_failed_at', models.DateTimeField()),
                ('open_until', models.DateTimeField(null=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('route', 'merchant_id'), name='circuitbreaker_one_per_party')],
            },
        ),
        migrations.CreateModel(
            name='DatabaseIdentity',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('mark_xmin', models.BigIntegerField()),
                ('system_identifier', models.BigIntegerField()),
                ('database_oid', models.BigIntegerField()),
                ('timeline', models.BigIntegerField()),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='databaseidentity_single_row')],
            },
        ),
        migrations.CreateModel(
            name='DatabaseMark',
            fields=[
                ('id', models.SmallIntegerField(default=1, primary_key=True, serialize=False)),
                ('installation', models.UUIDField()),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='databasemark_single_row')],
            },
        ),
        migrations.CreateModel(
            name='SafeMode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('cause', models.CharField(choices=[('copy', 'The database is a copy, such as a restored dump'), ('new_timeline', 'The server was restored from a backup, or a standby took over'), ('lost_orders', 'Banks got orders that this database does not have'), ('by_staff', 'Staff paused all outgoing money')], max_length=12, verbose_name='cause')),
                ('started_at', models.DateTimeField(verbose_name='started at')),
                ('lost_orders', models.TextField(blank=True, default='', verbose_name='lost orders')),
                ('ended_at', models.DateTimeField(null=True, verbose_name='ended at')),
                ('ended_by', models.CharField(blank=True, default='', max_length=160, verbose_name='ended by')),
            ],
            options={
                'verbose_name': 'safe mode',
                'verbose_name_plural': 'safe mode',
                'permissions': [('pause_transfers', 'Can pause all outgoing money'), ('resume_transfers', 'Can resume outgoing money after a restore')],
                'default_permissions': ('view',),
                'constraints': [models.CheckConstraint(condition=models.Q(('cause__in', ['copy', 'new_timeline', 'lost_orders', 'by_staff'])), name='safemode_cause_known'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('ended_by', '')), ('ended_at__isnull', False), _connector='OR'), name='safemode_ended_by_iff_ended'), models.UniqueConstraint(fields=('ended_at',), name='safemode_one_at_a_time', nulls_distinct=False)],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='safemode',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a period of safe mode is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='b592dde459510fe4f67ff9132969c062a16df8cb', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_024fd', table='transfers_safemode', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='safemode',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."actor" IS DISTINCT FROM NEW."actor" OR OLD."request_id" IS DISTINCT FROM NEW."request_id" OR OLD."cause" IS DISTINCT FROM NEW."cause" OR OLD."started_at" IS DISTINCT FROM NEW."started_at" OR OLD."lost_orders" IS DISTINCT FROM NEW."lost_orders")) THEN RAISE EXCEPTION \'a period of safe mode only ends\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='c624e9a2f8ac3106f25d83c7016c16ef045cef96', operation='UPDATE', pgid='pgtrigger_read_only_6a002', table='transfers_safemode', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='safemode',
            trigger=pgtrigger.compiler.Trigger(name='ended_at_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.ended_at IS NOT NULL AND NEW.ended_at IS DISTINCT FROM OLD.ended_at) THEN RAISE EXCEPTION 'a period of safe mode ends once' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='8337be4f4f8a55f1b33e3916afc04d719e3e1883', operation='UPDATE', pgid='pgtrigger_ended_at_set_once_98752', table='transfers_safemode', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(condition=models.Q(('state__in', ('queued', 'submitted'))), fields=['purpose', 'route', 'due_at'], name='transfer_due_by_route'),
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(condition=models.Q(('state__in', ('queued', 'submitted'))), fields=['created_at'], name='transfer_open_oldest'),
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(condition=models.Q(('submitted_at__isnull', False)), fields=['submitted_at'], name='transfer_last_submitted'),
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(condition=models.Q(('charge_id', ''), _negated=True), fields=['charge_id'], name='transfer_of_charge'),
        ),
        migrations.AddIndex(
            model_name='transfer',
            index=models.Index(condition=models.Q(('bank_reference', ''), _negated=True), fields=['bank_reference'], name='transfer_by_bank_reference'),
        ),
        migrations.AddConstraint(
            model_name='transfer',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['held', 'queued', 'submitted', 'succeeded', 'failed', 'returned', 'canceled'])), name='transfer_state_known'),
        ),
        migrations.AddConstraint(
            model_name='transfer',
            constraint=models.CheckConstraint(condition=models.Q(('purpose__in', ['refund', 'withdrawal', 'return'])), name='transfer_purpose_known'),
        ),
        migrations.AddConstraint(
            model_name='transfer',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gte', 1)), name='transfer_amount_positive'),
        ),
        migrations.AddConstraint(
            model_name='transfer',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('charge_id', ''), models.Q(('bank_code', ''), _negated=True), models.Q(models.Q(('account_sealed', ''), _negated=True), models.Q(('state__in', ('held', 'queued', 'submitted')), _negated=True), _connector='OR')), models.Q(models.Q(('charge_id', ''), _negated=True), ('account_sealed', ''), ('bank_code', ''), ('purpose__in', ['refund', 'return'])), _connector='OR'), name='transfer_goes_to_an_account_or_a_card'),
        ),
        migrations.AddConstraint(
            model_name='transfer',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ('held', 'queued', 'canceled')), ('submitted_at__isnull', False), _connector='OR'), name='transfer_submitted_has_time'),
        ),
        migrations.AddConstraint(
            model_name='transfer',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('completed_at__isnull', True), ('state__in', ('held', 'queued', 'submitted'))), models.Q(models.Q(('state__in', ('held', 'queued', 'submitted')), _negated=True), ('completed_at__isnull', False), ('lease_until__isnull', True)), _connector='OR'), name='transfer_completed_iff_finished'),
        ),
        migrations.AddConstraint(
            model_name='transfer',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('state__in', ['failed', 'returned']), models.Q(('failure_code', ''), _negated=True)), models.Q(models.Q(('state__in', ['failed', 'returned']), _negated=True), ('failure_code', '')), _connector='OR'), name='transfer_reason_iff_failed'),
        ),
        migrations.AddConstraint(
            model_name='transfer',
            constraint=models.CheckConstraint(condition=models.Q(('completed_by', ''), ('state__in', ['succeeded', 'failed', 'returned']), _connector='OR'), name='transfer_completed_by_staff_is_finished'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='transfer',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a transfer is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='0dc1d5c3c182c03cf1e25184fecc6291377838b9', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_7e21f', table='transfers_transfer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='transfer',
            trigger=pgtrigger.compiler.Trigger(name='state_initial', sql=core.database.triggers.TriggerSql(condition="WHEN (NEW.state NOT IN ('held', 'queued'))", func="RAISE EXCEPTION 'a transfer cannot begin like that' USING ERRCODE = 'check_violation';", hash='e81e38cdd97fbfa12b96d7ccf9c41bcdd4d63c38', operation='INSERT', pgid='pgtrigger_state_initial_15ef2', table='transfers_transfer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='transfer',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."purpose" IS DISTINCT FROM NEW."purpose" OR OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id" OR OLD."route" IS DISTINCT FROM NEW."route" OR OLD."amount" IS DISTINCT FROM NEW."amount" OR OLD."bank_code" IS DISTINCT FROM NEW."bank_code" OR OLD."account_digest" IS DISTINCT FROM NEW."account_digest" OR OLD."charge_id" IS DISTINCT FROM NEW."charge_id" OR OLD."created_at" IS DISTINCT FROM NEW."created_at") OR OLD."account_sealed" IS DISTINCT FROM NEW."account_sealed" AND (current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND substr(OLD.account_sealed, 1, 7) = \'sealed:\' AND substr(NEW.account_sealed, 1, 7) = \'sealed:\') IS NOT TRUE AND (current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND coalesce(NEW.account_sealed, \'\') = \'\' AND (OLD.state NOT IN (\'held\', \'queued\', \'submitted\'))) IS NOT TRUE OR OLD."account_name" IS DISTINCT FROM NEW."account_name" AND (current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND coalesce(NEW.account_name, \'\') = \'\' AND (OLD.state NOT IN (\'held\', \'queued\', \'submitted\'))) IS NOT TRUE OR current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."state" IS DISTINCT FROM NEW."state" OR OLD."due_at" IS DISTINCT FROM NEW."due_at" OR OLD."lease_until" IS DISTINCT FROM NEW."lease_until" OR OLD."inquiries" IS DISTINCT FROM NEW."inquiries" OR OLD."bank_reference" IS DISTINCT FROM NEW."bank_reference" OR OLD."failure_code" IS DISTINCT FROM NEW."failure_code" OR OLD."submitted_at" IS DISTINCT FROM NEW."submitted_at" OR OLD."completed_at" IS DISTINCT FROM NEW."completed_at" OR OLD."completed_by" IS DISTINCT FROM NEW."completed_by") OR current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."state" IS DISTINCT FROM NEW."state" OR OLD."due_at" IS DISTINCT FROM NEW."due_at" OR OLD."lease_until" IS DISTINCT FROM NEW."lease_until" OR OLD."inquiries" IS DISTINCT FROM NEW."inquiries" OR OLD."bank_reference" IS DISTINCT FROM NEW."bank_reference" OR OLD."failure_code" IS DISTINCT FROM NEW."failure_code" OR OLD."submitted_at" IS DISTINCT FROM NEW."submitted_at" OR OLD."completed_at" IS DISTINCT FROM NEW."completed_at" OR OLD."completed_by" IS DISTINCT FROM NEW."completed_by")) THEN RAISE EXCEPTION \'what was ordered never changes\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='bbeb365478f03bbbf0147ab834667128a14baef4', operation='UPDATE', pgid='pgtrigger_read_only_f5208', table='transfers_transfer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='transfer',
            trigger=pgtrigger.compiler.Trigger(name='transitions', sql=core.database.triggers.TriggerSql(func="IF (OLD.state <> NEW.state AND (OLD.state, NEW.state) NOT IN (('held', 'canceled'), ('held', 'queued'), ('queued', 'canceled'), ('queued', 'submitted'), ('submitted', 'failed'), ('submitted', 'queued'), ('submitted', 'succeeded'), ('succeeded', 'returned'))) THEN RAISE EXCEPTION 'transfer cannot change from % to %', OLD.state, NEW.state USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='264574cb809371becf109ca793e25af0b716894c', operation='UPDATE', pgid='pgtrigger_transitions_d5dbd', table='transfers_transfer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='transfer',
            trigger=pgtrigger.compiler.Trigger(name='state_final', sql=core.database.triggers.TriggerSql(func="IF (OLD.state NOT IN ('held', 'queued', 'submitted') AND NEW.state = OLD.state AND (NEW.submitted_at, NEW.completed_at, NEW.bank_reference, NEW.failure_code) IS DISTINCT FROM (OLD.submitted_at, OLD.completed_at, OLD.bank_reference, OLD.failure_code)) THEN RAISE EXCEPTION 'a transfer keeps how it ended' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='54e6858bf61bfcb441a1a91922126d1b15d49c0a', operation='UPDATE', pgid='pgtrigger_state_final_5bbc0', table='transfers_transfer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='transfer',
            trigger=pgtrigger.compiler.Trigger(name='inquired_is_not_sent_again', sql=core.database.triggers.TriggerSql(func="IF (OLD.state = 'submitted' AND NEW.state = 'queued' AND OLD.inquiries > 0) THEN RAISE EXCEPTION 'an order that was inquired is not sent again' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='30d2fbc27856412d17e94aa76e065e3d93f49d22', operation='UPDATE', pgid='pgtrigger_inquired_is_not_sent_again_4b4a7', table='transfers_transfer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='transfer',
            trigger=pgtrigger.compiler.Trigger(name='inquiries_grow', sql=core.database.triggers.TriggerSql(func="IF (NEW.inquiries < OLD.inquiries) THEN RAISE EXCEPTION 'the number of inquiries only grows' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='5f19830f4cb76052db36b9a6b0cc7209a460804d', operation='UPDATE', pgid='pgtrigger_inquiries_grow_b38ad', table='transfers_transfer', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='transfer',
            trigger=pgtrigger.compiler.Trigger(name='completed_by_person_once', sql=core.database.triggers.TriggerSql(func="IF (NEW.completed_by <> OLD.completed_by AND (OLD.state, NEW.state) NOT IN (('submitted', 'succeeded'), ('submitted', 'failed'))) THEN RAISE EXCEPTION 'only the change that ends a transfer names who ended it' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='f8067ad4bb27d3bbf2e78dddc167941da612d773', operation='UPDATE', pgid='pgtrigger_completed_by_person_once_8e4e7', table='transfers_transfer', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='transfercontradiction',
            constraint=models.UniqueConstraint(fields=('subject_id', 'state', 'answer'), name='transfercontradiction_once'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='transfercontradiction',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'what a bank reported is never changed' USING ERRCODE = 'insufficient_privilege';", hash='8ea7b871f61f48ee8d28651b9914fa6ecf0441c0', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_ad027', table='transfers_transfercontradiction', when='BEFORE')),
        ),
        migrations.AddField(
            model_name='transferevent',
            name='transfer',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='events', to='transfers.transfer'),
        ),
        migrations.AddIndex(
            model_name='transferevent',
            index=models.Index(fields=['transfer', 'type', 'created_at'], name='transferevent_of_transfer'),
        ),
        migrations.AddConstraint(
            model_name='transferevent',
            constraint=models.CheckConstraint(condition=models.Q(('type__in', ['held', 'queued', 'submitted', 'not_sent', 'inquiry', 'succeeded', 'failed', 'returned', 'canceled'])), name='transferevent_type_known'),
        ),
        migrations.AddConstraint(
            model_name='transferevent',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('type', 'inquiry'), models.Q(('answer', ''), _negated=True)), models.Q(models.Q(('type', 'inquiry'), _negated=True), ('answer', '')), _connector='OR'), name='transferevent_answer_iff_inquiry'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='transferevent',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'the history of a transfer is never changed' USING ERRCODE = 'insufficient_privilege';", hash='81da0bf0a904a1e472b7d44ff47defbd3f6c5462', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_7b460', table='transfers_transferevent', when='BEFORE')),
        ),
    ]
