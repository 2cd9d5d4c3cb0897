-- SPDX-License-Identifier: BSD-3-Clause
-- Lmod modulefile of Copper; make install puts PREFIX and VERSION in.
help([[
Copper mounts a shared read-only tree on every node of a job and reads the
storage once.  Start with: man copper
]])
whatis("Name: Copper")
whatis("Version: @VERSION@")
whatis("Category: tools, file systems")
whatis("Description: a shared tree, read once from the storage and served to every node of a job")

-- Where this file stands counts, so that an archive can be unpacked anywhere.
local prefix = "@PREFIX@"
local here = myFileName():match("^(.*)/share/modulefiles/copper/[^/]*$")
if here and isFile(pathJoin(here, "bin/copper")) then
   prefix = here
end

prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
-- MANPATH that ends empty goes on with the system's pages.
append_path("MANPATH", "")
-- copper/mark.h and copper_mark: see copper-mark(1); copper/run.h and copper_run: copper-runs(1)
prepend_path("CPATH", pathJoin(prefix, "include"))
prepend_path("PYTHONPATH", pathJoin(prefix, "share/copper/python"))
setenv("COPPER_ROOT", prefix)
