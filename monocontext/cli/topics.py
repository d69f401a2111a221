"""The texts of `help TOPIC`, from which docs/configuration.md is made too."""

from __future__ import annotations

from monocontext.cli.settings import SETTINGS

_STORES = """\
Places where a text may be stored. A context is a folder of objects at one of these:

- `s3://bucket/prefix`: Amazon S3, and servers of its protocol with `--endpoint URL`
- `gs://bucket/prefix`: Google Cloud Storage; needs `pip install -e '.[obstore]'`
- `az://container/prefix`: Azure Blob Storage; the same
- `https://host/path`: a web server that supports ranges, read only; the same
- `hf://datasets/owner/name/path`: Hugging Face, read only; needs `monocontext[fsspec]` and `huggingface_hub`
- `fsspec+PROTOCOL://place/path`: any filesystem of fsspec; needs `monocontext[fsspec]`
- a path, or `file:///directory`: a directory of this machine

docs/stores.md says what each has to promise."""

_CREDENTIALS = """\
Keys come from the environment and from the files of their makers, never from `config.toml`.

- S3: `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, a profile (`--profile`, `aws sso login`), or the role of the
  machine, in boto3's order. `--anonymous` signs nothing, for public buckets.
- Google: `GOOGLE_APPLICATION_CREDENTIALS`, the login of `gcloud`, or the machine's own.
- Azure: `AZURE_STORAGE_ACCOUNT_NAME` with `AZURE_STORAGE_ACCOUNT_KEY`, a SAS token, or a managed identity.
- Models: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`, or what another maker's SDK reads."""

_CONFIG = """\
`config.toml` holds defaults for where texts are. A flag overrides a variable of the environment,
the variable overrides the file, and the file overrides built-in defaults, which for S3 include the AWS configuration.
The library for Python never reads the file.

It is in `$XDG_CONFIG_HOME/monocontext`, by default `~/.config/monocontext`; on macOS in
`~/Library/Application Support/monocontext`, on Windows in `%APPDATA%\\monocontext`. `monocontext config path` prints
where, `monocontext config show` each value and where it comes from. Nothing is read from the working directory: a
repository that you cloned could send your text and your keys elsewhere.

    [s3]
    endpoint = "https://s3.example.com"

It may hold these settings, but no keys (see `help credentials`):

{settings}

Uploads of hooks read no file: `hooks install` writes what it finds into their settings. Models and limits of `rlm` are
told by arguments and by variables of the environment alone."""

_VARIABLES = {
    "AWS_...": "keys, profile, region and endpoint, as boto3 reads them",
    "OPENAI_API_KEY, ANTHROPIC_API_KEY": "keys of models",
    "OPENAI_BASE_URL, ANTHROPIC_BASE_URL": "endpoints of models",
    "OPENAI_MODEL": "the model of `rlm demo`, and of `rlm compile` if nothing else names one",
    "MONOCONTEXT_URL": "the archive of sessions",
    "MONOCONTEXT_VOLUMES": "the URL of volumes, by default `~/.monocontext/volumes`",
    "MONOCONTEXT_HOME": "the folder of waiting uploads of hooks, briefs and their log, by default `~/.monocontext`",
    "MONOCONTEXT_USER": "the user of uploaded sessions, by default the login",
    "MONOCONTEXT_MCP_TOKEN": "bearer tokens of the HTTP servers",
    "MONOCONTEXT_PYODIDE": "the folder of Pyodide, for the runner wasm",
    "NO_COLOR": "no colours",
    "HTTPS_PROXY, NO_PROXY": "and similar variables, as in other programs",
    "XDG_CONFIG_HOME": "the folder of `monocontext/config.toml`",
}


def _list(rows: dict[str, str]) -> str:
    return "\n".join(
        f"- {', '.join(f'`{name}`' for name in names.split(', '))}: {about}" for names, about in rows.items()
    )


def _settings() -> str:
    return _list({key: f"{each.about}{_unless(each.variables)}" for key, each in SETTINGS.items()})


def _unless(variables: tuple[str, ...]) -> str:
    return f" (unless {' or '.join(f'`{name}`' for name in variables)} is set)" if variables else ""


TOPICS = {
    "config": _CONFIG.format(settings=_settings()),
    "credentials": _CREDENTIALS,
    "environment": "Variables that both commands read:\n\n" + _list(_VARIABLES),
    "stores": _STORES,
}
"""Markdown, by the name of the topic."""
