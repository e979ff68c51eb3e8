from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('webhooks', '0002_event_feed'),
    ]

    operations = [
        migrations.AddField(
            model_name='event',
            name='traceparent',
            field=models.CharField(editable=False, help_text='Its place in a trace, see core.telemetry.', max_length=55, null=True),
        ),
    ]
