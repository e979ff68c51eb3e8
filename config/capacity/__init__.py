"""`thaiqr-server capacity`: what this machine holds, by the processes of production on their own database."""
