"""Access control data of the REST API: tokens, audit log and allowed properties."""
