from pathlib import Path

import core.database.triggers
import django.contrib.auth.models
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from console.people import roles
from django.db import migrations, models

SQL = Path(__file__).parents[1] / "sql"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("console", "0001_initial"),
        ("merchants", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name='Person',
            fields=[
            ],
            options={
                'proxy': True,
                'default_permissions': (),
                'indexes': [],
                'constraints': [],
            },
            bases=('auth.user',),
            managers=[
                ('objects', django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('role', models.CharField(choices=[('owner', 'Owner'), ('manager', 'Manager'), ('cashier', 'Cashier'), ('accountant', 'Accountant'), ('developer', 'Developer')], max_length=10, verbose_name='role')),
                ('created_at', models.DateTimeField(verbose_name='since')),
                ('ended_at', models.DateTimeField(null=True)),
                ('merchant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='merchants.merchant')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='memberships', to='shop.person')),
            ],
            options={
                'verbose_name': 'person of a merchant',
                'verbose_name_plural': 'people of merchants',
                'permissions': [('invite_owner', 'Can invite owners of shops'), ('look_at_shop', 'Can look at a shop as its owner sees it')],
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('user', 'merchant'), name='membership_one_role'), models.CheckConstraint(condition=models.Q(('role__in', ['owner', 'manager', 'cashier', 'accountant', 'developer'])), name='membership_role_known')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='membership',
            trigger=pgtrigger.compiler.Trigger(name='keep_rows', sql=core.database.triggers.TriggerSql(func="RAISE EXCEPTION 'what a person did for a merchant stays on record' USING ERRCODE = 'insufficient_privilege';", hash='060049a8633e21eb2395aea4924f16fcca007de9', level='STATEMENT', operation='DELETE OR TRUNCATE', pgid='pgtrigger_keep_rows_f1cc8', table='shop_membership', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='membership',
            trigger=pgtrigger.compiler.Trigger(name='read_only', sql=core.database.triggers.TriggerSql(func='IF ((OLD."id" IS DISTINCT FROM NEW."id" OR OLD."user_id" IS DISTINCT FROM NEW."user_id" OR OLD."merchant_id" IS DISTINCT FROM NEW."merchant_id" OR OLD."role" IS DISTINCT FROM NEW."role" OR OLD."created_at" IS DISTINCT FROM NEW."created_at")) THEN RAISE EXCEPTION \'another role is another row\' USING ERRCODE = \'check_violation\'; END IF; RETURN NEW;', hash='0cfff53e151e09f36441e68ec4d24783fd9ffe6e', operation='UPDATE', pgid='pgtrigger_read_only_fadd6', table='shop_membership', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='membership',
            trigger=pgtrigger.compiler.Trigger(name='ended_at_set_once', sql=core.database.triggers.TriggerSql(func="IF (OLD.ended_at IS NOT NULL AND NEW.ended_at IS DISTINCT FROM OLD.ended_at) THEN RAISE EXCEPTION 'a membership that ended stays ended' USING ERRCODE = 'check_violation'; END IF; RETURN NEW;", hash='47121836a4b1701ee9b19b40e3f8f9d0caae0139', operation='UPDATE', pgid='pgtrigger_ended_at_set_once_b69b1', table='shop_membership', when='BEFORE')),
        ),
        migrations.RunPython(roles.apply, migrations.RunPython.noop),
        *(migrations.RunSQL(path.read_text()) for path in sorted(SQL.glob("*.sql"))),
    ]
