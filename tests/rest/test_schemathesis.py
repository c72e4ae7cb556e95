"""schemathesis sends requests that the OpenAPI document allows or forbids: none fails, all responses conform.

``scripts/test long`` sends more. Acceptance of all valid types is not checked: an unknown id or field is rejected
too.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nutch2py import Crawl
from nutch2py.rest.access.tokens import Role, add_token
from tests.rest.conftest import running, settings
from tests.server.conftest import fill

CHECKS = [
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
    "response_headers_conformance", "negative_data_rejection", "unsupported_method", "allow_header_conformance",
    "ignored_auth", "use_after_free",
]  # fmt: skip

_SETTINGS = """
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "409", "413", "414", "415", "429"]
"""


def run_schemathesis(folder: Path, *options: str) -> None:
    """Run schemathesis on a server that rejects all jobs and does not stop."""
    conf = settings(folder, rest_tokens_file=str(folder / "tokens"), rest_requests_per_second="0")
    token = add_token(conf, "root", Role.ADMIN)
    fill(conf)
    with Crawl(conf) as crawl:
        crawl.inject(["http://a.test/"])
    with running(conf) as server:
        context = server.app.state.authorizer.context
        context.jobs.max_running = 0
        context.stop_server = lambda: None
        (folder / "schemathesis.toml").write_text(_SETTINGS)
        command = [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", "run",
                   f"{server.url}api/openapi.json", "--header", f"Authorization: Bearer {token}", "--no-color",
                   "--checks", ",".join(CHECKS), "--generation-database", "none", *options]  # fmt: skip
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert server.app.state.authorizer.context.jobs.all() == []
    output = "\n".join(line[:400] for line in done.stdout.splitlines())  # URLs can be long
    assert done.returncode == 0, output[-8000:] + done.stderr[-2000:]


def test_few_requests_of_each_kind_conform_to_schema(tmp_path: Path) -> None:
    run_schemathesis(tmp_path, "--phases", "fuzzing", "--max-examples", "2", "--seed", "7")


@pytest.mark.long
def test_many_requests_conform_to_schema(tmp_path: Path) -> None:
    run_schemathesis(tmp_path, "--max-examples", "60")
