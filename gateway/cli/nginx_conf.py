"""The configuration of the nginx that stands before the web process.

What is asked below /apps/ goes to the application's own door on a node, once the portal has said
that this person may (auth_request); all else goes to the portal. Values are put in only after they
were compared with what such values look like.
"""

import re
from dataclasses import dataclass

from gateway.core.apps import KEY_HEADER, WHO_HEADER
from gateway.web.frontdoor import HEADER
from gateway.web.security import SESSION_COOKIE

# Who was let in may come in for so long without another look: a page of JupyterLab is a hundred
# files. Who was not is asked about again at once, so that nobody waits after being named.
REMEMBERED_SECONDS = 2
_LISTEN = re.compile(r"(?:[0-9.]{7,15}:|\[[0-9a-fA-F:]{2,45}\]:|[a-zA-Z0-9.-]{1,253}:)?[0-9]{1,5}")
_NAME = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9.-]{0,251}[a-zA-Z0-9])?")
_PATH = re.compile(r"/[A-Za-z0-9_@%+=:,./-]+")
_WORD = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Front:
    """`web` is where gunicorn listens: an address with a port, or the path of a socket. `folder`
    holds what nginx keeps: the gate's answers. `names` empty: every name is taken."""

    listen: str
    web: str
    word: str
    folder: str
    read_seconds: int
    names: tuple[str, ...] = ()
    certificate: str = ""
    certificate_key: str = ""

    def __post_init__(self) -> None:
        paths = [self.folder, *filter(None, (self.certificate, self.certificate_key))]
        wrong = [path for path in paths if not _PATH.fullmatch(path)]
        wrong += [name for name in self.names if not _NAME.fullmatch(name)]
        wrong += [] if _LISTEN.fullmatch(self.listen) else [self.listen]
        web_is_good = (_PATH if self.web.startswith("/") else _LISTEN).fullmatch(self.web)
        wrong += [] if web_is_good else [self.web]
        wrong += [] if _WORD.fullmatch(self.word) else ["the word"]
        if wrong:
            raise ValueError(f"nginx could read this in another way: {', '.join(wrong)}")


def whole(front: Front, *, workers: int, as_root: bool = False) -> str:
    """A file for an nginx of one's own, which keeps all it writes in the front's folder."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    # Its workers must reach the folder, and that is root's where there is nobody else to be.
    user = "user root;\n" if as_root else ""
    places = "\n".join(f"  {kind}_temp_path {front.folder}/{kind};" for kind in kinds)
    return f"""{user}daemon off;
pid {front.folder}/nginx.pid;
error_log stderr warn;
worker_processes {workers};
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
  access_log off;
{places}
{site(front)}}}
"""


def site(front: Front) -> str:
    """What goes inside `http`: a file of its own in /etc/nginx/conf.d/ of a site."""
    web = f"unix:{front.web}" if front.web.startswith("/") else front.web
    return f"""{_MAPS}
proxy_cache_path {front.folder}/gate keys_zone=sluice_gate:1m max_size=16m inactive=10s
                 use_temp_path=off;
upstream sluice_web {{ server {web}; keepalive 16; }}
{_strangers(front)}server {{
{_listening(front)}
  server_tokens off;
  absolute_redirect off;
  recursive_error_pages on;
  proxy_http_version 1.1;
  # No answer, of an application least of all, may send nginx to another place of its own.
  proxy_ignore_headers X-Accel-Redirect X-Accel-Expires X-Accel-Limit-Rate X-Accel-Buffering
                       X-Accel-Charset;
{_portal(front)}
{_gate(front)}
{_APPS}}}
"""


# A path is taken only as it was written: after nginx has resolved dots, double slashes and encoded
# characters it must still begin with the same application.
_MAPS = rf"""map $http_upgrade $sluice_connection {{ "" close; default upgrade; }}
map $request_uri $sluice_none {{ default 0; }}
map $request_uri $sluice_written {{
  default "";
  "~^/apps/(?<sluice_w>[1-9][0-9]*)/" $sluice_w;
}}
map "$sluice_written:$uri" $sluice_straight {{
  default "";
  "~^([1-9][0-9]*):/apps/\1/" 1;
}}
# The portal's session cookie is taken out of what applications get; twice, and then no third time.
map $http_cookie $sluice_once {{
  default $http_cookie;
  "~^(?<sluice_a>(?:.*;[ \t]*)?){SESSION_COOKIE}[ \t]*=[^;]*(?:;[ \t]*)?(?<sluice_b>.*)$"
    "$sluice_a$sluice_b";
}}
map $sluice_once $sluice_twice {{
  default $sluice_once;
  "~^(?<sluice_c>(?:.*;[ \t]*)?){SESSION_COOKIE}[ \t]*=[^;]*(?:;[ \t]*)?(?<sluice_d>.*)$"
    "$sluice_c$sluice_d";
}}
map $sluice_twice $sluice_cookie {{
  default $sluice_twice;
  "~(?:^|;)[ \t]*{SESSION_COOKIE}[ \t]*=" "";
}}"""


def _listening(front: Front) -> str:
    tls = bool(front.certificate)
    lines = [f"  listen {front.listen}{' ssl' if tls else ''};"]
    lines += [f"  server_name {' '.join(front.names)};"] if front.names else []
    if tls:
        lines += [f"  ssl_certificate {front.certificate};"]
        lines += [f"  ssl_certificate_key {front.certificate_key};"]
    return "\n".join(lines)


def _strangers(front: Front) -> str:
    """Whoever asks for another name gets nothing, where the site has said what it is called."""
    if not front.names:
        return ""
    tls = front.certificate != ""
    refuse = "  ssl_reject_handshake on;\n" if tls else ""
    listen = f"  listen {front.listen}{' ssl' if tls else ''} default_server;\n"
    return f"server {{\n{listen}{refuse}  return 421;\n}}\n"


def _headers(front: Front) -> str:
    return f"""    proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header {HEADER} {front.word};
    proxy_set_header Connection "";"""


def _portal(front: Front) -> str:
    return f"""  location / {{
    proxy_pass http://sluice_web;
{_headers(front)}
    client_max_body_size 4m;
    proxy_read_timeout {front.read_seconds}s;
    error_page 502 504 = @sluice_down;
  }}
  location @sluice_down {{
    default_type "text/html; charset=utf-8";
    add_header Cache-Control no-store always;
    add_header Retry-After 5 always;
    return 503 "{_DOWN}";
  }}"""


_DOWN = (
    "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
    "<title>503</title><h1>The portal is being started</h1>"
    "<p>Jobs and notebooks are not affected. Load this page again in a moment.</p>"
    "<h1 lang=zh-Hans>门户正在启动</h1>"
    "<p lang=zh-Hans>作业和笔记本不受影响,请稍后重新加载本页。</p>"
)


def _gate(front: Front) -> str:
    """Asked by nginx alone; the answer holds the key, and is kept for a moment for this cookie."""
    return f"""  location ^~ /apps-gate {{
    internal;
    proxy_pass http://sluice_web/apps-gate/$sluice_job;
{_headers(front)}
    client_max_body_size 0;
    proxy_pass_request_body off;
    proxy_set_header Content-Length "";
    proxy_set_header Authorization "";
    proxy_set_header Upgrade "";
    proxy_cache sluice_gate;
    proxy_cache_key "$sluice_job $http_cookie";
    proxy_cache_valid 204 {REMEMBERED_SECONDS}s;
    proxy_ignore_headers Cache-Control Expires Set-Cookie Vary X-Accel-Expires X-Accel-Redirect;
    proxy_cache_lock on;
    proxy_cache_lock_timeout 5s;
    proxy_read_timeout {front.read_seconds}s;
  }}
{_words(front, "sluice_away", "apps-away/$sluice_job")}
{_words(front, "sluice_dead", "apps-down/$sluice_job")}
{_words(front, "sluice_nowhere", "apps-away/$sluice_none")}"""


def _words(front: Front, name: str, page: str) -> str:
    """Where it is said in words, by a page of the portal, why nobody was let through."""
    return f"""  location @{name} {{
    proxy_pass http://sluice_web/{page};
{_headers(front)}
    proxy_method GET;
    client_max_body_size 0;
    proxy_pass_request_body off;
    proxy_set_header Content-Length "";
    proxy_set_header Upgrade "";
    proxy_read_timeout {front.read_seconds}s;
    error_page 502 504 = @sluice_down;
  }}"""


# One connection a request (the door looks at each), open for a day; nothing goes over the disk.
_APPS = rf"""  location ~ ^/apps/[1-9][0-9]*$ {{ return 308 $uri/; }}
  location ~ "^/apps/(?<sluice_job>[1-9][0-9]{{0,17}})/" {{
    if ($sluice_straight = "") {{ return 404; }}
    auth_request /apps-gate;
    auth_request_set $sluice_address $upstream_http_x_sluice_address;
    auth_request_set $sluice_key $upstream_http_x_sluice_key;
    auth_request_set $sluice_who $upstream_http_x_sluice_who;
    error_page 404 = @sluice_nowhere;
    error_page 401 403 500 = @sluice_away;
    error_page 502 504 = @sluice_dead;
    proxy_pass http://$sluice_address$request_uri;
    proxy_set_header Host $http_host;
    proxy_set_header Cookie $sluice_cookie;
    proxy_set_header {KEY_HEADER} $sluice_key;
    proxy_set_header {WHO_HEADER} $sluice_who;
    proxy_set_header {HEADER} "";
    proxy_set_header X-Real-IP $remote_addr;
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header X-Forwarded-Host $http_host;
    proxy_set_header X-Forwarded-Port "";
    proxy_set_header X-Forwarded-Prefix "";
    proxy_set_header Forwarded "";
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $sluice_connection;
    proxy_redirect off;
    proxy_cookie_path ~.* /apps/$sluice_job/;
    proxy_cookie_domain ~.* $host;
    client_max_body_size 0;
    proxy_request_buffering off;
    proxy_max_temp_file_size 0;
    proxy_buffer_size 32k;
    proxy_buffers 16 256k;
    proxy_busy_buffers_size 2m;
    proxy_connect_timeout 5s;
    proxy_read_timeout 1d;
    proxy_send_timeout 1d;
    proxy_socket_keepalive on;
  }}
"""
