from pathlib import Path

import core.database.columns
import core.database.triggers
import django.contrib.postgres.fields
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
import webhooks.models
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('counts', '0001_initial'),
        ('merchants', '0001_initial'),
        ('operations', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('event_type', models.CharField(max_length=40)),
                ('state', models.CharField(choices=[('pending', 'Pending'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('held', 'Held')], default='pending', max_length=9)),
                ('manual_number', models.IntegerField(default=0)),
                ('attempt_count', models.SmallIntegerField(default=0)),
                ('due_at', models.DateTimeField()),
                ('created_at', models.DateTimeField()),
                ('finished_at', models.DateTimeField(null=True)),
                ('requested_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name': 'delivery',
                'verbose_name_plural': 'deliveries',
                'permissions': [('resend_delivery', 'Can send events again')],
            },
        ),
        migrations.CreateModel(
            name='DeliveryLease',
            fields=[
                ('pk', models.CompositePrimaryKey('endpoint_id', 'delivery_id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('endpoint_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('delivery_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('lease_id', models.UUIDField()),
                ('lease_until', models.DateTimeField()),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Endpoint',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('type', models.CharField(choices=[('webhook', 'Webhook'), ('line', 'LINE'), ('email', 'Email')], db_default='webhook', default='webhook', max_length=7)),
                ('url', models.CharField(blank=True, default='', max_length=2048)),
                ('recipient', models.CharField(blank=True, db_default='', default='', max_length=254)),
                ('language', models.CharField(blank=True, choices=[('th', 'ไทย'), ('en', 'English')], db_default='', default='', max_length=2)),
                ('quiet_hours', models.CharField(blank=True, db_default='', default='', max_length=11)),
                ('events', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), size=None)),
                ('secret_sealed', models.TextField(blank=True, default='', editable=False)),
                ('replaced_secrets_sealed', models.TextField(blank=True, default='', editable=False)),
                ('status', models.CharField(choices=[('active', 'Active'), ('disabled', 'Disabled')], default='active', max_length=8)),
                ('disabled_reason', models.CharField(blank=True, choices=[('merchant', 'Its merchant disabled the webhook'), ('gone', 'The webhook answered 410 Gone'), ('failing', 'The webhook had failed for days'), ('staff', 'Staff disabled the webhook'), ('moved', 'Its merchant has moved to another instance')], default='', max_length=40)),
                ('last_ping_status', models.SmallIntegerField(null=True)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
                ('deleted_at', models.DateTimeField(null=True)),
                ('merchant', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
            ],
            options={
                'permissions': [('disable_endpoint', 'Can disable endpoints'), ('enable_endpoint', 'Can enable endpoints'), ('skip_pause', 'Can skip the pause of endpoints'), ('replay_deliveries', 'Can replay held deliveries'), ('manage_destinations', 'Can add and delete destinations for staff')],
            },
        ),
        migrations.CreateModel(
            name='UnnumberedEvent',
            fields=[
                ('pk', models.CompositePrimaryKey('merchant_id', 'id', blank=True, editable=False, primary_key=True, serialize=False)),
                ('merchant_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('id', models.BigIntegerField()),
                ('event_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
            ],
            options={
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='DeliveryAttempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.SmallIntegerField()),
                ('trigger', models.CharField(choices=[('auto', 'Auto'), ('manual', 'Manual')], default='auto', max_length=6)),
                ('started_at', models.DateTimeField()),
                ('duration_ms', models.IntegerField(null=True)),
                ('status', models.SmallIntegerField(null=True)),
                ('error', models.CharField(blank=True, default='', max_length=20)),
                ('peer', models.CharField(blank=True, default='', max_length=45)),
                ('excerpt', models.TextField(blank=True, default='')),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='attempt_set', to='webhooks.delivery')),
            ],
        ),
        migrations.RunSQL("SELECT operations_partition_by_month('webhooks_deliveryattempt', 'started_at')"),
        migrations.CreateModel(
            name='EndpointHealth',
            fields=[
                ('endpoint', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='health', serialize=False, to='webhooks.endpoint')),
                ('consecutive_failures', models.IntegerField(default=0)),
                ('failing_since', models.DateTimeField(null=True)),
                ('last_error', models.CharField(blank=True, default='', max_length=20)),
                ('window_started_at', models.DateTimeField(null=True)),
                ('window_attempts', models.IntegerField(default=0)),
                ('window_failures', models.IntegerField(default=0)),
                ('paused_at', models.DateTimeField(null=True)),
                ('paused_until', models.DateTimeField(null=True)),
                ('pause_seconds', models.FloatField(default=0)),
                ('latency_ms', models.IntegerField(null=True)),
                ('reset_at', models.DateTimeField(null=True)),
                ('verified_at', models.DateTimeField(null=True)),
                ('attempted_at', models.DateTimeField(null=True)),
            ],
            options={
                'verbose_name_plural': 'endpoint health',
            },
        ),
        migrations.AddField(
            model_name='delivery',
            name='endpoint',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='webhooks.endpoint'),
        ),
        migrations.CreateModel(
            name='EndpointAction',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('type', models.CharField(choices=[('created', 'Created'), ('url_changed', 'Url Changed'), ('events_changed', 'Events Changed'), ('secret_rotated', 'Secret Rotated'), ('disabled', 'Disabled'), ('enabled', 'Enabled'), ('paused', 'Paused'), ('pause_skipped', 'Pause Skipped'), ('resumed', 'Resumed'), ('replayed', 'Replayed'), ('changed', 'Changed'), ('verified', 'Verified'), ('deleted', 'Deleted')], max_length=14)),
                ('detail', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField()),
                ('endpoint', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='actions', to='webhooks.endpoint')),
            ],
            options={
                'verbose_name': 'endpoint action',
            },
        ),
        migrations.CreateModel(
            name='Event',
            fields=[
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('type', models.CharField(max_length=40)),
                ('subject_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('packed_body', models.BinaryField(db_column='body')),
                ('created_at', models.DateTimeField()),
                ('traceparent', models.CharField(editable=False, max_length=55, null=True)),
                ('merchant', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
            ],
        ),
        migrations.AddField(
            model_name='delivery',
            name='event',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='webhooks.event'),
        ),
        migrations.CreateModel(
            name='FeedBlock',
            fields=[
                ('pk', models.CompositePrimaryKey('merchant_id', 'first_sequence', blank=True, editable=False, primary_key=True, serialize=False)),
                ('merchant_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('first_sequence', models.BigIntegerField()),
                ('last_event_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('event_ids', django.contrib.postgres.fields.ArrayField(base_field=core.database.columns.PublicId(db_collation='C', max_length=31), size=None)),
            ],
            options={
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(fields=('merchant_id', 'last_event_id'), name='feedblock_of_event'), models.CheckConstraint(condition=models.Q(('event_ids__len__range', (1, 50)), ('first_sequence__gte', 1)), name='feedblock_sane')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='feedblock',
            trigger=pgtrigger.compiler.Trigger(name='written_by_triggers', sql=core.database.triggers.TriggerSql(func="IF pg_trigger_depth() < 2 OR current_user <> (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = TG_RELID) THEN RAISE EXCEPTION 'only triggers number events' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NULL;", hash='cecc2b75080d00e0042271911517621c15444a07', level='STATEMENT', operation='INSERT OR UPDATE OR TRUNCATE', pgid='pgtrigger_written_by_triggers_b9249', table='webhooks_feedblock', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='feedblock',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'the sequence of an event never changes' USING ERRCODE = 'insufficient_privilege';", hash='8b078aa534aca4149b60d6e59f265ba04de574b4', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_884fe', table='webhooks_feedblock', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='unnumberedevent',
            trigger=pgtrigger.compiler.Trigger(name='written_by_triggers', sql=core.database.triggers.TriggerSql(func="IF pg_trigger_depth() < 2 OR current_user <> (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = TG_RELID) THEN RAISE EXCEPTION 'only triggers number events' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NULL;", hash='1361a87f19337cc26f5145f2a2c4bce3f30cc9fb', level='STATEMENT', operation='INSERT OR UPDATE OR TRUNCATE', pgid='pgtrigger_written_by_triggers_39ac4', table='webhooks_unnumberedevent', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='endpointhealth',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('pause_seconds', 0), ('paused_at__isnull', True), ('paused_until__isnull', True)), models.Q(('pause_seconds__gt', 0), ('paused_at__isnull', False), ('paused_until__isnull', False)), _connector='OR'), name='endpoint_health_pause_complete'),
        ),
        migrations.AddIndex(
            model_name='endpoint',
            index=models.Index(fields=['merchant', 'created_at', 'id'], name='endpoint_newest_first'),
        ),
        migrations.AddConstraint(
            model_name='endpoint',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['active', 'disabled'])), name='endpoint_status_known'),
        ),
        migrations.AddConstraint(
            model_name='endpoint',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('language', ''), ('merchant__isnull', False), ('quiet_hours', ''), ('recipient', ''), ('type', 'webhook'), ('id__startswith', 'wh_'), models.Q(('url', ''), _negated=True), models.Q(('secret_sealed', ''), _negated=True)), models.Q(('language__in', ['th', 'en']), ('type__in', ['line', 'email']), ('url', ''), ('id__startswith', 'dst_'), models.Q(models.Q(('deleted_at__isnull', True), ('secret_sealed', ''), ('type', 'email'), models.Q(('recipient', ''), _negated=True)), models.Q(('deleted_at__isnull', True), ('type', 'line'), models.Q(('recipient', ''), _negated=True), models.Q(('secret_sealed', ''), _negated=True)), models.Q(('deleted_at__isnull', False), ('recipient', ''), ('secret_sealed', '')), _connector='OR')), _connector='OR'), name='endpoint_is_webhook_or_destination'),
        ),
        migrations.AddConstraint(
            model_name='endpoint',
            constraint=models.CheckConstraint(condition=models.Q(('quiet_hours', ''), models.Q(('quiet_hours__regex', '^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$'), models.Q(('quiet_hours__regex', '^(.{5})-\\1$'), _negated=True)), _connector='OR'), name='endpoint_quiet_hours'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='endpoint',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'an endpoint is marked as deleted, and its row stays' USING ERRCODE = 'insufficient_privilege';", hash='66492789caee8addbeff212cf9b514bdad234d30', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_597cd', table='webhooks_endpoint', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='endpointaction',
            index=models.Index(fields=['endpoint', 'id'], name='endpoint_action_newest_first'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='endpointaction',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'endpoint actions are never changed' USING ERRCODE = 'insufficient_privilege';", hash='0a170e2e5eedbdd6ec598c45609341e5e363024b', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_a86ca', table='webhooks_endpointaction', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['merchant', 'type', 'created_at'], name='event_filtered'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['subject_id'], name='event_of_subject'),
        ),
        migrations.AddConstraint(
            model_name='event',
            constraint=models.CheckConstraint(condition=models.Q(('merchant__isnull', False), ('type__in', [webhooks.models.StaffEventType['APPROVAL_REQUESTED'], webhooks.models.StaffEventType['EXCEPTION_OPENED'], webhooks.models.StaffEventType['ENDPOINT_PAUSED'], webhooks.models.StaffEventType['BACKUP_LATE'], webhooks.models.StaffEventType['JOB_FAILED'], 'destination.ping']), _connector='OR'), name='event_of_merchant_or_for_staff'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='event',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'an event is never changed' USING ERRCODE = 'insufficient_privilege';", hash='e6030f4cd86045b069d8baa2848d5e363cea6233', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_51e92', table='webhooks_event', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('state', 'pending')), fields=['endpoint', 'due_at'], name='delivery_due'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('manual_number__gt', 0), ('state', 'pending')), fields=['endpoint', 'due_at'], name='delivery_due_manual'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(condition=models.Q(('state', 'held')), fields=['endpoint', 'due_at'], name='delivery_held'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['endpoint', 'created_at'], name='delivery_newest_first'),
        ),
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['endpoint', 'event_type', 'state', 'created_at'], name='delivery_filtered'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.UniqueConstraint(fields=('event', 'endpoint', 'manual_number'), name='delivery_once_per_endpoint'),
        ),
        migrations.AddConstraint(
            model_name='delivery',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['pending', 'succeeded', 'failed', 'held'])), name='delivery_state_known'),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
