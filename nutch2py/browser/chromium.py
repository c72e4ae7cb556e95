"""The program: finding Chromium, the folder and the user that it runs with, its options, and its processes' memory.

It runs with a profile folder of its own, which goes with it. Root cannot have Chromium's sandbox: it then runs as
another user (``browser.user``), sandbox and all. The kernel kills it when the process that started it is gone.
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
"""Bytes of its folder's path that Chromium can have: a socket stands 45 below, whose path has 107 at most."""
_DISABLED_FEATURES = (
    # those that Playwright switches off, of which Chromium would forget the first list
    "AvoidUnnecessaryBeforeUnloadCheckSync,DestroyProfileOnBrowserClose,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,"
    "LensOverlay,MediaRouter,PaintHolding,ThirdPartyStoragePartitioning,AvoidCorsURLLoaderRestartOnRedirect,"
    "OptimizationHints,NetworkTimeServiceQuerying,AimEnabled,PreconnectToSearch,"
    # every address is behind the proxy, on the loopback: who may be asked is the gate's matter
    "LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets,"
    # a page is shown once, so that a process in reserve is one that is started for nothing
    "SpareRendererForSitePerProcess,"
    # nothing beside the proxy, nothing unasked
    "WebTransport,Prerender2,AutofillServerCommunication,Translate,InterestFeedContentSuggestions"
)


def find_executable(executable: str) -> str:
    """Return the path of the browser; ConfigurationError when there is none."""
    if executable:
        path = shutil.which(executable)
        if path is None:
            raise ConfigurationError(f"browser.executable: {executable} is no program: correct it")
        return path
    path = next(filter(None, map(shutil.which, EXECUTABLE_NAMES)), None)
    if path is None:
        raise ConfigurationError(
            "protocol-browser needs Chromium (Debian, Ubuntu: apt-get install chromium): "
            "install it, or name it with browser.executable"
        )
    return path


class BrowserProfile:
    """The folder of one browser: its profile, its temporary files, and the script that starts it."""

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
                    "Chromium has no sandbox for root, and setpriv, which starts it as another user, is not there: "
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
        """Return the environment of the browser: nothing of ours but the path."""
        folder = str(self.path)
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": folder,
            "TMPDIR": folder if len(os.fsencode(folder)) <= _MAX_TMPDIR_BYTES else ".",
            "XDG_CONFIG_HOME": folder,
            "XDG_CACHE_HOME": folder,
            "DBUS_SESSION_BUS_ADDRESS": "disabled:",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }

    def remove(self) -> None:
        """Delete the folder."""
        self._temp_dir.remove()


def _get_user(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise ConfigurationError(f"browser.user: there is no user {name}: correct it") from None


def build_options(settings: BrowserSettings, proxy_port: int) -> list[str]:
    """Return Chromium's options; ``proxy_port``: that of the proxy, which everything goes through."""
    blink = "primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4"
    if not settings.load_images:
        blink += ",imagesEnabled=false"
    chosen = [
        f"--proxy-server=http://127.0.0.1:{proxy_port}",
        "--proxy-bypass-list=<-loopback>",  # nothing is bypassed, not even the loopback
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        "--webrtc-ip-handling-policy=disable_non_proxied_udp",
        "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",  # its name before
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
        chosen.append("--disable-remote-fonts")
    return chosen


def iter_descendants(pid: int) -> Iterator[int]:
    """Yield the processes below a process, which any of its threads may have started, and the first thread of others.

    That is how Chromium goes: the browser starts zygotes, which have one thread and start the processes of pages.
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
    """Return the process that started one; None when that is gone, or the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    return None


def is_renderer_process(pid: int) -> bool:
    """Tell whether a process of the browser shows pages."""
    with suppress(OSError):
        return b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def get_service_name(pid: int) -> str:
    """Return which service of all its pages a process of the browser is, "network" or "storage"; "" for neither."""
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        return next((name for name in _SERVICE_NAMES if b"--utility-sub-type=%s.mojom." % name.encode() in words), "")
    return ""


def has_exited(pid: int) -> bool:
    """Tell whether a process has ended; a zombie has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return True


def get_private_memory(pid: int) -> int:
    """Return the bytes that a process has for itself; 0 when it is gone, and where the system does not say."""
    try:
        resident, shared = map(int, Path(f"/proc/{pid}/statm").read_text().split()[1:3])
    except (OSError, ValueError):
        return 0
    return (resident - shared) * mmap.PAGESIZE


def find_browser_pid(profile: BrowserProfile) -> int | None:
    """Return the id of the browser that runs in a folder; None when it is gone, or the system does not say."""
    try:
        pid = int((profile.path / "pid").read_text())
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if os.fsencode(profile.path) in words else None


def kill_process_group(leader: int) -> bool:
    """End a browser, which leads a group of processes, and those of the group; tell whether any is still there.

    Those below it are no longer to be found as such when it has died itself. A zombie is not there.
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
    """End a process at once."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, SIGKILL)
