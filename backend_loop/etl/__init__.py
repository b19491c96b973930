"""What `etl.run` and its stages are made of: a job as data, records out of bytes, rows out of records, a table."""
