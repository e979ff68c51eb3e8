from pathlib import Path

import core.database.columns
import core.database.triggers
import django.contrib.postgres.fields
import django.db.models.deletion
import merchants.models
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
            name='ApiKey',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('public_id', models.CharField(max_length=8)),
                ('digest', models.BinaryField(unique=True)),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField(blank=True, null=True)),
                ('revoked_at', models.DateTimeField(blank=True, null=True)),
                ('last_used_at', models.DateTimeField(blank=True, null=True)),
                ('scopes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('payments:read', 'Read everything except webhook secrets and evidence'), ('evidence:read', 'Read the evidence of payments, with the names and accounts of payers'), ('payments:write', 'Create QR codes and charge cards'), ('links:write', 'Create and deactivate payment links'), ('refunds:write', 'Refund payments'), ('exceptions:write', 'Accept or return money that does not fit'), ('withdrawals:write', 'Withdraw money'), ('webhooks:write', 'Manage webhooks and read their secrets'), ('destinations:write', 'Send messages about events to LINE and by email')], max_length=20), default=merchants.models.all_scopes, size=None)),
                ('networks', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=43), blank=True, default=list, size=None)),
                ('seen_networks', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=43), blank=True, default=list, size=None)),
                ('issued_by', models.CharField(blank=True, default='', max_length=160)),
                ('revoked_by', models.CharField(blank=True, default='', max_length=160)),
            ],
            options={
                'verbose_name': 'API key',
                'verbose_name_plural': 'API keys',
                'permissions': [('issue_key', 'Can issue API keys'), ('issue_withdrawal_key', 'Can issue API keys that can withdraw'), ('roll_key', 'Can replace API keys'), ('revoke_key', 'Can revoke API keys')],
            },
        ),
        migrations.CreateModel(
            name='BankConnection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('bank', models.CharField(max_length=20)),
                ('credentials_sealed', models.TextField(editable=False)),
                ('address_secret_digest', models.BinaryField(unique=True)),
                ('callers', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=43), blank=True, default=list, size=None)),
                ('created_at', models.DateTimeField()),
                ('updated_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='Merchant',
            fields=[
                ('id', core.database.columns.PublicIdKey(db_collation='C', max_length=31, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=140)),
                ('mode', models.CharField(choices=[('test', 'Test'), ('live', 'Live')], max_length=4)),
                ('bank', models.CharField(blank=True, default='', max_length=20)),
                ('biller_id', models.CharField(blank=True, default='', max_length=15)),
                ('reference2', models.CharField(blank=True, default='', max_length=20)),
                ('reference3', models.CharField(blank=True, default='', max_length=20)),
                ('standby_bank', models.CharField(blank=True, db_default='', default='', max_length=20)),
                ('standby_biller_id', models.CharField(blank=True, db_default='', default='', max_length=15)),
                ('standby_reference2', models.CharField(blank=True, db_default='', default='', max_length=20)),
                ('standby_reference3', models.CharField(blank=True, db_default='', default='', max_length=20)),
                ('uses_standby', models.BooleanField(db_default=False, default=False, verbose_name='new codes go to the stand-by')),
                ('bank_changed_at', models.DateTimeField(blank=True, null=True)),
                ('late_money', models.CharField(choices=[('review', 'review'), ('accept', 'Accept')], default='review', max_length=6, verbose_name='paid after expiry')),
                ('refuses_open_reference', models.BooleanField(db_default=False, default=False, verbose_name='one open code per reference')),
                ('holds_payers', models.CharField(choices=[('off', 'none'), ('no', 'if another person paid than the named client'), ('unknown', 'also if the bank reports too little about who paid')], db_default='off', default='off', max_length=7, verbose_name='held payments')),
                ('may_withdraw_unsettled', models.BooleanField(db_default=False, default=False, verbose_name='withdraws before settlement')),
                ('page_origins', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=255), blank=True, db_default=[], default=list, size=None, verbose_name='sites of the shop')),
                ('tax_id', models.CharField(blank=True, db_default='', default='', max_length=13)),
                ('tax_branch', models.CharField(db_default='00000', default='00000', max_length=5, verbose_name='branch')),
                ('withholds_tax', models.BooleanField(db_default=False, default=False)),
                ('shows_proof', models.BooleanField(db_default=False, default=False, verbose_name='proof page')),
                ('usual_amount', models.BigIntegerField(editable=False, null=True)),
                ('created_at', models.DateTimeField()),
                ('suspended_at', models.DateTimeField(blank=True, null=True)),
                ('moved_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'permissions': [('suspend_merchant', 'Can suspend merchants, and lift that'), ('create_merchant', 'Can create merchants'), ('rename_merchant', 'Can rename merchants'), ('set_late_money', 'Can decide what happens to payments after expiry'), ('connect_bank', 'Can connect merchants to their banks'), ('test_connection', 'Can test the connections of merchants to their banks'), ('set_open_references', 'Can decide whether a reference has one open code'), ('set_holds', 'Can decide which payments are held for their payer'), ('set_page_origins', 'Can name the sites of a shop for its payment page'), ('set_page_settings', 'Can set how payment pages show a shop, and whom payers can ask'), ('set_unsettled', 'Can decide whether money can leave before the acquirer has paid it'), ('set_tax_details', 'Can set the tax ids of merchants, and whether they withhold tax'), ('set_proof', 'Can decide whether a merchant has a public proof page')],
            },
        ),
        migrations.CreateModel(
            name='PageSettings',
            fields=[
                ('merchant', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='+', serialize=False, to='merchants.merchant')),
                ('logo', models.BinaryField(null=True)),
                ('logo_version', models.GeneratedField(db_persist=True, expression=models.Func(models.Func('logo', function='sha256'), models.Value('hex'), function='encode'), output_field=models.CharField(max_length=64))),
                ('color', models.CharField(blank=True, max_length=7, verbose_name='colour')),
                ('phone', models.CharField(blank=True, max_length=30)),
                ('email', models.CharField(blank=True, max_length=254)),
                ('line_id', models.CharField(blank=True, max_length=30, verbose_name='LINE id')),
                ('offers_new_code', models.BooleanField(default=False)),
                ('updated_at', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'payment page',
                'verbose_name_plural': 'payment page',
                'default_permissions': (),
            },
        ),
        migrations.AddConstraint(
            model_name='merchant',
            constraint=models.CheckConstraint(condition=models.Q(('mode__in', ['test', 'live'])), name='merchant_mode_known'),
        ),
        migrations.AddConstraint(
            model_name='merchant',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('bank', 'sandbox'), ('mode', 'test')), models.Q(('mode', 'live'), models.Q(('bank', 'sandbox'), _negated=True)), _connector='OR'), name='merchant_sandbox_iff_test'),
        ),
        migrations.AddConstraint(
            model_name='merchant',
            constraint=models.CheckConstraint(condition=models.Q(('late_money__in', ['review', 'accept'])), name='merchant_late_money_known'),
        ),
        migrations.AddConstraint(
            model_name='merchant',
            constraint=models.CheckConstraint(condition=models.Q(('holds_payers__in', ['off', 'no', 'unknown'])), name='merchant_holds_payers_known'),
        ),
        migrations.AddConstraint(
            model_name='merchant',
            constraint=models.CheckConstraint(condition=models.Q(('page_origins__len__lte', 10)), name='merchant_few_page_origins'),
        ),
        migrations.AddConstraint(
            model_name='merchant',
            constraint=models.CheckConstraint(condition=models.Q(('tax_branch__regex', '^[0-9]{5}$'), ('tax_id__regex', '^([0-9]{13})?$')), name='merchant_tax_id_has_its_digits'),
        ),
        migrations.AddConstraint(
            model_name='merchant',
            constraint=models.CheckConstraint(condition=models.Q(('moved_at__isnull', True), models.Q(('suspended_at__isnull', False), ('suspended_at__lte', models.F('moved_at'))), _connector='OR'), name='merchant_moved_is_suspended'),
        ),
        migrations.AddConstraint(
            model_name='merchant',
            constraint=models.UniqueConstraint(condition=models.Q(('biller_id', ''), _negated=True), fields=('bank', 'biller_id'), name='merchant_biller_unique'),
        ),
        migrations.AddConstraint(
            model_name='merchant',
            constraint=models.UniqueConstraint(condition=models.Q(('standby_bank', ''), _negated=True), fields=('standby_bank', 'standby_biller_id'), name='merchant_standby_unique'),
        ),
        migrations.AddConstraint(
            model_name='merchant',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('standby_bank', ''), ('standby_biller_id', ''), ('uses_standby', False)), models.Q(('mode', 'live'), ('standby_biller_id__regex', '^[0-9]{15}$'), models.Q(('standby_bank', ''), _negated=True), models.Q(('bank', ''), _negated=True), models.Q(('standby_bank', models.F('bank')), _negated=True)), _connector='OR'), name='merchant_standby_is_another_bank'),
        ),
        migrations.AddConstraint(
            model_name='merchant',
            constraint=models.CheckConstraint(condition=models.Q(('uses_standby', False), ('bank_changed_at__isnull', False), _connector='OR'), name='merchant_standby_since'),
        ),
        migrations.AddConstraint(
            model_name='merchant',
            constraint=models.CheckConstraint(condition=models.Q(('shows_proof', False), ('mode', 'live'), _connector='OR'), name='merchant_proof_is_live'),
        ),
        migrations.AddField(
            model_name='bankconnection',
            name='merchant',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='bank_connections', to='merchants.merchant'),
        ),
        migrations.AddField(
            model_name='apikey',
            name='merchant',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='keys', to='merchants.merchant'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='merchant',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'a merchant is never deleted' USING ERRCODE = 'insufficient_privilege';", hash='fbda11db4d3f484273b8c2cf20dfa027bbc2f4e8', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_fdd7a', table='merchants_merchant', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='merchant',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id")) THEN RAISE EXCEPTION \'a merchant keeps its id\' USING ERRCODE = \'insufficient_privilege\'; END IF; RETURN NEW;', hash='025d3abe6f8bd0267b38c7a5b48ee809eee5e7bd', operation='UPDATE', pgid='pgtrigger_read_only_08940', table='merchants_merchant', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='merchant',
            trigger=pgtrigger.compiler.Trigger(name='tax_id_is_checked', sql=core.database.triggers.TriggerSql(condition="WHEN (NEW.tax_id <> '' AND ascii(substr(NEW.tax_id, 13, 1)) - 48 <> mod(11 - mod(13 * (ascii(substr(NEW.tax_id, 1, 1)) - 48) + 12 * (ascii(substr(NEW.tax_id, 2, 1)) - 48) + 11 * (ascii(substr(NEW.tax_id, 3, 1)) - 48) + 10 * (ascii(substr(NEW.tax_id, 4, 1)) - 48) + 9 * (ascii(substr(NEW.tax_id, 5, 1)) - 48) + 8 * (ascii(substr(NEW.tax_id, 6, 1)) - 48) + 7 * (ascii(substr(NEW.tax_id, 7, 1)) - 48) + 6 * (ascii(substr(NEW.tax_id, 8, 1)) - 48) + 5 * (ascii(substr(NEW.tax_id, 9, 1)) - 48) + 4 * (ascii(substr(NEW.tax_id, 10, 1)) - 48) + 3 * (ascii(substr(NEW.tax_id, 11, 1)) - 48) + 2 * (ascii(substr(NEW.tax_id, 12, 1)) - 48), 11), 10))", func="RAISE EXCEPTION 'the tax id has another check digit' USING ERRCODE = 'check_violation';", hash='baba4a2be2765ca965fe202a90863465e712b041', operation='INSERT OR UPDATE', pgid='pgtrigger_tax_id_is_checked_23ff0', table='merchants_merchant', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='merchant',
            trigger=pgtrigger.compiler.Trigger(name='keeps_used_standby', sql=core.database.triggers.TriggerSql(func="IF (OLD.bank_changed_at IS NOT NULL AND (NEW.bank_changed_at IS NULL OR (OLD.standby_bank, OLD.standby_biller_id) <> (NEW.standby_bank, NEW.standby_biller_id))) THEN RAISE EXCEPTION 'a merchant whose codes went to its stand-by keeps that bank and biller id' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='b206f3f00e2db0b34ad127bacc4d0ca60634c5b2', operation='UPDATE', pgid='pgtrigger_keeps_used_standby_90950', table='merchants_merchant', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='pagesettings',
            index=models.Index(condition=models.Q(('logo__isnull', False)), fields=['logo_version'], name='pagesettings_by_logo'),
        ),
        migrations.AddConstraint(
            model_name='pagesettings',
            constraint=models.CheckConstraint(condition=models.Q(('color__regex', '^(#[0-9a-f]{6})?$')), name='pagesettings_color_is_hex'),
        ),
        migrations.AddConstraint(
            model_name='pagesettings',
            constraint=models.CheckConstraint(condition=models.Q(('email__regex', '^([^[:space:]<>@]+@[^[:space:]<>@]+)?$'), ('line_id__regex', '^(@?[a-z0-9._-]{2,29})?$'), ('phone__regex', '^([+0-9][0-9 ()-]{2,29})?$')), name='pagesettings_contact_is_plain'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='pagesettings',
            trigger=pgtrigger.compiler.Trigger(name='logo_is_small_png', sql=core.database.triggers.TriggerSql(condition="WHEN (octet_length(NEW.logo) > 200000 OR substring(NEW.logo FOR 8) <> '\\x89504e470d0a1a0a'::bytea)", func="RAISE EXCEPTION 'a logo is a PNG of at most 200000 bytes' USING ERRCODE = 'check_violation';", hash='2c59ffb4ecac3671a0df2939bb641ae057b27122', operation='INSERT OR UPDATE', pgid='pgtrigger_logo_is_small_png_7b8d4', table='merchants_pagesettings', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='bankconnection',
            constraint=models.UniqueConstraint(fields=('merchant', 'bank'), name='bankconnection_one_at_each_bank'),
        ),
        migrations.AddConstraint(
            model_name='apikey',
            constraint=models.UniqueConstraint(fields=('public_id',), name='api_key_public_id_unique'),
        ),
        migrations.AddConstraint(
            model_name='apikey',
            constraint=models.CheckConstraint(condition=models.Q(('scopes__contained_by', ['payments:read', 'evidence:read', 'payments:write', 'links:write', 'refunds:write', 'exceptions:write', 'withdrawals:write', 'webhooks:write', 'destinations:write']), ('scopes__len__gte', 1)), name='api_key_scopes_known'),
        ),
        migrations.AddConstraint(
            model_name='apikey',
            constraint=models.CheckConstraint(condition=models.Q(('seen_networks__len__lte', 20)), name='api_key_seen_networks_limited'),
        ),
        migrations.AddConstraint(
            model_name='apikey',
            constraint=models.CheckConstraint(condition=models.Q(('revoked_by', ''), ('revoked_at__isnull', False), _connector='OR'), name='api_key_revoked_by_if_revoked'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='apikey',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'an API key is revoked, never deleted' USING ERRCODE = 'insufficient_privilege';", hash='c9c1484f6fb3c27d00ffecd50f72b840ab770bc4', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_7efe7', table='merchants_apikey', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='apikey',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id" OR OLD."public_id" IS DISTINCT FROM NEW."public_id" OR OLD."digest" IS DISTINCT FROM NEW."digest" OR OLD."created_at" IS DISTINCT FROM NEW."created_at" OR OLD."scopes" IS DISTINCT FROM NEW."scopes" OR OLD."networks" IS DISTINCT FROM NEW."networks" OR OLD."issued_by" IS DISTINCT FROM NEW."issued_by")) THEN RAISE EXCEPTION \'an API key keeps what it was issued with\' USING ERRCODE = \'insufficient_privilege\'; END IF; RETURN NEW;', hash='c673653aace8c20524775a7a6934cadd19f683a3', operation='UPDATE', pgid='pgtrigger_read_only_5b850', table='merchants_apikey', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='apikey',
            trigger=pgtrigger.compiler.Trigger(name='stays_revoked', sql=core.database.triggers.TriggerSql(func="IF (OLD.revoked_at IS NOT NULL AND (OLD.revoked_at, OLD.revoked_by) IS DISTINCT FROM (NEW.revoked_at, NEW.revoked_by)) THEN RAISE EXCEPTION 'a revoked API key stays revoked' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NEW;", hash='757819230211ff7ff2cba844eb8f3b3016bca59e', operation='UPDATE', pgid='pgtrigger_stays_revoked_34b5d', table='merchants_apikey', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='apikey',
            trigger=pgtrigger.compiler.Trigger(name='expires_no_later', sql=core.database.triggers.TriggerSql(func="IF (OLD.expires_at IS NOT NULL AND (NEW.expires_at IS NULL OR NEW.expires_at > OLD.expires_at)) THEN RAISE EXCEPTION 'an API key never expires later than it was to' USING ERRCODE = 'insufficient_privilege'; END IF; RETURN NEW;", hash='dfa81af5503ca155c13e536fbead03b2a68ab811', operation='UPDATE', pgid='pgtrigger_expires_no_later_ff4ea', table='merchants_apikey', when='BEFORE')),
        ),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
