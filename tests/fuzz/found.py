"""What fuzzing found: inputs by target. Each was a finding once, and is tried with every run of the suite."""

from __future__ import annotations

FOUND: dict[str, tuple[bytes, ...]] = {
    "archive": (b"(\xb5/\xfd\x04\x00\t\x00\x00\x00\x00\x00\x00\x00",),
    "excel": (b"\t\x08\x10\x00\x00\x00\x00\x00{\x00\x00{\x00\x00\x00\x00\x00\x00\x00\x00",),
    "mail": (b"Subject:=?\x92?q??=", b" \nDate:1 Jan 6 9999999000:0"),
}
