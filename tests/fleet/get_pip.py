"""Installs the pip that comes with Python, and the packages named, as get-pip does: ansible-test runs it for its environments."""

import ensurepip
import subprocess
import sys

ensurepip.bootstrap(default_pip=True)
packages = [word for word in sys.argv[1:] if not word.startswith('-') and not word.startswith('pip==')]
if packages:
    subprocess.run([sys.executable, '-m', 'pip', 'install', '--disable-pip-version-check', *packages], check=True)
