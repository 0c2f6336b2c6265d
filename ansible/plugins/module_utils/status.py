# Copyright: the Ringfence authors
# Apache License 2.0 (see LICENSE)

"""What `ringfence status --json` says, as rows that people read."""

from __future__ import annotations


def drifts(status, history):
    """A row for each value, owner or directory that is not as it was applied."""
    applied_at = dict((row['head']['generation'], row['head']['at']) for row in history if row.get('head'))
    rows = []
    for group in status['groups']:
        for drift in group['drift']:
            where = drift.get('file') or drift.get('directory') or drift.get('unit') or ''
            rows.append(dict(
                group=group['group'],
                what=('%s %s' % (drift['drift'], where)).strip(),
                applied=as_text(drift.get('requested')),
                now=as_text(drift.get('actual') if 'actual' in drift else drift.get('to')),
                generation=group['generation'],
                applied_at=applied_at.get(group['generation'])))
    return rows


def as_text(value):
    """Nothing is a word, as it stands in a table."""
    return '-' if value is None else str(value).strip()


def owners(status):
    """The owners that were applied, by group."""
    return dict((group['group'], group['owners']) for group in status['groups'] if group['owners'])


def attention(status):
    """What else `status` ends with 3 for, a sentence each."""
    said = list(status.get('not_in_effect') or [])
    if status.get('not_resized'):
        said.append(status['not_resized'])
    for generation in status.get('unknown') or []:
        said.append('generation %s is in effect and has no record' % generation)
    unfinished = status.get('unfinished')
    if unfinished and not unfinished['lives']:
        said.append('generation %d was interrupted; the next apply or undo rolls it back' % unfinished['generation'])
    pending = status.get('pending')
    if pending and pending['overdue']:
        said.append('generation %d was not confirmed in time and is still in effect: ringfence undo' % pending['generation'])
    elif pending and pending['unwatched']:
        said.append('generation %d is not confirmed, and no process is left that would undo it' % pending['generation'])
    for unit in status.get('new_units') or []:
        said.append("%s is loaded and not bound yet, as group '%s'" % (unit['unit'], unit['group']))
    misplaced = status.get('misplaced') or []
    if misplaced:
        said.append('%d processes are not in the groups that the rules name' % len(misplaced))
    return said
