from pathlib import Path

import audit_trail.acts
import core.database.columns
import core.database.triggers
import django.db.models.deletion
import django.db.models.functions.datetime
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
            name='AuditRecord',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), verbose_name='time')),
                ('act', models.CharField(choices=audit_trail.acts.choices, max_length=40, verbose_name='act')),
                ('object_type', models.CharField(max_length=80)),
                ('object_id', models.CharField(db_collation='C', max_length=200)),
                ('merchant_id', models.CharField(blank=True, default='', max_length=31)),
                ('before', models.JSONField(default=dict)),
                ('after', models.JSONField(default=dict)),
                ('reason', models.TextField(blank=True, default='', verbose_name='reason')),
                ('address', models.CharField(blank=True, default='', max_length=64)),
                ('session', models.CharField(blank=True, default='', max_length=16)),
                ('form_token', models.UUIDField(editable=False, null=True)),
            ],
            options={
                'verbose_name': 'audit record',
                'verbose_name_plural': 'audit records',
                'permissions': [('view_personal_data', 'Can see names, accounts and messages of customers'), ('export_lists', 'Can download lists and monthly reports as files')],
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='ChainLink',
            fields=[
                ('number', models.BigIntegerField(primary_key=True, serialize=False)),
                ('previous_hash', models.CharField(max_length=64)),
                ('hash', models.CharField(max_length=64)),
            ],
            options={
                'verbose_name': 'chain link',
                'verbose_name_plural': 'chain links',
                'default_permissions': (),
            },
        ),
        migrations.CreateModel(
            name='Note',
            fields=[
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('subject_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('object_type', models.CharField(max_length=80)),
                ('object_id', core.database.columns.PublicId(db_collation='C', max_length=31)),
                ('text', models.TextField(verbose_name='note')),
                ('handed_to', models.CharField(max_length=160, null=True, verbose_name='handed over to')),
                ('created_at', models.DateTimeField(verbose_name='time')),
            ],
            options={
                'verbose_name': 'hand-over',
                'verbose_name_plural': 'hand-overs',
                'permissions': [('write_note', 'Can write notes'), ('hand_over', 'Can hand over to colleagues and roles, and answer'), ('ask_finance', 'Can ask finance')],
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='UnchainedRecord',
            fields=[
                ('record', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, primary_key=True, related_name='+', serialize=False, to='audit_trail.auditrecord')),
            ],
            options={
                'verbose_name': 'unchained audit record',
                'verbose_name_plural': 'unchained audit records',
                'default_permissions': (),
            },
        ),
        migrations.AddIndex(
            model_name='auditrecord',
            index=models.Index(fields=['object_id', 'id'], name='auditrecord_of_object'),
        ),
        migrations.AddIndex(
            model_name='auditrecord',
            index=models.Index(condition=models.Q(('act', 'viewed'), _negated=True), fields=['object_id', 'object_type', 'id'], name='auditrecord_changes'),
        ),
        migrations.AddIndex(
            model_name='auditrecord',
            index=models.Index(fields=['object_type', 'id'], name='auditrecord_of_type'),
        ),
        migrations.AddIndex(
            model_name='auditrecord',
            index=models.Index(fields=['actor', 'id'], name='auditrecord_of_actor'),
        ),
        migrations.AddIndex(
            model_name='auditrecord',
            index=models.Index(fields=['act', 'id'], name='auditrecord_of_act'),
        ),
        migrations.AddIndex(
            model_name='auditrecord',
            index=models.Index(fields=['request_id'], name='auditrecord_of_request'),
        ),
        migrations.AddIndex(
            model_name='auditrecord',
            index=models.Index(fields=['merchant_id', 'id'], name='auditrecord_of_merchant'),
        ),
        migrations.AddIndex(
            model_name='auditrecord',
            index=models.Index(fields=['created_at'], name='auditrecord_created'),
        ),
        migrations.AddConstraint(
            model_name='auditrecord',
            constraint=models.UniqueConstraint(fields=('form_token',), name='auditrecord_once_per_form'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='auditrecord',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'the audit trail is append-only' USING ERRCODE = 'insufficient_privilege';", hash='fd1ef65232d0c71f23b6644629f78faa68e20b43', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_980de', table='audit_trail_auditrecord', when='BEFORE')),
        ),
        migrations.AddField(
            model_name='chainlink',
            name='record',
            field=models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='link', to='audit_trail.auditrecord'),
        ),
        migrations.AddField(
            model_name='note',
            name='answer',
            field=models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='question', to='audit_trail.note', verbose_name='answer'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='unchainedrecord',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'unchained records wait for their link' USING ERRCODE = 'insufficient_privilege';", hash='2ded64edbc55b8747236130899ffcb971669d8e3', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_5c259', table='audit_trail_unchainedrecord', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='chainlink',
            constraint=models.UniqueConstraint(fields=('previous_hash',), name='chainlink_one_successor'),
        ),
        migrations.AddConstraint(
            model_name='chainlink',
            constraint=models.CheckConstraint(condition=models.Q(('number__gte', 1)), name='chainlink_number_positive'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='chainlink',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'the chain of the audit trail is append-only' USING ERRCODE = 'insufficient_privilege';", hash='96270f876193957707832ad76af23300d26e98e9', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_dff2c', table='audit_trail_chainlink', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='note',
            index=models.Index(fields=['subject_id', 'created_at'], name='note_of_subject'),
        ),
        migrations.AddIndex(
            model_name='note',
            index=models.Index(fields=['actor', 'created_at'], name='note_of_actor'),
        ),
        migrations.AddIndex(
            model_name='note',
            index=models.Index(condition=models.Q(('answer__isnull', True), ('handed_to__isnull', False)), fields=['handed_to', 'created_at'], name='note_open'),
        ),
        migrations.AddConstraint(
            model_name='note',
            constraint=models.UniqueConstraint(condition=models.Q(('answer__isnull', True), ('handed_to__isnull', False)), fields=('subject_id',), name='note_open_once'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='note',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a note is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='77ae6f47a81286de76fa9fe5b7b154a103e9caea', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_f8ce6', table='audit_trail_note', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='note',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."actor" IS DISTINCT FROM NEW."actor" OR OLD."request_id" IS DISTINCT FROM NEW."request_id" OR OLD."id" IS DISTINCT FROM NEW."id" OR OLD."subject_id" IS DISTINCT FROM NEW."subject_id" OR OLD."object_type" IS DISTINCT FROM NEW."object_type" OR OLD."object_id" IS DISTINCT FROM NEW."object_id" OR OLD."handed_to" IS DISTINCT FROM NEW."handed_to" OR OLD."created_at" IS DISTINCT FROM NEW."created_at") OR OLD."text" IS DISTINCT FROM NEW."text" AND (current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND coalesce(NEW.text, \'\') = \'\' AND (true)) IS NOT TRUE OR current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."answer_id" IS DISTINCT FROM NEW."answer_id")) THEN RAISE EXCEPTION \'a note stays as it was written\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='886e96ecad21ea57c5c47bf74d3e6da87203f885', operation='UPDATE', pgid='pgtrigger_read_only_ed653', table='audit_trail_note', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='note',
            trigger=pgtrigger.compiler.Trigger(name='answer_id_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.answer_id IS NOT NULL AND NEW.answer_id IS DISTINCT FROM OLD.answer_id) THEN RAISE EXCEPTION 'a hand-over keeps its answer' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='ec0bb08c4be35d6db2c7e81aed81b67fdda8f90a', operation='UPDATE', pgid='pgtrigger_answer_id_set_once_af35e', table='audit_trail_note', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='note',
            trigger=pgtrigger.compiler.Trigger(name='text_of_a_person', sql=core.database.triggers.TriggerSql(condition="WHEN (NEW.text !~ '[^[:space:]]' OR length(NEW.text) > 2000 OR NOT starts_with(NEW.actor, 'staff:') OR NEW.handed_to !~ '^(role|staff):.' OR NEW.answer_id IS NOT NULL)", func="RAISE EXCEPTION 'a note is a text of a member of staff, which nobody has answered' USING ERRCODE = 'check_violation';", hash='a85dfdee0703be16ae87d5810a6b54063adce65c', operation='INSERT', pgid='pgtrigger_text_of_a_person_9e743', table='audit_trail_note', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
