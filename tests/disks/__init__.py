"""Commands on a file system with a few free pages: each ends with the exit code and the line that the docs promise.

    scripts/test disks [--sizes 200] [--file-system tmpfs ext4 xfs] [--seed S]

``small_disk`` makes the file systems (as root), ``disk_sweep`` runs the commands.
"""
