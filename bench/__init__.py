"""Measures what orchestration costs and how it grows; `python -m bench` prints one table."""
