"""What writing to an index and asking it share: the folder of the embedded one, clients, words."""
