"""The module layout."""

from __future__ import annotations

import json

import pytest

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
    result = run(layout, dict(args, content=new, confirm='120s'), dict(
        plan=['plan-change'], status=['status-same'], apply=['apply-confirm']))
    assert not result['failed'] and result['confirm_within'] == 120
    assert (etc / 'layout.toml').read_text() == TEXT
    assert (tmp_path / 'state' / 'staged-layout' / 'layout.toml').read_text() == new


def test_a_confirmation_installs_the_files(run, args, etc, tmp_path, recorded):
    staged = tmp_path / 'state' / 'staged-layout'
    (staged / 'layout.d').mkdir(parents=True)
    (staged / 'layout.d' / '10-db.toml').write_text(TEXT)
    (etc / 'layout.toml').write_text('# old\n')
    history = recorded('history-pending')
    rows = json.loads(history['out'])[-1:]
    rows[0]['head']['what'] = 'layout %s' % staged
    result = run(layout, dict(args, state='confirmed'), dict(
        status=['status-pending'], history=[dict(history, out=json.dumps(rows))], confirm=['confirm'], apply=['apply-new']))
    assert not result['failed'] and result['changed'] and result['generation'] == 2
    assert (etc / 'layout.d' / '10-db.toml').read_text() == TEXT
    assert not (etc / 'layout.toml').exists() and not staged.exists()


def test_a_confirmation_of_what_somebody_applied_by_hand_installs_nothing(run, args, etc, tmp_path):
    (tmp_path / 'state' / 'staged-layout').mkdir(parents=True)
    result = run(layout, dict(args, state='confirmed'), dict(
        status=['status-pending'], history=['history-pending'], confirm=['confirm']))
    assert result['changed'] and list(etc.iterdir()) == []


@pytest.mark.parametrize('in_effect, staged_for', [(True, 2), (False, 2), (True, 1)])
def test_files_that_a_killed_run_confirmed_are_installed_and_no_others(run, args, etc, tmp_path, recorded, in_effect, staged_for):
    staged = tmp_path / 'state' / 'staged-layout'
    staged.mkdir(parents=True)
    (staged / 'layout.toml').write_text(TEXT)
    (tmp_path / 'state' / 'staged-layout.generation').write_text('%d\n' % staged_for)
    (etc / 'layout.toml').write_text('# old\n')
    history = recorded('history-pending')
    rows = json.loads(history['out'])
    rows[-1]['in_effect'] = in_effect
    history = dict(history, out=json.dumps(rows))
    result = run(layout, dict(args, state='confirmed'), dict(
        status=['status-same'], history=[history], apply=['apply-new']))
    installs = in_effect and staged_for == 2
    assert not result['failed'] and result['changed'] == installs
    assert (etc / 'layout.toml').read_text() == (TEXT if installs else '# old\n')
    assert staged.exists() != installs
    assert not any('confirm' in call for call in result['calls'])


def test_nothing_to_confirm_is_no_change(run, args):
    result = run(layout, dict(args, state='confirmed'), dict(status=['status-same']))
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
])
def test_bad_arguments(run, args, wrong, said):
    result = run(layout, dict(args, content=TEXT, **wrong), {})
    assert result['failed'] and said in result['msg']


@pytest.mark.parametrize('wrong, said', [
    (dict(layouts={'x': 5}), 'is to be a text in TOML, and is int'),
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
