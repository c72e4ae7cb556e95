"""Jobs that send documents to an index or delete them.

Exports: ``index_job.index``, ``clean_job.clean``, ``solrdedup.solrdedup``, ``scores_job.check_score_updates``.
"""
