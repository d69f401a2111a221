"""An HTTP/1.1 client for GETs: it signs, pools connections, receives in place, and resumes a broken body.

    client                  one GET with its retries
    |-- error_response      a response without the object: transient, throttling, redirect; no I/O
    |-- route               the route to a bucket, and redirects; no I/O
    `-- pool                opens connections and keeps idle ones
        `-- connection      one exchange on a socket: heads, bodies and timeouts

The client knows neither S3 nor botocore. A store supplies an `Origin` (route and signatures) and a `Sink` (which
checks the response and takes its body). The client uses only the standard library, starts no thread, and holds no lock
while it waits.

Not supported: HTTP/2, requests with a body, compressed transfer, proxies that speak TLS themselves.
"""
