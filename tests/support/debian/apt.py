"""Debian packages that tests run or read, without installing them: `unpacked("wordnet-base") / "usr/share/wordnet"`."""

from deploy.local.apt_package import PackageMissingError, unpacked, unpacked_before

__all__ = ["PackageMissingError", "unpacked", "unpacked_before"]
