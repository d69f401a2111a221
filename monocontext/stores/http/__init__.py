"""Send GETs by HTTP/1.1: sign them, pool connections, receive bodies in place, and resume a broken body.

    client                  one GET with its retries
    |-- error_response      a response without the object: transient, throttling, redirect; no I/O
    |-- route               the route to a bucket, and redirects; no I/O
    `-- pool                opens connections and keeps idle ones
        `-- connection      one exchange on a socket: heads and bodies
            `-- timer       the timeouts of an exchange, learnt from earlier ones; no I/O

The client knows neither S3 nor botocore: a store supplies an `Origin` (route and signatures) and a `Sink` (which
checks the response and takes its body). It starts no thread, and holds no lock while it waits.

Not supported: HTTP/2, requests with a body, compressed transfer, proxies that speak TLS themselves.
"""
