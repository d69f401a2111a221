"""Find out who reads from S3: by the environment and the shared AWS files, or else by botocore.

    keys -> settings -> shared_files, proxies

A rule for endpoints that this room does not know raises `UnsupportedBySigner`; `stats` says which.
"""
