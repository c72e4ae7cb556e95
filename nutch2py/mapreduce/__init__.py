"""Jobs over table ranges, on mrjob.."""
