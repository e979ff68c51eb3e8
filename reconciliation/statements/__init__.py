"""Statement files of banks: one module for each format, and what is done with their lines."""
