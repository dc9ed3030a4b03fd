"""Migrations of the records database: each version of the schema from the one before.

A version is written by hand and never edited once released. There is no downgrade: restore a
backup. SQLite rebuilds a table to alter it (`op.batch_alter_table`), which drops the triggers on
it: such a version has to create them anew.
"""
