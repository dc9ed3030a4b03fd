"""Rehearsals: an endpoint of stated speed and a stand-in for the reference client.

Nothing measured here is a measurement; the rules want the unmodified reference client for that. The
endpoint calls itself `pareto-rehearsal` in every response and the client writes the version
`0.1.0+rehearsal` wherever the reference client writes its own.
"""
