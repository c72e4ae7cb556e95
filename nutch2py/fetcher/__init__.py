"""Fetching politely: queues, robots, limits, and Scrapy that carries the requests.."""
