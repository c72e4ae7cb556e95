from nutch2py.scrapy import BatchSpider


class BatchQuotes(BatchSpider):
    """Fetches a generated batch."""

    name = "batch"

    def parse(self, response):
        yield {"author": response.css("small.author::text").getall()}
