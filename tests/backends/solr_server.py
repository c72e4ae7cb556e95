"""A real Solr for the tests: started by scripts/services on a free port, stopped and removed at the end."""

import json
import shutil
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from tests.services import Service, running


class SolrServer(Service):
    """An instance of Solr with the core ``nutch``."""

    kind = "solr"

    @property
    def url(self):
        """The address of the core."""
        return self.endpoint

    def start_cloud(self):
        """Start a node of SolrCloud in parallel; return the collection's address."""
        return self.services("start", "cloud")

    def zookeeper(self):
        settings = (self.folder / "settings").read_text().splitlines()
        port = next(int(line.partition("=")[2]) for line in settings if line.startswith("cloud="))
        return f"127.0.0.1:{port + 1000}"

    @property
    def home(self):
        return self.folder / "data" / "solr"

    def get(self, path, core="nutch", **parameters):
        root = self.url.removesuffix("nutch")
        with urlopen(f"{root}{core}/{path}?{urlencode(parameters, doseq=True)}") as answer:
            return json.load(answer)

    def post(self, documents, core="nutch"):
        data = json.dumps(documents).encode()
        address = f"{self.url.removesuffix('nutch')}{core}/update?commit=true"
        urlopen(Request(address, data, {"Content-Type": "application/json"})).close()

    def select(self, query, core="nutch", handler="select", **parameters):
        return self.get(handler, core, q=query, **parameters)

    def count(self, core="nutch"):
        return self.select("*:*", core, rows=0)["response"]["numFound"]

    def ids(self, query="*:*", core="nutch", handler="select", **parameters):
        found = self.select(query, core, handler, fl="id", **{"rows": 10_000, **parameters})
        return [document["id"] for document in found["response"]["docs"]]

    def clear(self, core="nutch"):
        self.post({"delete": {"query": "*:*"}}, core)

    def core(self, name, configset="nutch"):
        """Create another core; return its address."""
        self.get("cores", "admin", action="CREATE", name=name, configSet=configset)
        return self.url.removesuffix("nutch") + name

    def configset(self, name, change):
        """Create a configset from ours, with ``change`` applied to its schema.xml."""
        conf = self.home / "configsets" / name / "conf"
        shutil.copytree(self.home / "configsets" / "nutch" / "conf", conf)
        schema = conf / "schema.xml"
        schema.write_text(change(schema.read_text(encoding="utf-8")), encoding="utf-8")

    def unload(self, name):
        urlopen(f"{self.url.removesuffix('nutch')}admin/cores?action=UNLOAD&deleteInstanceDir=true&core={name}").close()


@pytest.fixture(scope="session")
def solr_server():
    """Yield a running Solr, or skip without Java or Maven."""
    with running(SolrServer()) as server:
        yield server


@pytest.fixture
def solr(solr_server):
    """Return Solr with an empty core, running even if the previous test stopped it."""
    solr_server.start()
    solr_server.clear()
    return solr_server
