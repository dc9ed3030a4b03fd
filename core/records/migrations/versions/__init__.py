"""One module per schema version, in the order of their numbers."""
