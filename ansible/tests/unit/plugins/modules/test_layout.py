"""The module layout."""

from __future__ import annotations

import fcntl
import json
import os

import pytest

from ansible_collections.ringfence.host.plugins.module_utils import layout_files, staging
from ansible_collections.ringfence.host.plugins.modules import layout

TEXT = '[groups.rf-test-record.groups.db]\nmemory.max = "100M"\npids.max = 50\n'


@pytest.fixture
def etc(tmp_path):
    """A directory of a layout."""
    path = tmp_path / 'etc'
    path.mkdir()
    return path


@pytest.fixture
def args(etc, tmp_path):
    """What each task has."""
    return dict(directory=str(etc), state_directory=str(tmp_path / 'state'), reload='never')


def commands(result):
    """The commands that were called, without the version."""
    return [call[0] for call in result['calls'] if call[0] != '--version']


def test_a_new_layout_is_written_and_applied(run, args, etc):
    result = run(layout, dict(args, content=TEXT), dict(plan=['plan-new'], apply=['apply-new']))
    assert not result['failed'] and result['changed']
    assert commands(result) == ['plan', 'apply']
    assert (etc / 'layout.toml').read_text() == TEXT
    assert result['generation'] == 1
    assert result['files'] == [str(etc / 'layout.toml')]


def test_a_layout_that_is_in_effect_changes_nothing(run, args, etc):
    (etc / 'layout.toml').write_text(TEXT)
    result = run(layout, dict(args, content=TEXT), dict(plan=['plan-same']))
    assert not result['failed'] and not result['changed']
    assert result['calls'][-1][-1] == str(etc)


def test_check_mode_plans_and_writes_nothing(run, args, etc):
    result = run(layout, dict(args, content=TEXT), dict(plan=['plan-new']), check=True, diff=True)
    assert result['changed'] and not (etc / 'layout.toml').exists()
    plan, file = result['diff']
    assert plan['before'] == ''
    assert 'rf-test-record/db\n' in plan['after'] and '104857600' in plan['after']
    assert file['before'] == '' and file['after'] == TEXT


def test_a_change_shows_the_value_before(run, args, etc):
    (etc / 'layout.toml').write_text(TEXT)
    result = run(layout, dict(args, content=TEXT.replace('100M', '200M')), dict(plan=['plan-change']), check=True, diff=True)
    plan = result['diff'][0]
    assert '104857600' in plan['before'] and '209715200' in plan['after']


def test_drift_is_a_change_without_a_file(run, args, etc):
    (etc / 'layout.toml').write_text(TEXT)
    result = run(layout, dict(args, content=TEXT), dict(plan=['plan-change'], apply=['apply-new']))
    assert result['changed'] and result['files'] == []


def test_a_layout_that_the_host_cannot_satisfy_changes_no_file(run, args, etc):
    result = run(layout, dict(args, content=TEXT), dict(plan=['plan-impossible']))
    assert result['failed'] and 'needs 9999 CPUs' in result['msg']
    assert any('hint: ' in line for line in result['explanation'])
    assert list(etc.iterdir()) == []


def test_a_layout_that_cannot_be_read_names_the_place(run, args, recorded):
    result = run(layout, dict(args, content='[groups.x'), dict(plan=['plan-unreadable']))
    assert result['failed'] and result['status'] == 2
    assert "the header's ']' is missing" in result['msg']


def test_a_refused_apply_puts_the_files_back(run, args, etc):
    (etc / 'layout.toml').write_text(TEXT)
    result = run(layout, dict(args, name='10-db', content='x = 1\n'), dict(plan=['plan-change'], apply=['apply-while-pending']))
    assert result['failed'] and 'Hint: ringfence confirm 2, or ringfence undo' in result['msg']
    assert not (etc / 'layout.d' / '10-db.toml').exists()
    assert (etc / 'layout.toml').read_text() == TEXT


def test_what_waits_is_beside_the_files(run, args, etc, tmp_path):
    (etc / 'layout.toml').write_text(TEXT)
    new = TEXT.replace('100M', '200M')
    result = run(layout, dict(args, content=new, confirm='120s'), dict(plan=['plan-change'], apply=['apply-confirm']))
    assert not result['failed'] and result['confirm_within'] == 120
    assert (etc / 'layout.toml').read_text() == TEXT
    staged, = (tmp_path / 'state' / 'staged-layout').iterdir()
    assert (staged / 'layout.toml').read_text() == new
    # the history names the files' place, and not where they wait
    assert result['calls'][-1][-5:] == ['--named', str(etc), '--confirm', '120s', str(staged)]


def test_a_refused_change_leaves_the_files_of_the_one_that_waits(run, args, etc, staged):
    (etc / 'layout.toml').write_text(TEXT)
    result = run(layout, dict(args, content='# new\n', confirm='120s'), dict(plan=['plan-change'], apply=['apply-while-pending']))
    assert result['failed'] and 'Hint: ringfence confirm 2, or ringfence undo' in result['msg']
    assert list(staged.parent.iterdir()) == [staged]


@pytest.fixture
def staged(tmp_path):
    """A layout that waits for its confirmation."""
    path = tmp_path / 'state' / 'staged-layout' / 'abc'
    (path / 'layout.d').mkdir(parents=True)
    (path / 'layout.d' / '10-db.toml').write_text(TEXT)
    return path


@pytest.fixture
def history_of(recorded):
    """The recorded history, whose last layout was applied from a directory."""
    def made(path, in_effect=True, later=()):
        history = recorded('history-pending')
        rows = json.loads(history['out'])
        rows[-1]['head']['file'] = str(path)
        rows[-1]['in_effect'] = in_effect
        return dict(history, out=json.dumps(rows + list(later)))
    return made


UNDONE = dict(head=dict(generation=3, at='2026-01-01T00:00:00Z', kind='undo', what='not confirmed within 120 s'), in_effect=False)


def test_a_confirmation_installs_the_files(run, args, etc, staged, history_of):
    (etc / 'layout.toml').write_text('# old\n')
    result = run(layout, dict(args, state='confirmed', generation=2), dict(
        status=['status-pending'], history=[history_of(staged)], confirm=['confirm']))
    assert not result['failed'] and result['changed'] and result['generation'] == 2
    assert (etc / 'layout.d' / '10-db.toml').read_text() == TEXT
    assert not (etc / 'layout.toml').exists() and not staged.exists()


def test_a_confirmation_of_what_somebody_applied_by_hand_installs_nothing(run, args, etc):
    result = run(layout, dict(args, state='confirmed'), dict(
        status=['status-pending'], history=['history-pending'], confirm=['confirm']))
    assert result['changed'] and list(etc.iterdir()) == []


def test_files_that_a_killed_run_confirmed_and_did_not_install_are_installed(run, args, etc, staged, history_of):
    (etc / 'layout.toml').write_text('# old\n')
    value = dict(head=dict(generation=3, at='2026-01-01T00:00:00Z', what='set db pids.max'), in_effect=True)
    result = run(layout, dict(args, state='confirmed'), dict(status=['status-same'], history=[history_of(staged, later=[value])]))
    assert not result['failed'] and result['changed'] and result['generation'] == 2
    assert (etc / 'layout.d' / '10-db.toml').read_text() == TEXT and not staged.exists()
    assert not any('confirm' in call for call in result['calls'])


def test_a_change_that_was_undone_before_its_confirmation_is_a_failure(run, args, etc, staged, history_of):
    history = history_of(staged, in_effect=False, later=[UNDONE])
    for more in ({}, dict(generation=2)):
        result = run(layout, dict(args, state='confirmed', **more), dict(status=['status-same'], history=[history]))
        assert result['failed'] and 'generation 3 undid it (not confirmed within 120 s)' in result['msg']
        assert list(etc.iterdir()) == []
    checked = run(layout, dict(args, state='confirmed'), dict(status=['status-same'], history=[history]), check=True)
    assert not checked['failed'] and not checked['changed']


def test_files_of_a_change_that_was_undone_do_not_outlast_the_next_task(run, args, etc, staged):
    (etc / 'layout.toml').write_text(TEXT)
    result = run(layout, dict(args, content=TEXT), dict(plan=['plan-same'], status=['status-same']))
    assert not result['changed'] and not staged.exists()


def test_files_that_were_never_applied_are_not_installed(run, args, etc, staged):
    # a run was killed between writing them and applying them, after an earlier roll-out
    result = run(layout, dict(args, state='confirmed'), dict(status=['status-same'], history=['history']))
    assert not result['failed'] and not result['changed'] and list(etc.iterdir()) == []


def test_a_change_of_somebody_else_is_not_confirmed_in_place_of_the_named_one(run, args, staged, history_of):
    result = run(layout, dict(args, state='confirmed', generation=1), dict(
        status=['status-pending'], history=[history_of(staged)]))
    assert result['failed'] and 'generation 2 waits to be confirmed, and not generation 1' in result['msg']


def test_one_run_at_a_time_changes_a_host(run, args, etc, staged, monkeypatch):
    monkeypatch.setattr(staging, 'PATIENCE', 0)
    descriptor = os.open(staged.parent, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    result = run(layout, dict(args, content=TEXT), dict(plan=['plan-new']))
    os.close(descriptor)
    assert result['failed'] and 'another run changes the layout of this host' in result['msg']
    assert list(etc.iterdir()) == []


def test_a_link_in_place_of_the_staged_files_is_not_followed(run, args, etc, tmp_path):
    (tmp_path / 'state').mkdir()
    (tmp_path / 'other').mkdir()
    (tmp_path / 'state' / 'staged-layout').symlink_to(tmp_path / 'other')
    result = run(layout, dict(args, content=TEXT, confirm='60s'), dict(plan=['plan-new']))
    assert result['failed'] and list((tmp_path / 'other').iterdir()) == []


@pytest.mark.parametrize('odd, said', [
    (lambda path: path.symlink_to('/etc/hostname'), 'is a symbolic link'),
    (lambda path: path.symlink_to('/nonexistent'), 'is a symbolic link'),
    (os.mkfifo, 'is no regular file'),
    (lambda path: path.mkdir(), 'irectory'),
])
def test_what_is_no_file_is_refused(run, args, etc, odd, said, monkeypatch):
    monkeypatch.setattr(layout_files.os, 'geteuid', lambda: 0)
    (etc / 'layout.d').mkdir()
    odd(etc / 'layout.d' / '20-odd.toml')
    for more in ({}, dict(prune=True)):
        result = run(layout, dict(args, content=TEXT, **more), {})
        assert result['failed'] and said in result['msg']
    assert [path.name for path in etc.rglob('*.toml')] == ['20-odd.toml']


def test_modes_and_line_ends_stay(run, args, etc):
    path = etc / 'layout.toml'
    path.write_bytes(b'# old\r\n')
    path.chmod(0o600)
    same = run(layout, dict(args, content='# old\r\n'), dict(plan=['plan-same']))
    assert not same['changed']
    run(layout, dict(args, content=TEXT), dict(plan=['plan-change'], apply=['apply-while-pending']))
    assert path.read_bytes() == b'# old\r\n' and path.stat().st_mode & 0o777 == 0o600
    run(layout, dict(args, content=TEXT), dict(plan=['plan-change'], apply=['apply-new']))
    assert path.read_text() == TEXT and path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_no_utf8_can_be_replaced(run, args, etc):
    (etc / 'layout.toml').write_bytes(b'# \xff\n')
    result = run(layout, dict(args, content=TEXT), dict(plan=['plan-new'], apply=['apply-new']), diff=True)
    assert not result['failed']
    json.dumps(result['diff'], ensure_ascii=False).encode()


def test_a_disk_that_is_full_leaves_the_old_files(run, args, etc, monkeypatch):
    (etc / 'layout.d').mkdir()
    (etc / 'layout.d' / '10-a.toml').write_text('# old\n')
    put = layout_files.put

    def full(directory, path, text, about):
        if path.endswith('20-b.toml') and directory == str(etc):
            raise OSError(28, 'No space left on device', path)
        put(directory, path, text, about)

    monkeypatch.setattr(layout_files, 'put', full)
    result = run(layout, dict(args, layouts={'10-a': TEXT, '20-b': '# b\n'}), dict(plan=['plan-new']))
    assert result['failed'] and 'No space left' in result['msg']
    assert [path.read_text() for path in etc.rglob('*.toml')] == ['# old\n']


def test_temporary_files_of_a_killed_run_go(run, args, etc):
    (etc / 'layout.d').mkdir()
    (etc / 'layout.d' / '.ringfence-abc').write_text('x')
    (etc / 'layout.d' / 'README').write_text('x')
    run(layout, dict(args, content=TEXT), dict(plan=['plan-new'], apply=['apply-new']))
    assert [path.name for path in (etc / 'layout.d').iterdir()] == ['README']


@pytest.mark.parametrize('task', [dict(state='absent', name='20-old'), dict(layouts={}), dict(layouts={'20-old': ''})])
def test_without_files_before_and_after_what_is_in_effect_stays(run, args, task):
    result = run(layout, dict(args, **task), {})
    assert not result['failed'] and not result['changed'] and commands(result) == []


def test_the_last_file_goes_after_its_groups(run, args, etc):
    (etc / 'layout.toml').write_text(TEXT)
    result = run(layout, dict(args, state='absent'), dict(plan=['plan-empty'], apply=['apply-while-pending']))
    assert result['failed'] and (etc / 'layout.toml').read_text() == TEXT


def test_prune_of_everything_is_refused(run, args, etc):
    (etc / 'layout.toml').write_text(TEXT)
    for layouts in ({}, {'10-db': ''}):
        result = run(layout, dict(args, layouts=layouts, prune=True), {})
        assert result['failed'] and 'state: absent' in result['msg']
    assert (etc / 'layout.toml').read_text() == TEXT


def test_nothing_to_confirm_is_no_change(run, args):
    result = run(layout, dict(args, state='confirmed'), dict(status=['status-same'], history=['history']))
    assert not result['failed'] and not result['changed']


def test_a_late_confirmation_fails(run, args, recorded, tmp_path):
    result = run(layout, dict(args, state='confirmed'), dict(
        status=['status-pending'], history=['history-pending'], confirm=['confirm-again']))
    assert result['failed']


def test_absent_removes_the_file_and_what_it_asked_for(run, args, etc):
    (etc / 'layout.toml').write_text(TEXT)
    result = run(layout, dict(args, state='absent'), dict(plan=['plan-empty'], apply=['apply-new']))
    assert result['changed'] and not (etc / 'layout.toml').exists()
    assert '--yes' in result['calls'][-1]


def test_prune_leaves_what_the_task_names(run, args, etc):
    (etc / 'layout.toml').write_text('# old\n')
    (etc / 'layout.d').mkdir()
    (etc / 'layout.d' / '99-old.toml').write_text('# old\n')
    result = run(layout, dict(args, layouts={'10-db': TEXT}, prune=True), dict(plan=['plan-new'], apply=['apply-new']))
    assert not result['failed']
    assert [path.name for path in etc.rglob('*.toml')] == ['10-db.toml']


def test_an_empty_text_of_several_is_a_file_that_goes(run, args, etc):
    (etc / 'layout.d').mkdir()
    (etc / 'layout.d' / '99-old.toml').write_text('# old\n')
    run(layout, dict(args, layouts={'10-db': TEXT, '99-old': ''}), dict(plan=['plan-new'], apply=['apply-new']))
    assert [path.name for path in etc.rglob('*.toml')] == ['10-db.toml']


def test_a_daemon_that_does_not_answer_is_named(run, args, etc):
    result = run(layout, dict(args, content=TEXT, reload='always'), dict(
        plan=['plan-new'], apply=['apply-new'], reload=['reload-unreachable']))
    assert result['failed'] and 'the daemon does not read them' in result['msg']
    assert (etc / 'layout.toml').read_text() == TEXT


def test_auto_reloads_no_daemon_that_is_not_there(run, args, etc, tmp_path):
    result = run(layout, dict(args, content=TEXT, reload='auto', socket=str(tmp_path / 'none')), dict(
        plan=['plan-new'], apply=['apply-new']))
    assert not result['failed']


@pytest.mark.parametrize('wrong, said', [
    (dict(confirm='soon'), "confirm: 'soon' is no time"),
    (dict(confirm='0'), 'is no time'),
    (dict(name='../x'), 'is no name of a file'),
    (dict(name='.x'), 'is no name of a file'),
    (dict(name='x\n'), 'is no name of a file'),
])
def test_bad_arguments(run, args, wrong, said):
    result = run(layout, dict(args, content=TEXT, **wrong), {})
    assert result['failed'] and said in result['msg']


@pytest.mark.parametrize('wrong, said', [
    (dict(layouts={'x': 5}), 'is to be a text in TOML, and is int'),
    (dict(layouts={'x': None}), 'is to be a text in TOML, and is empty'),
    (dict(layouts={'': 'x'}), 'is no name of a file'),
    (dict(layouts={'x\n': 'x'}), 'is no name of a file'),
    (dict(layouts='x'), 'layouts'),
    (dict(content='x', prune='perhaps'), 'prune'),
    (dict(content='x', layouts={'x': 'x'}), 'mutually exclusive'),
    (dict(state='gone', content='x'), 'state'),
    ({}, 'any of the following are missing'),
    (dict(src='/x'), 'read by the controller'),
])
def test_wrong_types(run, args, wrong, said):
    result = run(layout, dict(args, **wrong), {})
    assert result['failed'] and said in result['msg']


def test_no_right_is_named(run, args, monkeypatch, tmp_path):
    def refused(*dummy):
        raise PermissionError(13, 'Permission denied', '/etc/ringfence/layout.toml')
    monkeypatch.setattr(layout.layout_files, 'install', refused)
    monkeypatch.setattr(layout.os, 'geteuid', lambda: 1000)
    result = run(layout, dict(args, content=TEXT), dict(plan=['plan-new']))
    assert result['failed'] and 'become: true' in result['msg']


def test_check_mode_before_the_package_is_there(run, args):
    result = run(layout, dict(args, content=TEXT, executable='none'), {}, check=True)
    assert not result['failed'] and result['changed'] and 'is not installed yet' in result['warned'][0]
    assert run(layout, dict(args, content=TEXT, executable='none'), {})['failed']
