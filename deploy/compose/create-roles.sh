#!/bin/sh
# PostgreSQL's image runs this once, when it creates the cluster: the owner, the service, and reports.
# No role of the service is a superuser. See docs/decisions/80-database-roles-and-backups.md.
set -eu
psql --username="$POSTGRES_USER" --dbname=postgres --set=ON_ERROR_STOP=1 \
  --set=owner_password="$THAIQR_OWNER_PASSWORD" --set=password="$THAIQR_DATABASE_PASSWORD" <<'SQL'
CREATE ROLE thaiqr_app NOLOGIN;
CREATE ROLE thaiqr_reports NOLOGIN;
CREATE ROLE thaiqr_shop NOLOGIN ROLE thaiqr_app;
CREATE ROLE thaiqr_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE thaiqr LOGIN PASSWORD :'password' IN ROLE thaiqr_app;
CREATE DATABASE thaiqr OWNER thaiqr_owner;
SQL
