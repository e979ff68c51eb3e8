from pathlib import Path

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
        ('payments', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='QrCode',
            fields=[
                ('payment', models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='qr_code', serialize=False, to='payments.payment')),
                ('bank', models.CharField(max_length=20)),
                ('biller_id', models.CharField(max_length=15)),
                ('reference1', models.CharField(max_length=20)),
                ('qr_data', models.CharField(max_length=512)),
                ('created_at', models.DateTimeField()),
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('merchant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
                ('replaces', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='qrcodes.qrcode')),
            ],
            options={
                'verbose_name': 'QR code',
                'verbose_name_plural': 'QR codes',
                'permissions': [('expire_qrcode', 'Can expire QR codes')],
                'constraints': [models.UniqueConstraint(fields=('reference1',), name='qr_code_reference_unique'), models.UniqueConstraint(condition=models.Q(('replaces__isnull', False)), fields=('replaces',), name='qr_code_replaced_once')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='qrcode',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a QR code is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='5eb1049402677723e295296b0b8e9cb941e25a7f', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_0903e', table='qrcodes_qrcode', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='qrcode',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id" OR OLD."payment_id" IS DISTINCT FROM NEW."payment_id" OR OLD."bank" IS DISTINCT FROM NEW."bank" OR OLD."biller_id" IS DISTINCT FROM NEW."biller_id" OR OLD."replaces_id" IS DISTINCT FROM NEW."replaces_id" OR OLD."reference1" IS DISTINCT FROM NEW."reference1" OR OLD."qr_data" IS DISTINCT FROM NEW."qr_data" OR OLD."created_at" IS DISTINCT FROM NEW."created_at")) THEN RAISE EXCEPTION \'a QR code never changes\' USING ERRCODE = \'insufficient_privilege\'; END IF; RETURN NEW;', hash='44df6e48c45730aba7bab0ba89d4d13fd572d602', operation='UPDATE', pgid='pgtrigger_read_only_54388', table='qrcodes_qrcode', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='qrcode',
            trigger=pgtrigger.compiler.Trigger(name='actor_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.actor <> '' AND NEW.actor IS DISTINCT FROM OLD.actor) THEN RAISE EXCEPTION 'a QR code keeps who expired it' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NEW;", hash='a7e67979747731c40e50d5c5828cc6b820f07f41', operation='UPDATE', pgid='pgtrigger_actor_set_once_171a8', table='qrcodes_qrcode', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='qrcode',
            trigger=pgtrigger.compiler.Trigger(name='request_id_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.request_id <> '' AND NEW.request_id IS DISTINCT FROM OLD.request_id) THEN RAISE EXCEPTION 'a QR code keeps who expired it' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NEW;", hash='f81ee0628b93fa156537240a84f183f2b1b70291', operation='UPDATE', pgid='pgtrigger_request_id_set_once_eeda9', table='qrcodes_qrcode', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
