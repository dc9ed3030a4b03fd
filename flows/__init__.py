"""The order of a campaign: Prefect flows over the tasks, and the command line."""
