"""The jobs of a crawl, in the order in which they run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nutch2py.commands.command import (
    Arguments,
    Command,
    add_batch_options,
    finite_days,
    non_negative_int,
    open_printing_crawl,
    selected_batch,
)

if TYPE_CHECKING:
    from nutch2py.conf.configuration import Configuration


def _inject_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url_dir", help="a seed file, or a folder of seed files: one URL per line")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-overwrite", "--overwrite", action="store_true", help="initialize existing rows again")
    what.add_argument("-update", "--update", action="store_true", help="set score, interval and metadata of rows")
    parser.add_argument("-noFilter", "--no-filter", action="store_true", help="do not filter URLs")
    parser.add_argument("-noNormalize", "--no-normalize", action="store_true", help="do not normalize URLs")


def _inject(args: Arguments, conf: Configuration) -> int:
    for name in ("overwrite", "update"):
        if getattr(args, name):
            conf.set(f"db.injector.{name}", "true")
    open_printing_crawl(conf).inject(args.url_dir, filter_urls=not args.no_filter, normalize=not args.no_normalize)
    return 0


def _freegen_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url_dir", help="a seed file, or a folder of seed files: one URL per line")
    parser.add_argument("-filter", "--filter", action="store_true", help="filter URLs")
    parser.add_argument("-normalize", "--normalize", action="store_true", help="normalize URLs")
    parser.add_argument(
        "-batchId", "--batch-id", default="", metavar="id", help="id of the batch (default: seconds-random)"
    )


def _freegen(args: Arguments, conf: Configuration) -> int:
    result = open_printing_crawl(conf).freegen(
        args.url_dir, filter_urls=args.filter, normalize=args.normalize, batch_id=args.batch_id
    )
    return 0 if result.urls else 1


def _generate_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-topN", "--top-n", type=non_negative_int, metavar="N", help="maximum number of URLs (unlimited); 0: none"
    )
    parser.add_argument("-noFilter", "--no-filter", action="store_true", help="do not filter URLs")
    parser.add_argument("-noNorm", "--no-norm", action="store_true", help="do not normalize URLs")
    parser.add_argument(
        "-adddays",
        "--add-days",
        type=finite_days,
        default=0,
        metavar="numDays",
        help="days to add to the current time when it is decided what is due; 0: due now; negative: due before",
    )
    parser.add_argument("-sitemap", "--sitemap", action="store_true", help="generate sitemaps, and only these")
    parser.add_argument(
        "-batchId", "--batch-id", default="", metavar="id", help="id of the batch (default: seconds-random)"
    )


def _generate(args: Arguments, conf: Configuration) -> int:
    result = open_printing_crawl(conf).generate(
        top_n=args.top_n,
        add_days=args.add_days,
        filter_urls=not args.no_filter,
        normalize=not args.no_norm,
        sitemap=args.sitemap,
        batch_id=args.batch_id,
    )
    return 0 if result.urls else 1


def _fetch_options(parser: argparse.ArgumentParser) -> None:
    add_batch_options(parser)
    parser.add_argument(
        "-threads",
        "--threads",
        type=non_negative_int,
        default=0,
        metavar="N",
        help="concurrent requests per fetch task; 0: fetcher.threads.fetch",
    )
    parser.add_argument("-resume", "--resume", action="store_true", help="skip what an interrupted fetch has done")
    parser.add_argument(
        "-numTasks",
        "--num-tasks",
        type=non_negative_int,
        default=0,
        metavar="N",
        help="number of fetch tasks; 0: mapreduce.job.reduces",
    )
    parser.add_argument("-sitemap", "--sitemap", action="store_true", help="fetch sitemaps, and only these")
    parser.add_argument(
        "-stmDetect", "--stm-detect", action="store_true", help="record the sitemaps that robots.txt lists"
    )
    parser.add_argument(
        "-warc", "--warc", default="", metavar="DIR", help="also write requests and responses to WARC files in a folder"
    )


def _fetch(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).fetch(
        selected_batch(args),
        threads=args.threads,
        resume=args.resume,
        num_tasks=args.num_tasks,
        sitemap=args.sitemap,
        detect_sitemaps=args.stm_detect,
        warc=args.warc,
    )
    return 0


def _parse_options(parser: argparse.ArgumentParser) -> None:
    add_batch_options(parser)
    parser.add_argument("-resume", "--resume", action="store_true", help="skip what an interrupted parse has done")
    parser.add_argument("-force", "--force", action="store_true", help="with -resume: parse pages again")
    parser.add_argument("-sitemap", "--sitemap", action="store_true", help="parse sitemaps, and only these")


def _parse(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).parse(selected_batch(args), resume=args.resume, force=args.force, sitemap=args.sitemap)
    return 0


def _updatedb(args: Arguments, conf: Configuration) -> int:
    open_printing_crawl(conf).updatedb(selected_batch(args))
    return 0


COMMANDS: dict[str, Command] = {
    "inject": Command("inject new URLs into the table", _inject_options, _inject),
    "generate": Command("generate a batch of URLs to fetch", _generate_options, _generate),
    "freegen": Command("make a batch of the URLs of a file, due or not", _freegen_options, _freegen),
    "fetch": Command("fetch the URLs of a batch", _fetch_options, _fetch),
    "parse": Command("parse the pages of a batch", _parse_options, _parse),
    "updatedb": Command("update the table from a batch", add_batch_options, _updatedb),
}
