"""Thrift client of HBase gateways: connections, retry, scans and writes."""
