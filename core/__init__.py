"""The field: pure functions and frozen values; nothing here knows Prefect, HTTP or processes."""
