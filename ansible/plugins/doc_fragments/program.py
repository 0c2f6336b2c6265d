# Copyright: the Ringfence authors
# Apache License 2.0 (see LICENSE)

"""Options and attributes that all modules have."""

from __future__ import annotations


class ModuleDocFragment:
    """The program and its history."""

    DOCUMENTATION = r"""
options:
  executable:
    description:
      - The program, by name or path.
    type: str
    default: ringfence
  state_directory:
    description:
      - The directory of the history.
      - Without it the program's own, C(/var/lib/ringfence), or what E(RINGFENCE_STATE) names.
    type: path
requirements:
  - ringfence 0.1.0 or newer on the host
author:
  - The Ringfence authors (@ringfence)
"""
