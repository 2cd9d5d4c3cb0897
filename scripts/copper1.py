# SPDX-License-Identifier: BSD-3-Clause
"""For the commands of Copper 1.0 beside this file, which job scripts call by their old names: the
copper that is meant."""
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))


def find_copper():
    """COPPER names it; else the one of COPPER_ROOT, of this tree, or of PATH."""
    root = os.environ.get("COPPER_ROOT")
    places = [os.environ.get("COPPER"), root and os.path.join(root, "build/copper"),
              root and os.path.join(root, "bin/copper"),
              os.path.join(HERE, "../build/copper"), os.path.join(HERE, "../bin/copper"),
              os.path.join(HERE, "../../../bin/copper")]
    for file in places:
        if file and os.path.isfile(file) and os.access(file, os.X_OK):
            return os.path.normpath(file)
    file = shutil.which("copper")
    if not file:
        sys.exit(os.path.basename(sys.argv[0]) +
                 ": there is no copper here: set COPPER_ROOT, or load its module")
    return file


def run(arguments):
    """Runs a subcommand; its exit status."""
    sys.stdout.flush()
    return subprocess.call([find_copper()] + arguments)


def ask(arguments, errors=None):
    """Runs a subcommand; its exit status and what it printed."""
    done = subprocess.Popen([find_copper()] + arguments, stdout=subprocess.PIPE, stderr=errors,
                            universal_newlines=True)
    text = done.communicate()[0]
    return done.returncode, text
