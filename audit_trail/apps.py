from django.apps import AppConfig


class AuditTrailApp(AppConfig):
    name = "audit_trail"

    def ready(self) -> None:
        from audit_trail import recording

        self.recording = recording
