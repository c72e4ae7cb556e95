import os

BOT_NAME = "tutorial"

SPIDER_MODULES = ["tutorial.spiders"]
NEWSPIDER_MODULE = "tutorial.spiders"

ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 0
FEED_EXPORT_ENCODING = "utf-8"

# the two lines
ADDONS = {"nutch2py.scrapy.TableAddon": 500}
NUTCH2PY = {"storage.data.store": os.environ["CRAWL"], "http.agent.name": "tutorial"}
