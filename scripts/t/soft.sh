# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced after harness.sh: a tree of software like those that sites have on a parallel file system.

# SOFT is DIR, with envs/torch in the layout of conda (an interpreter that finds its library next to
# itself), venvs/train (a venv whose base is that environment), a package in each, and train.py,
# which says on which host it runs and fails where something is read past the mount.
make_soft() { # DIR
	local version env
	version=$("$PYTHON" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
	SOFT=$1
	env=$SOFT/envs/torch
	mkdir -p "$env/bin" "$env/lib" "$SOFT/venvs"
	cp -L "$PYTHON" "$env/bin/$version"
	ln -s "$version" "$env/bin/python3"
	ln -s python3 "$env/bin/python"
	rsync -rl --exclude test --exclude __pycache__ --exclude 'config-*' --exclude idlelib \
		--exclude sitecustomize.py \
		"$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')/" \
		"$env/lib/$version"
	mkdir -p "$env/lib/$version/site-packages/torchlike"
	echo 'where = __file__' >"$env/lib/$version/site-packages/torchlike/__init__.py"
	# Debian's interpreter searches dist-packages, conda's site-packages.
	rm -rf "$env/lib/$version/dist-packages"
	ln -s site-packages "$env/lib/$version/dist-packages"
	printf '#!%s\nimport sys\nprint("tool of", sys.prefix)\n' "$env/bin/python" >"$env/bin/tool"
	chmod 755 "$env/bin/tool"
	"$env/bin/python" -m venv --without-pip "$SOFT/venvs/train"
	mkdir -p "$SOFT/venvs/train/lib/$version/site-packages/worklike"
	echo 'where = __file__' >"$SOFT/venvs/train/lib/$version/site-packages/worklike/__init__.py"
	cat >"$SOFT/train.py" <<-PY
		import json, socket, sys
		import torchlike
		print("trained on %s with %s" % (socket.gethostname(), sys.prefix))
		# In a view the tree is at the place of its source.
		view = any(m.split()[4] == "$SOFT" and " copper" in m for m in open("/proc/self/mountinfo"))
		for path in (json.__file__, torchlike.where, sys.executable):
		    if path.startswith("$SOFT/") and not view:
		        sys.exit(path + " was read past the mount")
	PY
	chmod -R a+rX "$SOFT"
}
