"""Endpoints of the REST API."""
