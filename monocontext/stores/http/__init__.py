"""An HTTP/1.1 client for GETs: it signs, pools connections, receives in place, and resumes where a body broke off.

    client   one GET with its retries
    |-- route, responses      endpoints, redirects, signatures, error responses; pure
    `-- pool -> connection    sockets: opened and kept; read by http11, and timed

It knows neither S3's verbs nor botocore: a store brings an `Origin` (routes and credentials) and a `Sink` (which checks
responses and takes the bytes). It needs only the standard library, starts no thread and holds no lock while it waits.
Not covered: HTTP/2, requests with a body, compressed transfer, proxies that speak TLS themselves.
"""
