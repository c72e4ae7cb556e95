"""Thrift client of HBase gateways: connections, retry, scans and writes.

Exports: ``thrift_gateway_pool.ThriftGatewayPool``, ``hbase_scan.TableScanner``, ``hbase_errors.to_store_error``.
"""
