"""Runs a module against what the program was recorded to print: tests/fleet/record in the source of Ringfence."""

from __future__ import annotations

import json
import pathlib
import tempfile

import pytest

from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args

FIXTURES = pathlib.Path(__file__).parent / 'fixtures'


class Ended(Exception):
    """A module's end, with what it returned."""

    def __init__(self, result):
        super().__init__(result)
        self.result = result


@pytest.fixture
def recorded():
    """What the program printed, by the name of the recording."""
    return lambda name: json.loads((FIXTURES / (name + '.json')).read_text())


@pytest.fixture
def run(monkeypatch, recorded, tmp_path):
    """run(module, args, answers, check=, diff=): the result, and the calls that the module made of the program.

    `answers` has for each command the names of recordings, in the order of the calls.
    """

    def running(module, args, answers, check=False, diff=False):
        waiting = dict((command, list(names)) for command, names in answers.items())
        calls, warnings = [], []

        def run_command(self, words, **dummy):
            calls.append(words[1:])
            command = words[1]
            names = waiting.get(command, ['version'] if command == '--version' else [])
            assert names, 'no recording is left for %s' % words
            answer = recorded(names.pop(0)) if isinstance(names[0], str) else names.pop(0)
            return answer['status'], answer['out'], answer['err']

        def end(self, **result):
            result.setdefault('failed', False)
            raise Ended(result)

        monkeypatch.setattr(basic.AnsibleModule, 'run_command', run_command)
        monkeypatch.setattr(basic.AnsibleModule, 'get_bin_path', lambda self, name, *dummy, **more: None if name == 'none' else '/usr/bin/' + name)
        monkeypatch.setattr(basic.AnsibleModule, 'exit_json', end)
        monkeypatch.setattr(basic.AnsibleModule, 'fail_json', lambda self, msg, **more: end(self, msg=msg, failed=True, **more))
        monkeypatch.setattr(basic.AnsibleModule, 'warn', lambda self, text, **more: warnings.append(text))
        monkeypatch.setattr(basic.AnsibleModule, 'tmpdir', tempfile.mkdtemp(dir=tmp_path))
        common = dict(_ansible_check_mode=check, _ansible_diff=diff)
        with patch_module_args(dict(args, **common)):
            with pytest.raises(Ended) as ended:
                module.main()
        result = ended.value.result
        result['calls'] = calls
        result['warned'] = warnings
        return result

    return running
