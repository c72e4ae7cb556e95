"""From pages to documents, to an index, to answers.."""
