"""Find out who reads from S3, without boto3: the environment, the shared AWS files, and the sources of keys they name.

    sources -> roles, metadata -> exchange     one source of keys after the other, in botocore's order
    settings -> shared_files, proxies          what the environment and a profile say
    identity                                   keys that are renewed before they expire

What is configured here that this room does not know raises `AskBotocore`: then botocore is asked, and `stats` says so.
"""
