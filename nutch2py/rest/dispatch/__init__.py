"""Request dispatch of the REST API: authorization, operations, OpenAPI and server-sent events."""
