"""Runs all health checks, each after those that it depends on."""

from __future__ import annotations

from collections.abc import Iterator

from nutch2py.conf.configuration import Configuration
from nutch2py.doctor import configuration_checks, job_log_checks, machine_checks, network_checks, service_checks
from nutch2py.doctor.check_result import Check, CheckResult, CheckStatus, run_check

CHECKS: dict[str, Check] = {
    "version": machine_checks.check_version,
    "configuration": configuration_checks.check_config_files,
    "properties": configuration_checks.check_property_names,
    "agent name": configuration_checks.check_agent_name,
    "plug-ins": configuration_checks.check_plugins,
    "disk": machine_checks.check_disks,
    "memory": machine_checks.check_memory,
    "open files": machine_checks.check_open_files,
    "DNS": network_checks.check_dns,
    "clock": job_log_checks.check_clock,
    "table": service_checks.check_tables,
    "hosts": network_checks.check_hosts,
    "proxy": network_checks.check_proxy,
    "index": service_checks.check_index,
    "runner": service_checks.check_runner,
    "jobs": job_log_checks.check_last_job,
    "skipped": job_log_checks.check_skipped,
}
SERVICE_WAIT_SECONDS = "5"
"""Value of the wait properties of services during checks, in seconds."""


def run_checks(conf: Configuration) -> Iterator[CheckResult]:
    """Yield the results of all checks. An unavailable service is tried for a few seconds only."""
    conf = conf.copy()
    conf.set("service.wait.seconds", SERVICE_WAIT_SECONDS)
    for name, check in CHECKS.items():
        yield from run_check(name, check, conf)


def worst_status(results: list[CheckResult]) -> CheckStatus:
    """Return the worst status of some results."""
    states = {result.status for result in results}
    return (
        CheckStatus.ERROR
        if CheckStatus.ERROR in states
        else CheckStatus.WARNING
        if CheckStatus.WARNING in states
        else CheckStatus.OK
    )
