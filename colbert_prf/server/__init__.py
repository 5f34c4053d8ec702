"""The HTTP service: indexes by name, search with feedback, explanations, writes as tasks (extra ``[server]``)."""
