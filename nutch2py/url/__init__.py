"""URLs: row keys, normalizers, filters, hosts and domains, partitions."""
