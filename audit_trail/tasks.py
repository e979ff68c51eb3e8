from celery import shared_task

from audit_trail import chain


@shared_task(name="audit_trail.chain_waiting")
def chain_waiting() -> None:
    chain.chain_waiting()
