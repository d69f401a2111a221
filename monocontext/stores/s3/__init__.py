"""The S3 store: credentials, endpoint, ranged reads over our own transport, and all other requests by boto3."""
