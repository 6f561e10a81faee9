"""A registration over stub workers, for each test that asks for `bench`."""

from tests.kit.daemon import bench as bench
