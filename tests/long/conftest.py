"""The slow tests use the places of the end-to-end tests."""

from tests.flows.conftest import bare_place, place

__all__ = ["bare_place", "place"]
