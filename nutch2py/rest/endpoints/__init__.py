"""Endpoints of the REST API.

Exports: ``api_v1``, ``nutch_api``, ``job_events.JobEventStream``.
"""
