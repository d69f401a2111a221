"""Hooks that do nothing say so: what keeps an agent from running them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monocontext.sessions import settings
from monocontext.sessions.hook_state import find_hooks

CODEX = settings.AGENTS["codex"]
PROGRAM = ["/bin/monocontext-hook"]


def install(path: Path, agent: settings.AgentSettings = CODEX) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(settings.as_text(settings.add_hooks({}, agent, ["--url", "/a"], PROGRAM)))


def trust(home: Path, file: str, digests: dict[str, str], more: str = "") -> None:
    states = [f'[hooks.state."{file}:{key}"]\ntrusted_hash = "sha256:{digest}"\n' for key, digest in digests.items()]
    (home / ".codex" / "config.toml").write_text("".join(states) + more)


# What codex-cli 0.169.0 wrote for these entries (`hooks/list`, `currentHash`).
OF_ECHO = {
    "session_start:0:0": "0a94a2113adb21c0e4fc7f9d2ca93cab5351f6f6d13eded9ba57a25418cca733",
    "stop:0:0": "333c189e7627fdceb0e61109bcea255e31502ada476c9e5426becaa5107791d5",
}


def test_codex_runs_what_is_trusted_as_it_is(own_home: Path, tmp_path: Path) -> None:
    file = own_home / ".codex" / "hooks.json"
    file.parent.mkdir()
    hook = {"type": "command", "command": "/bin/echo monocontext-hook {}"}
    entries = {
        "Stop": [{"hooks": [{**hook, "command": "/bin/echo monocontext-hook stop"}]}],
        "SessionStart": [
            {"matcher": "startup", "hooks": [{**hook, "command": "/bin/echo monocontext-hook session-start"}]}
        ],
    }
    file.write_text(json.dumps({"hooks": entries}))

    def missing() -> str:
        (found,) = find_hooks(tmp_path)
        return found.missing

    assert "2 of these 2 are not trusted. Start `codex` and trust them" in missing()
    trust(own_home, str(file), OF_ECHO)
    assert missing() == ""
    trust(own_home, str(file), {**OF_ECHO, "stop:0:0": "0" * 64})  # installed again with another archive
    assert "1 of these 2 are not trusted" in missing()
    (own_home / ".codex" / "config.toml").write_text("[hooks")
    assert "config.toml cannot be read" in missing()


def test_codex_reads_hooks_of_a_directory_that_it_trusts(own_home: Path, tmp_path: Path) -> None:
    install(tmp_path / "api" / ".codex" / "hooks.json")
    (own_home / ".codex").mkdir()
    (found,) = find_hooks(tmp_path / "api")
    assert "of a directory that it does not trust" in found.missing
    trust(own_home, "", {}, f'[projects."{tmp_path}"]\ntrust_level = "trusted"\n')
    (found,) = find_hooks(tmp_path / "api")
    assert "2 of these 2 are not trusted" in found.missing


def test_the_plugin_of_codex_is_known(own_home: Path, tmp_path: Path) -> None:
    top = Path(__file__).resolve().parents[2] / "plugins" / "monocontext" / "hooks" / "codex-hooks.json"
    file = own_home / ".codex" / "plugins" / "cache" / "team" / "monocontext" / "0.2.0" / "hooks" / top.name
    file.parent.mkdir(parents=True)
    file.write_bytes(top.read_bytes())
    config = '[plugins."monocontext@team"]\nenabled = {}\n'
    trust(own_home, "", {}, config.format("false"))
    assert find_hooks(tmp_path) == []
    trust(own_home, "", {}, config.format("true"))
    assert "2 of these 2 are not trusted" in find_hooks(tmp_path)[0].missing
    digests = {  # as codex-cli 0.169.0 has them
        "session_start:0:0": "5c9d9d918e5f0a327467ef3605d2b6d4d5d95f3bf4c7791de57deb8fc4580752",
        "stop:0:0": "9849632adf9a7d03759df6d872d1d26fe0ad10a05bf29f053f30755d1acd4c13",
    }
    trust(own_home, "monocontext@team:hooks/codex-hooks.json", digests, config.format("true"))
    assert [hooks.missing for hooks in find_hooks(tmp_path)] == [""]


@pytest.mark.parametrize("off", [True, False])
def test_claude_code_runs_hooks_that_are_not_switched_off(off: bool, own_home: Path, tmp_path: Path) -> None:
    file = own_home / ".claude" / "settings.json"
    install(file, settings.AGENTS["claude-code"])
    file.write_text(json.dumps({**json.loads(file.read_text()), "disableAllHooks": off}))
    assert [bool(hooks.missing) for hooks in find_hooks(tmp_path)] == [off]
