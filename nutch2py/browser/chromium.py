"""The Chromium program: executable, profile directory, user, options, and process inspection.

Each browser has its own profile directory, which is deleted with it. Chromium's sandbox does not work for root, so
root starts it as another user (``browser.user``). The kernel kills it when its parent process ends.
"""

from __future__ import annotations

import mmap
import os
import pwd
import shlex
import shutil
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from signal import SIGKILL

from nutch2py.browser.browser_settings import BrowserSettings
from nutch2py.errors import ConfigurationError
from nutch2py.support.temp_dirs import TempDir

EXECUTABLE_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome", "microsoft-edge")
_SERVICE_NAMES = ("network", "storage")
_MAX_TMPDIR_BYTES = 60
"""Maximum path length of its directory: Chromium creates a socket 45 bytes below, limited to 107 bytes."""
_DISABLED_FEATURES = (
    # the features that Playwright disables, since Chromium honours only the last list
    "AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,"
    "LensOverlay,MediaRouter,PaintHolding,ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,"
    "OptimizationHints,NetworkTimeServiceQuerying,AimEnabled,PreconnectToSearch,"
    # all addresses are reached through the proxy on the loopback; the address filter decides
    "LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets,"
    # pages are rendered once, so a spare process is wasted
    "SpareRendererForSitePerProcess,"
    # a frame with the attribute sandbox stays in the process of its page, where the first script reaches it
    "IsolateSandboxedIframes,"
    # no connections outside the proxy, no background requests
    "WebTransport,Prerender2,AutofillServerCommunication,Translate,InterestFeedContentSuggestions"
)


def find_executable(executable: str) -> str:
    """Return the path of the browser; raise ConfigurationError if it is not found."""
    if executable:
        path = shutil.which(executable)
        if path is None:
            raise ConfigurationError(f"browser.executable: {executable} is not an executable program: correct it")
        return path
    path = next(filter(None, map(shutil.which, EXECUTABLE_NAMES)), None)
    if path is None:
        raise ConfigurationError(
            "protocol-browser needs Chromium (Debian, Ubuntu: apt-get install chromium): "
            "install it, or set browser.executable"
        )
    return path


class BrowserProfile:
    """Directory of one browser: profile, temporary files and start script."""

    def __init__(self, settings: BrowserSettings) -> None:
        program = str(Path(find_executable(settings.executable)).absolute())
        as_user: list[str] = []
        self._temp_dir = TempDir("browser")
        self.path = self._temp_dir.path
        try:
            if os.name == "posix" and (setpriv := shutil.which("setpriv")):
                as_user = [setpriv, "--pdeathsig", "KILL"]
                if os.geteuid() == 0 and settings.sandbox:
                    user = _get_user(settings.user)
                    as_user += ["--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups"]
                    os.chown(self.path, user.pw_uid, user.pw_gid)
                as_user += ["--"]
            elif os.name == "posix" and os.geteuid() == 0 and settings.sandbox:
                raise ConfigurationError(
                    "Chromium has no sandbox for root, and setpriv, which starts it as another user, is missing: "
                    "start nutch2py as another user, install util-linux, or set browser.sandbox to false"
                )
            self.start_script = self.path / "start"
            profile, pid = (shlex.quote(str(self.path / name)) for name in ("profile", "pid"))
            self.start_script.write_text(
                f"#!/bin/sh\necho $$ >{pid}\ncd {shlex.quote(str(self.path))} || exit\n"
                f'exec {shlex.join([*as_user, program])} "$@" --user-data-dir={profile}\n',
                encoding="utf-8",
            )
            self.start_script.chmod(0o755)
        except BaseException:
            self.remove()
            raise

    def build_environment(self) -> dict[str, str | float | bool]:
        """Return the environment of the browser; only PATH is inherited."""
        directory = str(self.path)
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": directory,
            "TMPDIR": directory if len(os.fsencode(directory)) <= _MAX_TMPDIR_BYTES else ".",
            "XDG_CONFIG_HOME": directory,
            "XDG_CACHE_HOME": directory,
            "DBUS_SESSION_BUS_ADDRESS": "disabled:",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }

    def remove(self) -> None:
        """Delete the directory."""
        self._temp_dir.remove()


def _get_user(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise ConfigurationError(f"browser.user: user {name} does not exist: correct it") from None


def build_options(settings: BrowserSettings, proxy_port: int) -> list[str]:
    """Return Chromium's options; ``proxy_port``: port of the filtering proxy."""
    blink = "primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"
    if not settings.load_images:
        blink += ",imagesEnabled=false"
    options = [
        f"--proxy-server=http://127.0.0.1:{proxy_port}",
        "--proxy-bypass-list=<-loopback>",  # no bypass, not even for the loopback
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",  # the option's former name
        "--disable-quic",
        f"--disable-features={_DISABLED_FEATURES}",
        f"--blink-settings={blink}",
        f"--js-flags=--max-old-space-size={max(64, settings.limits.max_memory >> 20)}",
        "--disable-gpu",
        "--no-pings",
        "--disable-file-system",
        "--disable-notifications",
        "--disable-speech-api",
        "--deny-permission-prompts",
        "--disable-domain-reliability",
        "--disable-client-side-phishing-detection",
    ]
    if not settings.load_fonts:
        options.append("--disable-remote-fonts")
    return options


def iter_descendants(pid: int) -> Iterator[int]:
    """Yield the descendants of a process: children of all its threads, and below them children of main threads.

    This matches Chromium: the browser starts zygotes, which have one thread and start the page processes.
    """
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from _iter_child_tree(child)


def _iter_child_tree(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            yield child
            yield from _iter_child_tree(child)


def get_parent_pid(pid: int | None) -> int | None:
    """Return the parent of a process, or None if the process is gone or the system does not provide it."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return None


def is_renderer_process(pid: int) -> bool:
    """Return whether a process of the browser renders pages."""
    with suppress(OSError):
        return b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def get_service_name(pid: int) -> str:
    """Return "network" or "storage" if a process is that service of the browser, else ""."""
    with suppress(OSError):
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
        return next(
            (name for name in _SERVICE_NAMES if b"--utility-sub-type=%s.mojom." % name.encode() in arguments), ""
        )
    return ""


def has_exited(pid: int) -> bool:
    """Return whether a process has ended; a zombie counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return True


def get_private_memory(pid: int) -> int:
    """Return the private memory of a process in bytes, 0 if it is gone or the system does not provide it."""
    try:
        resident, shared = map(int, Path(f"/proc/{pid}/statm").read_text().split()[1:3])
    except (OSError, ValueError):
        return 0
    return (resident - shared) * mmap.PAGESIZE


def find_browser_pid(profile: BrowserProfile) -> int | None:
    """Return the process id of the browser of a profile, or None if it is gone or unknown."""
    try:
        pid = int((profile.path / "pid").read_text())
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if os.fsencode(profile.path) in arguments else None


def kill_process_group(leader: int) -> bool:
    """Kill a browser and its process group; return whether any process remains. Zombies do not count.

    The descendants cannot be found by parent any more once the browser itself has died.
    """
    try:
        os.killpg(leader, SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return any(map(partial(_is_in_group, leader), Path("/proc").glob("[0-9]*/stat")))


def _is_in_group(leader: int, stat: Path) -> bool:
    with suppress(OSError):
        state, _, group = stat.read_text(errors="replace").rpartition(")")[2].split()[:3]
        return int(group) == leader and state != "Z"
    return False


def kill_process(pid: int) -> None:
    """Kill a process."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, SIGKILL)
