"""An HTTP/1.1 client for GETs: it signs, pools connections, receives in place, and resumes a broken body.

    client   one GET with its retries
    |-- route, signing, responses         endpoints, signatures, error responses; pure
    |-- timeouts                          how long to wait, how slow is too slow; pure
    `-- pool -> connector -> connection   sockets: kept, opened, read by http11

It knows neither S3's verbs nor botocore: a store supplies an `Origin` (routes and credentials) and a `Sink` (which
checks responses and takes the bytes). It needs only the standard library, starts no thread and holds no lock while it
waits.

Not supported: HTTP/2, requests with a body, compressed transfer, proxies that speak TLS themselves.
"""
