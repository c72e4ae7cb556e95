import os

import scrapy


class QuotesSpider(scrapy.Spider):
    """The spider of Scrapy's tutorial, with its site on this machine."""

    name = "quotes"
    start_urls = [os.environ["SITE"] + "/page/1/"]  # noqa: RUF012

    def parse(self, response):
        for quote in response.css("div.quote"):
            yield {
                "text": quote.css("span.text::text").get(),
                "author": quote.css("small.author::text").get(),
                "tags": quote.css("div.tags a.tag::text").getall(),
            }
        yield from response.follow_all(css="ul.pager a", callback=self.parse)
