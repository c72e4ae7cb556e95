"""A library between a program and the system that lets a disk take nothing more: see :func:`failing_disk`."""

from __future__ import annotations

from pathlib import Path

from tests.preloaded_library import compiled

_SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>
static int named(const char *path) {
  const char *part = getenv("DISK_FAILS_BELOW"), *number = getenv("DISK_FAILS_WITH");
  if (!part || !number || !path || !strstr(path, part)) return 0;
  errno = atoi(number);
  return 1;
}
static int fails(int fd) {
  char link[64], path[PATH_MAX];
  int before = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  errno = before;
  if (length < 0) return 0;
  path[length] = 0;
  return named(path);
}
static int read_only(const char *path) {
  int before = errno;
  if (named(path) && errno == EROFS) return 1;
  errno = before;
  return 0;
}
#define REAL(name, result, ...) ((result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))
ssize_t write(int fd, const void *data, size_t size) {
  return fails(fd) ? -1 : REAL("write", ssize_t, int, const void *, size_t)(fd, data, size);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
  return fails(fd) ? -1 : REAL("writev", ssize_t, int, const struct iovec *, int)(fd, parts, count);
}
#define AT(name) \
ssize_t name(int fd, const void *data, size_t size, off_t at) { \
  return fails(fd) ? -1 : REAL(#name, ssize_t, int, const void *, size_t, off_t)(fd, data, size, at); } \
ssize_t name##v(int fd, const struct iovec *parts, int count, off_t at) { \
  return fails(fd) ? -1 : REAL(#name "v", ssize_t, int, const struct iovec *, int, off_t)(fd, parts, count, at); }
AT(pwrite)
ssize_t pwrite64(int fd, const void *data, size_t size, off_t at) { return pwrite(fd, data, size, at); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at) { return pwritev(fd, parts, count, at); }
#define OPEN(name) \
int name(const char *path, int flags, ...) { \
  va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, int); va_end(rest); \
  if ((flags & (O_CREAT | O_WRONLY | O_RDWR)) && read_only(path)) return -1; \
  return REAL(#name, int, const char *, int, ...)(path, flags, mode); }
OPEN(open)
OPEN(open64)
#define OPENAT(name) \
int name(int folder, const char *path, int flags, ...) { \
  va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, int); va_end(rest); \
  if ((flags & (O_CREAT | O_WRONLY | O_RDWR)) && read_only(path)) return -1; \
  return REAL(#name, int, int, const char *, int, ...)(folder, path, flags, mode); }
OPENAT(openat)
OPENAT(openat64)
int mkdir(const char *path, mode_t mode) {
  if (getenv("DISK_FAILS_FOLDERS") ? named(path) : read_only(path)) return -1;
  return REAL("mkdir", int, const char *, mode_t)(path, mode);
}
"""


def library(folder: Path) -> Path | None:
    """Compile the library; None where there is no C compiler."""
    return compiled(_SOURCE, folder / "disk.so")


def failing_disk(made: Path, number: int, part: str, *, fails_folders: bool = False) -> dict[str, str]:
    """Return the variables under which nothing can be written to files with ``part`` in their paths, for ``number``.

    With EROFS no files and folders can be made, either; with ``fails_folders`` no folders, as on a full ext4 or XFS.
    """
    found = {"LD_PRELOAD": str(made), "DISK_FAILS_BELOW": part, "DISK_FAILS_WITH": str(number)}
    return found | {"DISK_FAILS_FOLDERS": "1"} if fails_folders else found
