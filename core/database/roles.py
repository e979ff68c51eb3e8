"""The names of the roles that `operations.data_protection.database_roles` grants to."""

APPLICATION, REPORTS, SHOP = "thaiqr_app", "thaiqr_reports", "thaiqr_shop"
