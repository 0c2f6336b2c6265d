# Copyright: the Ringfence authors
# Apache License 2.0 (see LICENSE)

"""Layouts whose files wait beside the history until their change is confirmed, and the lock of those that change them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time

from ansible_collections.ringfence.host.plugins.module_utils import layout_files

STATE = '/var/lib/ringfence'
# how long a run waits for another one, in seconds
PATIENCE = 60


class Busy(Exception):
    """Another run has the lock."""


class Staging:
    """A directory with one directory for each layout, whose path the history has as the file that was applied."""

    def __init__(self, state):
        self.state = os.path.abspath(state or os.environ.get('RINGFENCE_STATE') or STATE)
        self.directory = os.path.join(self.state, 'staged-layout')

    @contextlib.contextmanager
    def locked(self):
        """Has one run at a time change this host's layout; a run that is killed lets go."""
        os.makedirs(self.state, mode=0o755, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.directory, 0o700)
        descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            self.wait_for(descriptor)
            yield
        finally:
            os.close(descriptor)

    def wait_for(self, descriptor):
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise Busy('another run changes the layout of this host, since %d seconds or more' % PATIENCE) from None
            time.sleep(0.2)

    def add(self, texts):
        """Writes a layout's files, and returns their directory."""
        path = tempfile.mkdtemp(prefix='', dir=self.directory)
        layout_files.stage(texts, path)
        return path

    def read(self, path):
        """The files that were staged there."""
        texts = layout_files.read(path)
        return {} if texts == {layout_files.MAIN: ''} else texts

    def of(self, row):
        """The directory of which a change of the history was made, if it is there still."""
        path = (row.get('head') or {}).get('file') or ''
        return path if os.path.dirname(path) == self.directory and os.path.isdir(path) and not os.path.islink(path) else None

    def paths(self):
        """All that is staged."""
        try:
            return [os.path.join(self.directory, name) for name in os.listdir(self.directory)]
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return []

    def clear(self, but=None):
        """Removes what no change waits with."""
        for path in self.paths():
            if path != but:
                remove(path)


def remove(path):
    """Removes what was staged in a directory, or is in its place."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        os.unlink(path)
