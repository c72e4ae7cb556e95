from nutch2py.scrapy import BatchSpider


class BatchQuotes(BatchSpider):
    """Takes a batch that generate has made."""

    name = "batch"

    def parse(self, response):
        yield {"author": response.css("small.author::text").getall()}
