# SPDX-License-Identifier: BSD-3-Clause
# Recipe of Copper for Spack 1.0 and newer. It has no address of its own: put it into a repository
# of the site as packages/copper/package.py, and build from a checkout or an unpacked archive of
# this tree with `spack dev-build copper@0.2.0`, or add `git = "..."` for where the site keeps it.
from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Copper(MakefilePackage):
    """Mounts a shared read-only tree on every node of a job, and lets only the
    roots of an overlay tree read the parallel file system."""

    license("BSD-3-Clause")

    version("main")
    version("0.2.0")

    variant("static", default=False,
            description="One static binary, for tcp and shm only, that runs on any Linux")
    variant(
        "fabrics",
        default="tcp",
        values=("tcp", "shm", "cxi", "verbs", "opx"),
        multi=True,
        description="Providers that libfabric must have",
    )

    depends_on("c", type="build")
    depends_on("gmake", type="build")

    depends_on("libfuse@3.10:")
    depends_on("libfabric@1.15:")
    depends_on("lz4")
    depends_on("xxhash@0.8:")
    depends_on("libsodium@1.0.18:")
    depends_on("zlib-api")
    depends_on("sqlite@3.25:")

    # Over tcp and verbs, rxm makes datagrams of streams.
    depends_on("libfabric fabrics=tcp,rxm", when="fabrics=tcp")
    depends_on("libfabric fabrics=shm", when="fabrics=shm")
    depends_on("libfabric fabrics=cxi", when="fabrics=cxi")
    depends_on("libfabric fabrics=verbs,rxm", when="fabrics=verbs")
    depends_on("libfabric fabrics=opx", when="fabrics=opx")

    with when("+static"):
        depends_on("libfuse default_library=shared,static")
        depends_on("lz4 libs=shared,static")
        conflicts("fabrics=cxi", msg="a static program has tcp and shm only")
        conflicts("fabrics=verbs", msg="a static program has tcp and shm only")
        conflicts("fabrics=opx", msg="a static program has tcp and shm only")
        conflicts("^glibc@:2.33",
                  msg="a static program looks up names with glibc 2.34 or newer only")

    conflicts("platform=darwin", msg="Copper needs the FUSE of Linux")
    conflicts("platform=windows", msg="Copper needs the FUSE of Linux")

    # Without +static all libraries are Spack's, and shared: its libfabric has the providers.
    # Ordinary users need the system's fusermount3 on the nodes, because only root can give it the
    # rights that it needs.
    def common_arguments(self):
        libs = "-lfuse3 -lfabric -llz4 -lxxhash -lsodium -lz -lsqlite3 -lm"
        if self.spec.satisfies("+static"):
            linked = "-static $(NO_LOADER) -Wl,--start-group {0} -latomic -ldl -lrt -Wl,--end-group".format(libs)
        else:
            linked = "{0} -ldl -lrt".format(libs)
        return [
            "FABRIC={0}".format("static" if self.spec.satisfies("+static") else "shared"),
            "VERSION={0}".format(self.version),
            "CPPFLAGS=-I{0}".format(self.spec["libfuse"].prefix.include.fuse3),
            "LIBS={0}".format(linked),
        ]

    @property
    def build_targets(self):
        return self.common_arguments() + ["all"]

    @property
    def install_targets(self):
        return self.common_arguments() + ["PREFIX={0}".format(self.prefix), "install"]

    def check(self):
        """`make check` would install packages of the system."""
        make(*self.common_arguments(), "unit")

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        env.set("COPPER_ROOT", self.prefix)
