"""Request dispatch of the REST API: authorization, operations, OpenAPI and server-sent events.

Exports: ``authorization.Authorizer``, ``operation.Operation``, ``operation.ApiCall``, ``sse.event_stream``.
"""
