"""What `report.export` is made of: a filter as data, the query that it becomes, rows as the bytes of a file."""
