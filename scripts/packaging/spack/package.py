# SPDX-License-Identifier: BSD-3-Clause
# Spack recipe of Copper. It has no address of its own: put it into a repository of the site as packages/copper/package.py, and
# build from a checkout of this tree with `spack dev-build copper@main`, or add `git = "..."` for where the site keeps it.
from spack.package import *


class Copper(MakefilePackage):
    """Mounts a shared read-only tree on every node of a job, and lets only the
    roots of an overlay tree read the parallel file system."""

    license("BSD-3-Clause")

    version("main")

    depends_on("c", type="build")
    depends_on("gmake", type="build")

    depends_on("libfuse@3.10:")
    depends_on("libfabric@1.15:")
    depends_on("lz4")
    depends_on("xxhash@0.8:")
    depends_on("libsodium@1.0.18:")

    conflicts("platform=darwin", msg="Copper needs the FUSE of Linux")
    conflicts("platform=windows", msg="Copper needs the FUSE of Linux")

    # All libraries are Spack's, and shared: which providers there are (cxi, verbs, opx) is
    # a matter of its libfabric.
    def common_arguments(self):
        return [
            "FABRIC=shared",
            "VERSION={0}".format(self.version),
            # Compilers that warn of more than the one that the project uses are no failure here.
            "CFLAGS=-Wno-error",
            "CPPFLAGS=-I{0}".format(self.spec["libfuse"].prefix.include.fuse3),
            "LIBS=-lfuse3 -lfabric -llz4 -lxxhash -lsodium -ldl -lrt",
        ]

    @property
    def build_targets(self):
        return self.common_arguments() + ["all"]

    @property
    def install_targets(self):
        return self.common_arguments() + ["PREFIX={0}".format(self.prefix), "install"]

    def setup_run_environment(self, env):
        env.set("COPPER_ROOT", self.prefix)
