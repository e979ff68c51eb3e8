from pathlib import Path

import core.database.columns
import core.database.triggers
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.comparison
import django.db.models.functions.text
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('counts', '0001_initial'),
        ('merchants', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Payment',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('qr_code_id', core.database.columns.PublicId(db_collation='C', max_length=31, null=True, verbose_name='QR code')),
                ('amount', models.BigIntegerField()),
                ('currency', models.CharField(max_length=3)),
                ('reference', models.CharField(max_length=35, null=True)),
                ('description', models.CharField(max_length=255, null=True)),
                ('metadata', core.database.columns.RawJson(null=True)),
                ('client_name', models.CharField(max_length=140, null=True)),
                ('client_bank_name', models.CharField(max_length=140, null=True)),
                ('client_bank_account_sealed', core.database.columns.SealedText(editable=False, null=True)),
                ('client_account_digest', models.CharField(blank=True, db_default='', default='', editable=False, max_length=64)),
                ('payment_link_id', core.database.columns.PublicId(db_collation='C', max_length=31, null=True)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField(null=True)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('succeeded', 'Succeeded'), ('failed', 'Failed'), ('expired', 'Expired'), ('refunded', 'Refunded')], max_length=9)),
                ('payer_name', models.CharField(max_length=140, null=True)),
                ('payer_bank_code', models.CharField(max_length=3, null=True)),
                ('payer_account_sealed', core.database.columns.SealedText(editable=False, null=True)),
                ('bank_reference', models.CharField(max_length=64, null=True)),
                ('payer_matches', models.CharField(choices=[('yes', 'Yes'), ('no', 'No'), ('unknown', 'Unknown')], max_length=7, null=True)),
                ('hold', models.CharField(choices=[('payer_differs', 'another person paid'), ('payer_unknown', 'the bank reports too little about who paid')], max_length=13, null=True)),
                ('card_last4', models.CharField(max_length=4, null=True)),
                ('card_brand', models.CharField(max_length=20, null=True)),
                ('failure_code', models.CharField(max_length=40, null=True)),
                ('authorize_uri', models.CharField(max_length=1000, null=True)),
                ('amount_refunded', models.BigIntegerField(default=0)),
                ('amount_refunding', models.BigIntegerField(default=0)),
                ('amount_received', models.BigIntegerField(null=True)),
                ('fee', models.BigIntegerField(null=True)),
                ('fee_vat', models.BigIntegerField(null=True, verbose_name='VAT of the fee')),
                ('has_exceptions', models.BooleanField(db_default=False, default=False)),
                ('holds_reference', models.BooleanField(db_default=False, default=False)),
                ('settlement_id', core.database.columns.PublicId(db_collation='C', max_length=31, null=True)),
                ('updated_at', models.DateTimeField()),
                ('completed_at', models.DateTimeField(null=True)),
                ('merchant', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
            ],
            options={
                'permissions': [('lift_hold', 'Can lift the hold of payments')],
            },
        ),
        migrations.CreateModel(
            name='CardCharge',
            fields=[
                ('actor', models.CharField(blank=True, db_default='', default='', max_length=160)),
                ('request_id', models.CharField(blank=True, db_default='', default='', max_length=64)),
                ('payment', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='charge', serialize=False, to='payments.payment')),
                ('acquirer', models.CharField(max_length=20)),
                ('charge_id', models.CharField(blank=True, default='', max_length=64)),
                ('state', models.CharField(choices=[('submitted', 'Submitted'), ('pending', 'Pending'), ('completed', 'Completed'), ('refused', 'Refused')], default='submitted', max_length=9)),
                ('due_at', models.DateTimeField()),
                ('inquiries', models.IntegerField(default=0)),
                ('returned_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('completed_at', models.DateTimeField(null=True)),
                ('paid_at', models.DateTimeField(null=True)),
                ('awaits_fee', models.BooleanField(db_default=False, default=False)),
                ('unsettled', models.BigIntegerField(null=True)),
                ('settled_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='FeeTerms',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('is_of_standby', models.BooleanField(db_default=False, default=False, verbose_name='of the stand-by')),
                ('starts_on', models.DateField()),
                ('fixed', models.IntegerField()),
                ('rate', models.IntegerField()),
                ('vat_rate', models.IntegerField(verbose_name='VAT')),
                ('created_at', models.DateTimeField()),
                ('merchant', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
            ],
            options={
                'verbose_name': 'fee terms',
                'verbose_name_plural': 'fee terms',
                'permissions': [('set_fees', 'Can set what banks take for payments by QR code')],
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='PaymentException',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('reason', models.CharField(choices=[('', 'Not matched yet'), ('applied', 'Paid its payment'), ('declined', 'Declined by the bank'), ('reversed', 'Deducted from the balance'), ('ordered', 'Requested by a refund'), ('unmatched', 'Unknown reference'), ('duplicate', 'Paid twice'), ('time_mismatch', 'Paid too early'), ('amount_mismatch', 'Wrong amount'), ('late', 'Paid after expiry')], max_length=16)),
                ('amount', models.BigIntegerField()),
                ('status', models.CharField(choices=[('open', 'Waits for a decision'), ('accepted', 'Accepted'), ('attached', 'Paid for another payment'), ('sending_back', 'Is being sent back'), ('sent_back', 'Sent back'), ('taken_back', 'Taken back by the bank'), ('merged', 'The same money as another report'), ('excess_open', 'Excess waits for a decision'), ('excess_sending_back', 'Excess is being sent back'), ('excess_sent_back', 'Excess sent back'), ('excess_taken_back', 'Excess taken back by the bank')], default='open', max_length=19)),
                ('reported_at', models.DateTimeField()),
                ('payment', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='exceptions', to='payments.payment')),
            ],
            options={
                'ordering': ['reported_at', 'id'],
                'default_permissions': ('view',),
            },
        ),
        migrations.CreateModel(
            name='ChargeAnswer',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('outcome', models.CharField(choices=[('succeeded', 'The card was charged'), ('declined', 'The card was declined'), ('refused', 'The token is invalid'), ('pending', 'Not decided yet'), ('unknown', 'No usable answer'), ('not_sent', 'The charge was never requested'), ('missing', 'No such charge exists')], max_length=9)),
                ('duration_ms', models.IntegerField()),
                ('created_at', models.DateTimeField()),
                ('request_id', models.CharField(blank=True, default='', max_length=64)),
                ('charge', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='answers', to='payments.cardcharge')),
            ],
        ),
        migrations.AddIndex(
            model_name='cardcharge',
            index=models.Index(condition=models.Q(('state__in', ('submitted', 'pending')), ('awaits_fee', True), _connector='OR'), fields=['due_at'], name='cardcharge_next_inquiry'),
        ),
        migrations.AddIndex(
            model_name='cardcharge',
            index=models.Index(condition=models.Q(('state__in', ('submitted', 'pending'))), fields=['created_at'], name='cardcharge_oldest_open'),
        ),
        migrations.AddIndex(
            model_name='cardcharge',
            index=models.Index(condition=models.Q(('paid_at__isnull', False), ('settled_at__isnull', True)), fields=['acquirer', 'paid_at'], name='cardcharge_on_the_way'),
        ),
        migrations.AddIndex(
            model_name='cardcharge',
            index=models.Index(condition=models.Q(('charge_id', ''), _negated=True), fields=['charge_id'], name='cardcharge_by_charge_id'),
        ),
        migrations.AddConstraint(
            model_name='cardcharge',
            constraint=models.CheckConstraint(condition=models.Q(('state__in', ['submitted', 'pending', 'completed', 'refused'])), name='cardcharge_state_known'),
        ),
        migrations.AddConstraint(
            model_name='cardcharge',
            constraint=models.CheckConstraint(condition=models.Q(('settled_at__isnull', True), models.Q(('paid_at__isnull', False), ('unsettled__isnull', True)), _connector='OR'), name='cardcharge_settled_has_nothing_left'),
        ),
        migrations.AddConstraint(
            model_name='cardcharge',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('awaits_fee', False), ('unsettled__isnull', True)), models.Q(('awaits_fee', True), ('state', 'completed'), ('unsettled__isnull', True)), models.Q(('state', 'completed'), ('unsettled__gte', 0)), _connector='OR'), name='cardcharge_unsettled_if_completed'),
        ),
        migrations.AddConstraint(
            model_name='cardcharge',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('completed_at__isnull', True), ('state__in', ('submitted', 'pending'))), models.Q(models.Q(('state__in', ('submitted', 'pending')), _negated=True), ('completed_at__isnull', False)), _connector='OR'), name='cardcharge_completed_iff_not_open'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='cardcharge',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(condition="WHEN (OLD.state <> 'refused')", func="RAISE EXCEPTION 'only a charge that the acquirer refused is deleted' USING ERRCODE = 'insufficient_privilege';", hash='3e6c5efe80ad1918e4a77805d7d4d3ce51186404', operation='DELETE', pgid='pgtrigger_keep_rows_4da73', table='payments_cardcharge', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='cardcharge',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a charge is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='4406a5c7cb931809a0d6d19752ea1ab7927af726', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_4b534', table='payments_cardcharge', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='cardcharge',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."actor" IS DISTINCT FROM NEW."actor" OR OLD."request_id" IS DISTINCT FROM NEW."request_id" OR OLD."payment_id" IS DISTINCT FROM NEW."payment_id" OR OLD."acquirer" IS DISTINCT FROM NEW."acquirer" OR OLD."created_at" IS DISTINCT FROM NEW."created_at")) THEN RAISE EXCEPTION \'what was asked for never changes\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='6008a39aaab93129683df256c70298debed8078f', operation='UPDATE', pgid='pgtrigger_read_only_c59ab', table='payments_cardcharge', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='cardcharge',
            trigger=pgtrigger.compiler.Trigger(name='charge_id_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.charge_id <> '' AND NEW.charge_id IS DISTINCT FROM OLD.charge_id) THEN RAISE EXCEPTION 'a charge keeps the id of its acquirer' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='38455dbf5b757141e00236b0f2324a2d79e0dc58', operation='UPDATE', pgid='pgtrigger_charge_id_set_once_96053', table='payments_cardcharge', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='cardcharge',
            trigger=pgtrigger.compiler.Trigger(name='settled_at_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.settled_at IS NOT NULL AND NEW.settled_at IS DISTINCT FROM OLD.settled_at) THEN RAISE EXCEPTION 'a charge is settled once' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='709833ad1eb3e8ff8f36db355873fe287de105d1', operation='UPDATE', pgid='pgtrigger_settled_at_set_once_40be8', table='payments_cardcharge', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='cardcharge',
            trigger=pgtrigger.compiler.Trigger(name='transitions', sql=core.database.triggers.TriggerSql(func="IF (OLD.state <> NEW.state AND (OLD.state, NEW.state) NOT IN (('submitted', 'completed'), ('submitted', 'pending'), ('submitted', 'refused'), ('pending', 'completed'))) THEN RAISE EXCEPTION 'card charge cannot change from % to %', OLD.state, NEW.state USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='f6df8e805b881e30dad667ae0a10018219ebfa33', operation='UPDATE', pgid='pgtrigger_transitions_513d9', table='payments_cardcharge', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='cardcharge',
            trigger=pgtrigger.compiler.Trigger(name='state_final', sql=core.database.triggers.TriggerSql(func="IF (OLD.state NOT IN ('submitted', 'pending') AND NEW.state = OLD.state AND (NEW.completed_at, NEW.paid_at) IS DISTINCT FROM (OLD.completed_at, OLD.paid_at)) THEN RAISE EXCEPTION 'a charge keeps when it was completed' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='9baeeddeb4b2eb3f683fea8caa2354cbe71d3d68', operation='UPDATE', pgid='pgtrigger_state_final_78477', table='payments_cardcharge', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='payment',
            index=models.Index(fields=['merchant', 'status', 'created_at'], name='payment_filtered'),
        ),
        migrations.AddIndex(
            model_name='payment',
            index=models.Index(django.db.models.functions.comparison.Collate(django.db.models.functions.text.Lower('reference'), 'C'), models.F('merchant'), models.F('created_at'), condition=models.Q(('reference__isnull', False)), name='payment_by_reference'),
        ),
        migrations.AddIndex(
            model_name='payment',
            index=models.Index(condition=models.Q(('status', 'pending')), fields=['expires_at'], name='payment_next_to_expire'),
        ),
        migrations.AddIndex(
            model_name='payment',
            index=models.Index(condition=models.Q(('settlement_id__isnull', False)), fields=['settlement_id', 'created_at', 'id'], name='payment_by_settlement'),
        ),
        migrations.AddIndex(
            model_name='payment',
            index=models.Index(condition=models.Q(('payment_link_id__isnull', False)), fields=['payment_link_id', 'created_at', 'id'], name='payment_by_link'),
        ),
        migrations.AddIndex(
            model_name='payment',
            index=models.Index(condition=models.Q(('payment_link_id__isnull', False)), fields=['payment_link_id', 'status', 'expires_at'], name='payment_counted_by_link'),
        ),
        migrations.AddIndex(
            model_name='payment',
            index=models.Index(condition=models.Q(('bank_reference__isnull', False)), fields=['bank_reference'], name='payment_by_bank_reference'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.UniqueConstraint(condition=models.Q(('holds_reference', True), ('status', 'pending')), fields=('merchant', 'reference'), name='payment_open_reference_unique'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('qr_code_id', django.db.models.functions.text.Concat(models.Value('qr_'), django.db.models.functions.text.Substr('id', 5)))), name='payment_code_has_its_id'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['pending', 'succeeded', 'failed', 'expired', 'refunded'])), name='payment_status_known'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('payer_matches__in', ['yes', 'no', 'unknown'])), name='payment_payer_match_known'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('payer_matches__isnull', True), ('completed_at__isnull', False), _connector='OR'), name='payment_paid_has_payer_match'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('hold__isnull', True), models.Q(('payer_matches__isnull', False), ('status', 'succeeded'), models.Q(models.Q(('hold', 'payer_differs'), ('payer_matches', 'no')), models.Q(('hold', 'payer_unknown'), ('payer_matches', 'unknown')), _connector='OR')), _connector='OR'), name='payment_hold_of_its_payer'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('amount__gte', 1), ('amount__lte', 200000000)), name='payment_amount_in_range'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('currency', 'THB')), name='payment_currency_is_thb'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('completed_at__isnull', False), ('status__in', ['succeeded', 'refunded'])), models.Q(('completed_at__isnull', True), models.Q(('status__in', ['succeeded', 'refunded']), _negated=True)), _connector='OR'), name='payment_completed_iff_succeeded'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('fee__isnull', True), ('fee_vat__isnull', True)), models.Q(('completed_at__isnull', False), ('fee__isnull', False), ('fee_vat__isnull', False), ('fee__gte', 0), ('fee_vat__gte', 0), ('fee__lte', django.db.models.expressions.CombinedExpression(django.db.models.functions.comparison.Coalesce(models.F('amount_received'), models.F('amount')), '-', models.F('fee_vat')))), _connector='OR'), name='payment_fee_within_amount'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(('amount_refunded__gte', 0), ('amount_refunding__gte', 0), ('amount_refunded__lte', django.db.models.expressions.CombinedExpression(django.db.models.functions.comparison.Coalesce(models.F('amount_received'), models.F('amount')), '-', models.F('amount_refunding')))), name='payment_refunds_within_amount'),
        ),
        migrations.AddConstraint(
            model_name='payment',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('amount_refunded', 0), ('amount_refunding', 0)), ('status', 'succeeded'), models.Q(('amount_refunded', django.db.models.functions.comparison.Coalesce(models.F('amount_received'), models.F('amount'))), ('status', 'refunded')), _connector='OR'), name='payment_refunds_of_what_came_in'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(condition="WHEN (NOT (OLD.status = 'pending' AND OLD.qr_code_id IS NULL))", func="RAISE EXCEPTION 'only a card payment that was never tried is deleted' USING ERRCODE = 'insufficient_privilege';", hash='8e8d3bb5ac37614ea07dc119e7dd8bb5c5e99a28', operation='DELETE', pgid='pgtrigger_keep_rows_a7b16', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='no_truncate', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a payment is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='eb3171342c8fa41ae39be71dee1b5f6f0b33e624', level='STATEMENT', operation='TRUNCATE', pgid='pgtrigger_no_truncate_8c0f4', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='status_initial', sql=core.database.triggers.TriggerSql(condition="WHEN (NEW.status NOT IN ('pending', 'succeeded', 'failed'))", func="RAISE EXCEPTION 'a payment cannot begin like that' USING ERRCODE = 'check_violation';", hash='cc9798892039b2629f536b5caef234c75a6386d5', operation='INSERT', pgid='pgtrigger_status_initial_16575', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id" OR OLD."qr_code_id" IS DISTINCT FROM NEW."qr_code_id" OR OLD."amount" IS DISTINCT FROM NEW."amount" OR OLD."currency" IS DISTINCT FROM NEW."currency" OR OLD."reference" IS DISTINCT FROM NEW."reference" OR OLD."metadata"::pg_catalog.text IS DISTINCT FROM NEW."metadata"::pg_catalog.text OR OLD."client_account_digest" IS DISTINCT FROM NEW."client_account_digest" OR OLD."payment_link_id" IS DISTINCT FROM NEW."payment_link_id" OR OLD."created_at" IS DISTINCT FROM NEW."created_at" OR OLD."holds_reference" IS DISTINCT FROM NEW."holds_reference") OR OLD."description" IS DISTINCT FROM NEW."description" AND (current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND coalesce(NEW.description, \'\') = \'\' AND (OLD.status <> \'pending\' AND OLD.amount_refunding = 0)) IS NOT TRUE OR OLD."client_name" IS DISTINCT FROM NEW."client_name" AND (current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND coalesce(NEW.client_name, \'\') = \'\' AND (OLD.status <> \'pending\' AND OLD.amount_refunding = 0)) IS NOT TRUE OR OLD."client_bank_name" IS DISTINCT FROM NEW."client_bank_name" AND (current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND coalesce(NEW.client_bank_name, \'\') = \'\' AND (OLD.status <> \'pending\' AND OLD.amount_refunding = 0)) IS NOT TRUE OR OLD."client_bank_account_sealed" IS DISTINCT FROM NEW."client_bank_account_sealed" AND (current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND substr(OLD.client_bank_account_sealed, 1, 7) = \'sealed:\' AND substr(NEW.client_bank_account_sealed, 1, 7) = \'sealed:\') IS NOT TRUE AND (current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND coalesce(NEW.client_bank_account_sealed, \'\') = \'\' AND (OLD.status <> \'pending\' AND OLD.amount_refunding = 0)) IS NOT TRUE OR current_setting(\'qr.resealing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."expires_at" IS DISTINCT FROM NEW."expires_at" OR OLD."status" IS DISTINCT FROM NEW."status" OR OLD."payer_name" IS DISTINCT FROM NEW."payer_name" OR OLD."payer_bank_code" IS DISTINCT FROM NEW."payer_bank_code" OR OLD."bank_reference" IS DISTINCT FROM NEW."bank_reference" OR OLD."payer_matches" IS DISTINCT FROM NEW."payer_matches" OR OLD."hold" IS DISTINCT FROM NEW."hold" OR OLD."card_last4" IS DISTINCT FROM NEW."card_last4" OR OLD."card_brand" IS DISTINCT FROM NEW."card_brand" OR OLD."failure_code" IS DISTINCT FROM NEW."failure_code" OR OLD."authorize_uri" IS DISTINCT FROM NEW."authorize_uri" OR OLD."amount_refunded" IS DISTINCT FROM NEW."amount_refunded" OR OLD."amount_refunding" IS DISTINCT FROM NEW."amount_refunding" OR OLD."amount_received" IS DISTINCT FROM NEW."amount_received" OR OLD."fee" IS DISTINCT FROM NEW."fee" OR OLD."fee_vat" IS DISTINCT FROM NEW."fee_vat" OR OLD."has_exceptions" IS DISTINCT FROM NEW."has_exceptions" OR OLD."settlement_id" IS DISTINCT FROM NEW."settlement_id" OR OLD."updated_at" IS DISTINCT FROM NEW."updated_at" OR OLD."completed_at" IS DISTINCT FROM NEW."completed_at") OR current_setting(\'qr.erasing\', true) IS NOT DISTINCT FROM \'on\' AND (OLD."expires_at" IS DISTINCT FROM NEW."expires_at" OR OLD."status" IS DISTINCT FROM NEW."status" OR OLD."payer_bank_code" IS DISTINCT FROM NEW."payer_bank_code" OR OLD."bank_reference" IS DISTINCT FROM NEW."bank_reference" OR OLD."payer_matches" IS DISTINCT FROM NEW."payer_matches" OR OLD."hold" IS DISTINCT FROM NEW."hold" OR OLD."card_last4" IS DISTINCT FROM NEW."card_last4" OR OLD."card_brand" IS DISTINCT FROM NEW."card_brand" OR OLD."failure_code" IS DISTINCT FROM NEW."failure_code" OR OLD."authorize_uri" IS DISTINCT FROM NEW."authorize_uri" OR OLD."amount_refunded" IS DISTINCT FROM NEW."amount_refunded" OR OLD."amount_refunding" IS DISTINCT FROM NEW."amount_refunding" OR OLD."amount_received" IS DISTINCT FROM NEW."amount_received" OR OLD."fee" IS DISTINCT FROM NEW."fee" OR OLD."fee_vat" IS DISTINCT FROM NEW."fee_vat" OR OLD."has_exceptions" IS DISTINCT FROM NEW."has_exceptions" OR OLD."settlement_id" IS DISTINCT FROM NEW."settlement_id" OR OLD."updated_at" IS DISTINCT FROM NEW."updated_at" OR OLD."completed_at" IS DISTINCT FROM NEW."completed_at")) THEN RAISE EXCEPTION \'what was asked for never changes\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='27da6b015f978dc699ae5dbb27f8630d914d9682', operation='UPDATE', pgid='pgtrigger_read_only_ad630', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='payer_name_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.payer_name IS NOT NULL AND NEW.payer_name IS DISTINCT FROM OLD.payer_name AND (current_setting('qr.erasing', true) IS NOT DISTINCT FROM 'on' AND coalesce(NEW.payer_name, '') = '' AND (OLD.status <> 'pending' AND OLD.amount_refunding = 0)) IS NOT TRUE) THEN RAISE EXCEPTION 'a payment keeps its payer' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='a516af9d0b9884ec021a64ee4fd1c71ec4927408', operation='UPDATE', pgid='pgtrigger_payer_name_set_once_9d09c', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='payer_bank_code_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.payer_bank_code IS NOT NULL AND NEW.payer_bank_code IS DISTINCT FROM OLD.payer_bank_code) THEN RAISE EXCEPTION 'a payment keeps its payer' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='b59aecba88ea2063ce266b547251b9f229b19011', operation='UPDATE', pgid='pgtrigger_payer_bank_code_set_once_381fb', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='payer_account_sealed_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.payer_account_sealed IS NOT NULL AND NEW.payer_account_sealed IS DISTINCT FROM OLD.payer_account_sealed AND (current_setting('qr.resealing', true) IS NOT DISTINCT FROM 'on' AND substr(OLD.payer_account_sealed, 1, 7) = 'sealed:' AND substr(NEW.payer_account_sealed, 1, 7) = 'sealed:') IS NOT TRUE AND (current_setting('qr.erasing', true) IS NOT DISTINCT FROM 'on' AND coalesce(NEW.payer_account_sealed, '') = '' AND (OLD.status <> 'pending' AND OLD.amount_refunding = 0)) IS NOT TRUE) THEN RAISE EXCEPTION 'a payment keeps its payer' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='8a97d659628ccc044a68e532cb985d9582b04ec7', operation='UPDATE', pgid='pgtrigger_payer_account_sealed_set_once_7bcf4', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='bank_reference_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.bank_reference IS NOT NULL AND NEW.bank_reference IS DISTINCT FROM OLD.bank_reference) THEN RAISE EXCEPTION 'a payment keeps its payer' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='5c2edc3c08435d216317733c38cab372b79db39b', operation='UPDATE', pgid='pgtrigger_bank_reference_set_once_ac95b', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='payer_compared_once', sql=core.database.triggers.TriggerSql(func="IF (NEW.payer_matches IS DISTINCT FROM OLD.payer_matches AND NOT (OLD.payer_matches IS NULL AND OLD.completed_at IS NULL) AND (OLD.payer_matches = 'unknown' AND NEW.payer_matches IN ('yes', 'no')) IS NOT TRUE) THEN RAISE EXCEPTION 'a payment keeps whether its payer matches' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='928bedb6f0c49c99c0263489d77cae5c1cd6c320', operation='UPDATE', pgid='pgtrigger_payer_compared_once_e5241', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='hold_only_ends', sql=core.database.triggers.TriggerSql(func="IF (NEW.hold IS DISTINCT FROM OLD.hold AND OLD.completed_at IS NOT NULL AND NEW.hold IS NOT NULL AND OLD.hold IS DISTINCT FROM 'payer_unknown') THEN RAISE EXCEPTION 'a payment is not held again' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='21a8246d0b6a8d0e55eabc23f99b94141cb6cf2c', operation='UPDATE', pgid='pgtrigger_hold_only_ends_0b02a', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='completed_at_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.completed_at IS NOT NULL AND NEW.completed_at IS DISTINCT FROM OLD.completed_at) THEN RAISE EXCEPTION 'a payment keeps when it was paid' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='f4fc5f1848f52409b435732353c107194c4143f4', operation='UPDATE', pgid='pgtrigger_completed_at_set_once_5bfd9', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='paid_after_creation', sql=core.database.triggers.TriggerSql(func="IF (OLD.completed_at IS NULL AND NEW.completed_at < NEW.created_at - interval '90 seconds') THEN RAISE EXCEPTION 'a payment is not paid before it was created' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='c622fae1d1111c4aa9feec469a506a6a91c5f066', operation='UPDATE', pgid='pgtrigger_paid_after_creation_78dbd', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='status_final', sql=core.database.triggers.TriggerSql(func="IF (OLD.status NOT IN ('pending') AND NEW.status = OLD.status AND (NEW.card_last4, NEW.card_brand, NEW.failure_code, NEW.authorize_uri) IS DISTINCT FROM (OLD.card_last4, OLD.card_brand, OLD.failure_code, OLD.authorize_uri)) THEN RAISE EXCEPTION 'a payment keeps how it ended' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='9a37729f0b314817430c4ea8c1077870de6cc608', operation='UPDATE', pgid='pgtrigger_status_final_47379', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='payer_of_paid', sql=core.database.triggers.TriggerSql(func="IF (NEW.status NOT IN ('succeeded', 'refunded') AND num_nonnulls(NEW.payer_name, NEW.payer_bank_code, NEW.payer_account_sealed, NEW.bank_reference) > num_nonnulls(OLD.payer_name, OLD.payer_bank_code, OLD.payer_account_sealed, OLD.bank_reference)) THEN RAISE EXCEPTION 'only a payment that succeeded has a payer' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='f73dbce7d05c6096f7636513c4727a15a1ec13a5', operation='UPDATE', pgid='pgtrigger_payer_of_paid_cf4e1', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='received_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.completed_at IS NOT NULL AND NEW.amount_received IS DISTINCT FROM OLD.amount_received) THEN RAISE EXCEPTION 'the received amount of a payment never changes' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='515c7ba07578d81ea39bc469e4a08fda0622850c', operation='UPDATE', pgid='pgtrigger_received_once_3fb31', table='payments_payment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='payment',
            trigger=pgtrigger.compiler.Trigger(name='transitions', sql=core.database.triggers.TriggerSql(func="IF (OLD.status <> NEW.status AND (OLD.status, NEW.status) NOT IN (('pending', 'expired'), ('pending', 'failed'), ('pending', 'succeeded'), ('expired', 'succeeded'), ('succeeded', 'refunded'))) THEN RAISE EXCEPTION 'payment cannot change from % to %', OLD.status, NEW.status USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='3a87e3886fd729958fa339c49fd9cdfbf372369a', operation='UPDATE', pgid='pgtrigger_transitions_3e647', table='payments_payment', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='feeterms',
            constraint=models.UniqueConstraint(fields=('merchant', 'is_of_standby', 'starts_on'), name='feeterms_once_a_day'),
        ),
        migrations.AddConstraint(
            model_name='feeterms',
            constraint=models.CheckConstraint(condition=models.Q(('fixed__gte', 0), ('fixed__lte', 10000), ('rate__gte', 0), ('rate__lte', 2000), ('vat_rate__gte', 0), ('vat_rate__lte', 2000)), name='feeterms_in_range'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='feeterms',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'terms of fees are never changed' USING ERRCODE = 'insufficient_privilege';", hash='ae6ba3b310dd6e78fbd73ff865445002001f15ea', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_f9902', table='payments_feeterms', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='feeterms',
            trigger=pgtrigger.compiler.Trigger(name='starts_later', sql=core.database.triggers.TriggerSql(condition="WHEN (NEW.starts_on <= (NEW.created_at AT TIME ZONE 'Asia/Bangkok')::date)", func="RAISE EXCEPTION 'terms of fees begin on a later day' USING ERRCODE = 'check_violation';", hash='bbb8cee44bfd46d8df403f168e978aef668bebf7', operation='INSERT', pgid='pgtrigger_starts_later_27960', table='payments_feeterms', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='chargeanswer',
            index=models.Index(fields=['charge', 'created_at'], name='chargeanswer_of_charge'),
        ),
        migrations.AddConstraint(
            model_name='chargeanswer',
            constraint=models.CheckConstraint(condition=models.Q(('outcome__in', ['succeeded', 'declined', 'refused', 'pending', 'unknown', 'not_sent', 'missing'])), name='chargeanswer_outcome_known'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='chargeanswer',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'an answer of an acquirer is never changed' USING ERRCODE = 'insufficient_privilege';", hash='642ab98f18e85e838f94fa6c9bc7bbcd6ddb6d24', level='STATEMENT', operation='UPDATE OR DELETE OR TRUNCATE', pgid='pgtrigger_append_only_cffe7', table='payments_chargeanswer', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
