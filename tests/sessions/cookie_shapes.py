"""Cookies in the forms that agents and their tools write, with a session in each; and cookies that are none."""

from __future__ import annotations

import json
import random
import string

ALPHABETS = {
    "hex": "0123456789abcdef",
    "lower": string.ascii_lowercase + string.digits,
    "mixed": string.ascii_letters + string.digits,
    "url": string.ascii_letters + string.digits + "-_",
}
NAMES = {
    "session": ("mixed", 40), "sessionid": ("lower", 32), "JSESSIONID": ("hex", 32), "PHPSESSID": ("lower", 26),
    "connect.sid": ("signed", 0), "laravel_session": ("url", 120), "_gitlab_session": ("hex", 32), "ASP.NET_SessionId": ("lower", 24),
    "user_session": ("url", 48), "__Host-user_session_same_site": ("url", 48), "jwt": ("jwt", 0), "d": ("url", 60), "auth_token": ("hex", 40),
    "__Secure-next-auth.session-token": ("uuid", 0), "sid": ("mixed", 24), "XSRF-TOKEN": ("mixed", 40), "remember_web_59ba": ("mixed", 60),
}  # fmt: skip


def value(rng: random.Random, kind: str, length: int) -> str:
    """A new session."""
    if kind == "signed":
        return f"s%3A{value(rng, 'url', 32)}.{value(rng, 'mixed', 20)}%2B{value(rng, 'mixed', 22)}"
    if kind == "jwt":
        return f"eyJhbGciOiJIUzI1NiJ9.eyJ{value(rng, 'mixed', 40)}.{value(rng, 'url', 43)}"
    if kind == "uuid":
        return "-".join(value(rng, "hex", n) for n in (8, 4, 4, 4, 12))
    while True:
        found = "".join(rng.choices(ALPHABETS[kind], k=length))
        if sum(map(str.isdigit, found)) > 2 and any(map(str.isalpha, found)):
            return found


# N is the name, V the value.
FORMS = [
    "Cookie: N=V", "Cookie: theme=dark; N=V", "Cookie: a=b;N=V;c=d", "cookie: _ga=GA1.1.1234567890.1699999999; N=V; lang=en-GB", "> Cookie: x=1; y=2; N=V",
    "Set-Cookie: N=V; Path=/; HttpOnly; Expires=Wed, 21 Oct 2026 07:28:00 GMT", "< set-cookie: N=V; Secure", "Set-Cookie: lang=en; Path=/, N=V; Path=/",
    "curl -b 'a=b; N=V' https://acme.test", "curl -s --cookie \"N=V\" https://acme.test/x", "curl https://acme.test -b N=V -o out", "curl --cookie=N=V https://acme.test",
    "curl -sb 'theme=dark;N=V' https://acme.test", "curl -H 'Cookie: a=b; N=V' https://acme.test", 'curl -H "cookie: N=V; x=y" https://acme.test \\\n  --compressed',
    "curl 'https://acme.test' \\\n  -H 'accept: */*' \\\n  -b 'a=1; N=V' \\\n  --compressed",
    "# Netscape HTTP Cookie File\n\n#HttpOnly_acme.test\tFALSE\t/\tTRUE\t1799999999\tN\tV\n.acme.test\tTRUE\t/\tFALSE\t0\ttheme\tdark\n",
    "acme.test\tTRUE\t/\tFALSE\t0\tN\tV", "cookies={'N': 'V'}", "requests.get(url, cookies={'theme': 'dark', 'N': 'V'}, timeout=3)", "httpx.Client(cookies={\n    \"lang\": \"en\",\n    \"N\": \"V\",\n})",
    "session.cookies.set('N', 'V', domain='acme.test')", "s.cookies['N'] = 'V'", "jar.set_cookie(Cookie(name='N', value='V'))", "cookies = dict(a='b', N='V')" , "aiohttp.ClientSession(cookies={'N': 'V'})",
    "axios.get(url, { headers: { Cookie: 'a=b; N=V' } })", "fetch(url, {headers: {'cookie': `N=V; theme=dark`}})", "headers = {\"Cookie\": \"N=V\"}", "-H \"Cookie: $(echo)\" -H 'Cookie: N=V'",
    "await context.addCookies([{ name: 'N', value: 'V', domain: 'acme.test', path: '/' }]);", "await page.setCookie({name: 'theme', value: 'dark'}, {name: \"N\", value: \"V\"});",
    "driver.add_cookie({\"name\": \"N\", \"value\": \"V\"})", "document.cookie = 'N=V'", 'document.cookie = "N=V; path=/; max-age=3600"', "document.cookie=`a=b; N=V`;", "res.cookie('N', 'V', { httpOnly: true })",
    '{"cookies": [{"name": "theme", "value": "dark"}, {"name": "N", "value": "V"}]}', '{"name": "N", "value": "V", "httpOnly": true, "secure": false}', '{"value": "V", "name": "N", "sameSite": "Lax"}',
    '{\n  "name": "N",\n  "value": "V",\n  "domain": ".acme.test",\n  "path": "/",\n  "expires": -1,\n  "httpOnly": true\n}',
    '[\n  {\n    "domain": "acme.test",\n    "expirationDate": 1799999999,\n    "hostOnly": true,\n    "name": "N",\n    "path": "/",\n    "storeId": "0",\n    "value": "V"\n  }\n]',
    '{"cookies":[{"name":"N","value":"V","domain":"acme.test","path":"/","expires":1799999999.5,"httpOnly":true,"secure":true,"sameSite":"Lax"}],"origins":[]}',
    '"headers": [{"name": "Cookie", "value": "theme=dark; N=V"}]', 'COOKIE="a=b; N=V"', "export COOKIES='N=V'", "COOKIE='N=V' node run.js", "http GET acme.test Cookie:N=V", "wget --header='Cookie: a=b; N=V' https://acme.test",
    "&http.Cookie{Name: \"N\", Value: \"V\"}", "setcookie('N', 'V', time() + 3600);", "req.AddCookie(&http.Cookie{\n\tName:  \"N\",\n\tValue: \"V\",\n})", "request(app).get('/').set('Cookie', ['a=b', 'N=V'])",
    "xhr.setRequestHeader('Cookie', 'N=V')", "cookies:\n  N: V\n  theme: dark\n", "cookie: N=V\n", "response.headers['set-cookie'] = 'N=V; Path=/'", "cy.setCookie('N', 'V')", "Cookies.set('N', 'V', { expires: 7 })",
    "SimpleCookie('a=b; N=V')", "cookies: { N: 'V' }", "{'cookies': {'N': 'V'}}", '"cookies": {\n    "N": "V"\n  }', "http.cookiejar: <Cookie N=V for acme.test/>",
    "<RequestsCookieJar[<Cookie N=V for .acme.test/>, <Cookie theme=dark for .acme.test/>]>", "Invoke-WebRequest -Headers @{ Cookie = 'N=V' }",
    '$session.Cookies.Add((New-Object System.Net.Cookie("N", "V", "/", "acme.test")))',
]  # fmt: skip

INNOCENT = [
    "Cookie: theme=dark", "Cookie: lang=en-GB; theme=dark", "Cookie: _ga=GA1.1.1234567890.1699999999; _gid=GA1.2.987654321.1700000000", "Cookie: _fbp=fb.1.1699999999999.1234567890",
    "Set-Cookie: cookie_consent={\"necessary\":true,\"analytics\":false,\"ts\":1699999999}; Path=/", "Cookie: CookieConsent=%7Bstamp%3A%27abc%27%2Cnecessary%3Atrue%2Cver%3A1%7D",
    "Cookie: OptanonConsent=isGpcEnabled=0&datestamp=Mon+Jan+01+2024&version=6.10.0&consentId=550e8400-e29b-41d4-a716-446655440000", "Cookie: session=<value>", "Cookie: sessionid=abc123", "Cookie: session=YOUR_SESSION_COOKIE",
    "curl -b 'session=$SESSION' https://acme.test", "curl -b cookies.txt https://acme.test", "curl -b \"theme=dark; lang=en\" https://acme.test", "cookies={'session': session_id}", "cookies={'theme': 'dark'}",
    "document.cookie = 'theme=dark; path=/; max-age=31536000'", "document.cookie.split('; ').find(row => row.startsWith('session='))", ".acme.test\tTRUE\t/\tFALSE\t1799999999\ttheme\tdark", "res.cookie('lang', 'en', { maxAge: 900000 })",
    '{"name": "commit", "value": "3f786850e387550fdab836ed7e6dc881de23001b"}', '{"name": "theme", "value": "dark", "httpOnly": false}', '{"name": "version", "value": "2024.01.15-beta.3+build.20240115"}',
    '{"name": "_ga", "value": "GA1.1.1234567890.1699999999", "domain": ".acme.test"}', "SESSION_COOKIE_NAME = 'acme_session_cookie_v2'", "cookie not found: request 4bf92f3577b34da6a3ce929d0e0e4736", "cookie: string;",
    "app.use(cookieParser(process.env.COOKIE_SECRET))", "Set-Cookie: flavor=choco; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Domain=a1b2c3d4e5f6.cloudfront.net", "const cookies = new Cookies(req.headers.cookie)",
    "Cookie: AB_test=variant-b; experiment=newCheckoutFlow2024variant", "cookies.set('locale', 'de-AT')", "session=<random>; Path=/", "http.cookies.SimpleCookie", "Cookie: viewed=[1234567890,2345678901]; tz=Europe/Vienna",
    "Cookie: last_seen=2024-01-01T00:00:00.000Z; visits=000000000000000042", "cookie_path = '/srv/app/releases/20240115093045/cookies.txt'", "if (cookie.name === 'session') return cookie.value;",
]  # fmt: skip


def texts(rng: random.Random) -> list[tuple[str, str, str]]:
    """Form, text, the session it holds."""
    found = []
    for i, form in enumerate(FORMS):
        for name, (kind, length) in list(NAMES.items())[i % 3 :: 3]:
            session = value(rng, kind, length)
            if form.startswith("cookies = dict") and not name.isidentifier():
                continue
            found.append((form, _fill(form, name, session), session))
    return found


def _fill(form: str, name: str, session: str) -> str:
    """The form with its name and value; `N` and `V` stand alone in a form."""
    words = []
    for i, letter in enumerate(form):
        around = form[max(0, i - 1) : i] + form[i + 1 : i + 2]
        alone = not any(c.isalnum() or c in "-_" for c in around)
        words.append({"N": name, "V": session}.get(letter, letter) if alone else letter)
    return "".join(words)


def quoted(text: str, times: int) -> str:
    """The text as a JSON string in a JSON string."""
    for _ in range(times):
        text = json.dumps({"output": text})
    return text
