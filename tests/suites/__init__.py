"""Third-party test suites, fetched by git: the share of each that is read as its owners expect."""
