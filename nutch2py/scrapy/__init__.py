"""Scrapy integration: spiders that write rows of the crawl table and fetch generated batches.

In the ``settings.py`` of a project::

    ADDONS = {"nutch2py.scrapy.TableAddon": 500}
    NUTCH2PY = {"storage.data.store": "embedded:/data/crawl"}

:class:`~nutch2py.scrapy.spider.BatchSpider` is a base class for spiders that fetch a batch. docs/scrapy.md has a
complete project.

Exports: ``BatchSpider``, ``TableAddon``, ``TableMiddleware``.
"""

from nutch2py.scrapy.addon import TableAddon
from nutch2py.scrapy.middleware import TableMiddleware
from nutch2py.scrapy.spider import BatchSpider

__all__ = ["BatchSpider", "TableAddon", "TableMiddleware"]
