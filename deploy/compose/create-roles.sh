#!/bin/sh
# Makes the roles and the empty database: the owner, the service, and reports. PostgreSQL's image runs it once, when it
# creates the cluster, and so does `thaiqr-server install`. No role of the service is a superuser. See
# docs/decisions/80-database-roles-and-backups.md.
set -eu
export THAIQR_OWNER_PASSWORD THAIQR_DATABASE_PASSWORD
# The database comes after the roles, so after a failure with one of them all can begin again.
psql --quiet --username="$POSTGRES_USER" --dbname=postgres --set=ON_ERROR_STOP=1 <<'SQL'
\getenv owner_password THAIQR_OWNER_PASSWORD
\getenv password THAIQR_DATABASE_PASSWORD
DROP ROLE IF EXISTS thaiqr, thaiqr_owner, thaiqr_shop, thaiqr_reports, thaiqr_app;
CREATE ROLE thaiqr_app NOLOGIN;
CREATE ROLE thaiqr_reports NOLOGIN;
CREATE ROLE thaiqr_shop NOLOGIN ROLE thaiqr_app;
CREATE ROLE thaiqr_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE thaiqr LOGIN PASSWORD :'password' IN ROLE thaiqr_app;
CREATE DATABASE thaiqr OWNER thaiqr_owner;
\connect thaiqr
-- The age of the newest backup.
GRANT EXECUTE ON FUNCTION pg_ls_waldir() TO thaiqr_app;
SQL
