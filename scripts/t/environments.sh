# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: BSD-3-Clause
# Sourced after harness.sh: the environments that users have, in a tree of software.
# shellcheck source=soft.sh
. "$(dirname "$0")/soft.sh"

# Sets SOFT to DIR (make_soft), and adds console scripts, app (a program with an absolute RPATH;
# compiler is empty if there is no gcc), perl and, if there is Node.js, js.
make_environments() { # DIR
	local name js
	make_soft "$1"
	# Written as pip writes a console script, and as make install writes a program with an
	# absolute RPATH.
	for name in venvs/train envs/torch; do
		printf '#!%s/%s/bin/python\nimport sys, json\nprint(sys.prefix, json.__file__)\n' \
			"$SOFT" "$name" >"$SOFT/$name/bin/console"
		chmod 755 "$SOFT/$name/bin/console"
	done
	compiler=
	if command -v gcc >/dev/null; then
		compiler=yes
		mkdir -p "$SOFT/app/lib" "$SOFT/app/bin" "$T/build"
		echo 'int answer(void) { return 42; }' >"$T/build/lib.c"
		printf '%s\n' '#include <stdio.h>' 'int answer(void);' \
			'int main(void) { printf("%d\n", answer()); return 0; }' >"$T/build/main.c"
		gcc -shared -fPIC -o "$SOFT/app/lib/libanswer.so" "$T/build/lib.c" &&
			gcc -o "$SOFT/app/bin/main" "$T/build/main.c" -L"$SOFT/app/lib" -lanswer \
				-Wl,-rpath,"$SOFT/app/lib"
	fi
	mkdir -p "$SOFT/perl/lib/Site" "$SOFT/perl/bin"
	ln -s "$(command -v perl)" "$SOFT/perl/bin/perl"
	printf 'package Site::Thing;\nsub say_it { print "thing of $INC{q(Site/Thing.pm)}\\n" }\n1;\n' >"$SOFT/perl/lib/Site/Thing.pm"
	printf '#!%s/perl/bin/perl\nuse lib "%s/perl/lib";\nuse Site::Thing;\nSite::Thing::say_it();\n' "$SOFT" "$SOFT" >"$SOFT/perl/bin/tool"
	chmod 755 "$SOFT/perl/bin/tool"
	# As npm lays a project out: packages, a workspace that is a link, commands that are links
	# in .bin.
	if command -v node >/dev/null; then
		js=$SOFT/js
		mkdir -p "$js/node_modules/.bin" "$js/node_modules/@site/tool/lib" \
			"$js/packages/local"
		echo '{"name":"@site/tool","version":"1.0.0","bin":{"tool":"cli.js"},"exports":{".":"./lib/main.js","./deep":{"import":"./lib/deep.mjs","require":"./lib/deep.js"}}}' \
			>"$js/node_modules/@site/tool/package.json"
		echo 'exports.where = __filename' | tee "$js/node_modules/@site/tool/lib/main.js" \
			>"$js/node_modules/@site/tool/lib/deep.js"
		echo 'export const where = new URL(import.meta.url).pathname' \
			>"$js/node_modules/@site/tool/lib/deep.mjs"
		printf '#!/usr/bin/env node\nconsole.log(require("./lib/main.js").where, require("local").where)\n' >"$js/node_modules/@site/tool/cli.js"
		echo '{"name":"local","version":"1.0.0","main":"index.js"}' \
			>"$js/packages/local/package.json"
		echo 'exports.where = __filename' >"$js/packages/local/index.js"
		ln -s ../packages/local "$js/node_modules/local"
		ln -s ../@site/tool/cli.js "$js/node_modules/.bin/tool"
		chmod 755 "$js/node_modules/@site/tool/cli.js"
	fi
	chmod -R a+rX "$SOFT"
}
