"""``python -m tests.facts.nutch_commands CHECKOUT``: take the commands of Nutch from its repository, as JSON.

Only names are taken: the commands of ``bin/nutch`` with their classes, the options that these classes and ``bin/crawl``
read or print in a usage line, and the classes with a ``main``. ``nutch_commands.json`` is the result; its ``source``
says of which commits.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

FACTS_FILE = Path(__file__).with_name("nutch_commands.json")
BRANCHES = {"2.4": "refs/heads/2.x", "1.23": "refs/heads/master"}
_OPTION_PATTERNS = (
    r'"-([A-Za-z]\w+)"',
    r'equals(?:IgnoreCase)?\("-(\w+)"',
    r'(?:withLongOpt|longOpt|\.create)\("(\w+)"',
    r'(?:new Option|addOption|Option\.builder)\(\s*"(\w+)"',
    r'new Option\(\s*"\w+",\s*"(\w+)"',
    r'String CMD_\w+ = "(\w+)"',
)
_USAGE = re.compile(r"(?:\[|\(|\| ?|\s)-([A-Za-z]\w+)")
_COMMAND = re.compile(r'\[ "\$COMMAND" = "(\w+)" \] ; then(.*?)(?=\nelif|\nelse)', re.DOTALL)


def read_file(checkout: str, branch: str, path: str) -> str:
    """Return a file of a branch, "" if there is none."""
    words = ["git", "-C", checkout, "show", f"{branch}:{path}"]
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def find_options(source: str) -> list[str]:
    """Return the options that a class reads, or names in its usage."""
    code = re.sub(r'//[^\n"]*$', "", re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL), flags=re.MULTILINE)
    names = {name for pattern in _OPTION_PATTERNS for name in re.findall(pattern, code)}
    for text in re.findall(r'"((?:[^"\\]|\\.)*)"', code):
        if "Usage" in text or text.lstrip().startswith(("-", "[-")):
            names |= set(_USAGE.findall(f" {text}"))
    return sorted(f"-{name}" for name in names)


def read_branch(checkout: str, branch: str) -> dict[str, Any]:
    """Return the commands, the classes with a ``main`` and the options of ``bin/crawl`` of a branch."""
    script = read_file(checkout, branch, "src/bin/nutch")
    commands = {}
    for name, body in _COMMAND.findall(script):
        found = re.search(r'CLASS="?([\w.]+)', body)
        java_class = found.group(1) if found else ""
        source = read_file(checkout, branch, f"src/java/{java_class.replace('.', '/')}.java") if java_class else ""
        commands[name] = {"class": java_class, "options": find_options(source)}
    words = ["git", "-C", checkout, "grep", "-l", "public static void main", branch, "--", "src/java"]
    paths = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    classes = sorted(path.partition("src/java/")[2].removesuffix(".java").replace("/", ".") for path in paths)
    crawl = read_file(checkout, branch, "src/bin/crawl")
    crawl_options = sorted(set(re.findall(r"^\s+(?:-\w+\|)?(--?[a-z-]+)\)", crawl, re.MULTILINE)))
    words = ["git", "-C", checkout, "rev-parse", branch]
    commit = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    source = {"repository": "github.com/apache/nutch", "branch": branch.rpartition("/")[2], "commit": commit}
    return {"source": source, "commands": commands, "classes_with_main": classes, "crawl_script": crawl_options}


def main() -> None:
    """Write the facts."""
    facts = {release: read_branch(sys.argv[1], branch) for release, branch in BRANCHES.items()}
    FACTS_FILE.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
