"""Alembic's entry: runs the migrations on the connection that `core.records.schema` hands in."""

from alembic import context

from core.records.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    version_table=context.config.attributes["version_table"],
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
