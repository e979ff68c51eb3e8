from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('payments', '0006_keep_how_it_ended'),
    ]

    operations = [
        migrations.AddField(
            model_name='payment',
            name='client_account_digest',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=64),
        ),
    ]
