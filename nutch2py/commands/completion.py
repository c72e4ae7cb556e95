"""Shell completion of commands and options, generated from the parsers of the commands."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from nutch2py.commands.command import CommandParser

SHELLS = ("bash", "zsh", "fish")


class CompletionOption(NamedTuple):
    """An option: its spellings, its help, whether it takes a value, and the possible values if they are known."""

    spellings: tuple[str, ...]
    help: str
    takes_value: bool
    values: tuple[str, ...]


def _checked_values(command: str, option: str) -> tuple[str, ...]:
    """Return the values of an option that its command checks itself, () for any other."""
    if (command, option) != ("readdb", "status"):
        return ()
    from nutch2py.records.webpage import CrawlStatus  # every command imports this module

    return tuple(status.label.removeprefix("status_") for status in CrawlStatus)


def property_names() -> list[str]:
    """Return the names of the properties that have a default, without those of other programs."""
    from nutch2py.conf.configuration import Configuration

    return sorted(name for name in Configuration.load() if re.fullmatch(r"[\w.-]+", name))


def completion_options(parser: CommandParser) -> Iterator[CompletionOption]:
    """Yield the options of a command."""
    for action in parser.actions():
        if action.option_strings and action.help != argparse.SUPPRESS:
            values = tuple(map(str, action.choices or ()))
            values = values or _checked_values(parser.prog.rpartition(" ")[2], action.dest)
            yield CompletionOption(tuple(action.option_strings), action.help or "", action.nargs != 0, values)


def positional_choices(parser: CommandParser) -> tuple[str, ...]:
    """Return the possible values of the positional arguments of a command."""
    return tuple(str(each) for action in parser.actions() if not action.option_strings for each in action.choices or ())


def completion_script(shell: str, summaries: Mapping[str, str], get_parser: Callable[[str], CommandParser]) -> str:
    """Return the script for a shell of :data:`SHELLS`. ``summaries``: one line about each command."""
    if shell == "fish":
        return "\n".join(_fish(summaries, get_parser)) + "\n"
    head = ["autoload -U +X compinit && compinit", "autoload -U +X bashcompinit && bashcompinit"]
    return "\n".join([*(head if shell == "zsh" else ()), *_bash(summaries, get_parser)]) + "\n"


def _bash(summaries: Mapping[str, str], parser_of: Callable[[str], CommandParser]) -> Iterator[str]:
    yield "_nutch2py() {"
    yield '  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command="" options="" each'
    yield "  for ((each = 1; each < COMP_CWORD; each++)); do"  # zsh has no slice that ends at an expression
    yield f"    case ${{COMP_WORDS[each]}} in {'|'.join(summaries)}) command=${{COMP_WORDS[each]}}; break ;; esac"
    yield "  done"
    yield "  COMPREPLY=()"
    yield '  if [ "$before" = -D ]; then'
    yield f'    COMPREPLY=($(compgen -W "{" ".join(f"{name}=" for name in property_names())}" -- "$word"))'
    yield "    compopt -o nospace 2>/dev/null"
    yield "    return"
    yield "  fi"
    yield '  case "$command $before" in'
    for name in summaries:
        files = []
        for option in completion_options(parser_of(name)):
            places = "|".join(f'"{name} {spelling}"' for spelling in option.spellings)
            if option.values:
                yield f'    {places}) COMPREPLY=($(compgen -W "{" ".join(option.values)}" -- "$word")); return ;;'
            elif option.takes_value:
                files.append(places)
        if files:
            yield f'    {"|".join(files)}) COMPREPLY=($(compgen -f -- "$word")); return ;;'
    yield "  esac"
    yield "  case $command in"
    yield f'    "") options="{" ".join(summaries)} --help --version" ;;'
    for name in summaries:
        parser = parser_of(name)
        spellings = [spelling for option in completion_options(parser) for spelling in option.spellings]
        yield f'    {name}) options="{" ".join([*positional_choices(parser), *spellings])}" ;;'
    yield "  esac"
    yield '  COMPREPLY=($(compgen -W "$options" -- "$word"))'
    yield '  [ ${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))'
    yield "}"
    yield "complete -o filenames -F _nutch2py nutch2py"


def _fish(summaries: Mapping[str, str], parser_of: Callable[[str], CommandParser]) -> Iterator[str]:
    for name, summary in summaries.items():
        yield f"complete -c nutch2py -n __fish_use_subcommand -f -a {name} -d {_quoted(summary)}"
        seen = f"complete -c nutch2py -n '__fish_seen_subcommand_from {name}'"
        parser = parser_of(name)
        if places := positional_choices(parser):
            yield f"{seen} -f -a {_quoted(' '.join(places))}"
        for option in completion_options(parser):
            spelled = " ".join(
                f"-l {text[2:]}" if text.startswith("--") else f"-{'s' if len(text) == 2 else 'o'} {text[1:]}"
                for text in option.spellings
            )
            if option.spellings == ("-D",):
                names = _quoted(" ".join(f"{each}=" for each in property_names()))
                yield f"{seen} -s D -x -a {names} -d {_quoted(option.help)}"
                continue
            value = (
                f" -x -a {_quoted(' '.join(option.values))}" if option.values else " -r" if option.takes_value else ""
            )
            yield f"{seen} {spelled}{value} -d {_quoted(option.help)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
