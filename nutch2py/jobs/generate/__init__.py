"""The generate job: candidates, top N, batch lists; and freegen.

Exports: ``generate_job.generate``, ``generate_job.GenerateResult``, ``freegen_job.freegen``.
"""
