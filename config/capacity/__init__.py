"""`thaiqr-server capacity`: what this machine holds, by the processes of production on their own database.

`python -m bench` uses the same load: the shops with their bank and webhooks, and the client.
"""
