"""The HBase store does what every store does, on a real HBase."""

import itertools

import pytest

from nutch2py.conf.configuration import Configuration
from nutch2py.table.hbase import HBaseStore
from tests.table.store_suite import StoreSuite

_numbers = itertools.count()


class TestHBaseStore(StoreSuite):
    @pytest.fixture
    def make_store(self, hbase):
        place = next(_numbers)

        def make(record, name, **properties):
            conf = Configuration({each.replace("_", "."): str(value) for each, value in properties.items()})
            return HBaseStore.open(conf, record, f"suite{place}_{name}", hbase.location)

        return make
