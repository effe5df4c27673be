"""The broker's promises about folders that it makes for a person."""

import pytest

from gateway.testing.contract_steps import ContractSite, Steps, refused


class MakeFolderContract(Steps):
    """A folder with files, made as the person."""

    def test_a_folder_is_made_whole_with_those_above_it(self, site: ContractSite) -> None:
        user = site.cast.user
        files = {"train.py": "print('一')\n", "lib/a.py": "", "run.sh": "#!/bin/sh\r\n"}
        path = site.broker.make_folder("~/recipes/one", files, user=user)
        assert path == f"/home/{user}/recipes/one"
        found = site.broker.list_folder(path, user=user)
        assert [one.name for one in found.entries] == ["lib", "run.sh", "train.py"]
        for name, text in files.items():
            chunk = site.broker.read_file(f"{path}/{name}", user=user, offset=0, max_bytes=100)
            assert chunk.text == text

    def test_what_is_there_stays_as_it_is(self, site: ContractSite) -> None:
        user, files = site.cast.user, {"a.py": "new\n"}
        path = site.broker.make_folder(f"/home/{user}/made", files, user=user)
        site.write(f"/home/{user}/made-file", user, "")
        site.link(f"/home/{user}/made-link", user, "/nowhere")
        for name in ("made", "made-file", "made-link"):
            with refused("folder_exists"):
                site.broker.make_folder(f"/home/{user}/{name}", {"a.py": "other\n"}, user=user)
        chunk = site.broker.read_file(f"{path}/a.py", user=user, offset=0, max_bytes=100)
        assert chunk.text == "new\n"

    def test_nothing_is_made_where_the_person_may_not(self, site: ContractSite) -> None:
        user, other = site.cast.user, site.cast.other
        site.write(f"/home/{user}/no-folder-here", user, "")
        for code, path in (
            ("folder_outside", "/etc/made"),
            ("folder_not_permitted", f"/home/{other}/made"),
            ("folder_not_a_folder", f"/home/{user}/no-folder-here/made"),
            ("folder_missing", "relative/made"),
            ("folder_missing", "~"),
        ):
            with refused(code):
                site.broker.make_folder(path, {"a.py": ""}, user=user)

    @pytest.mark.parametrize(
        "files",
        [
            {},
            {"../a.py": ""},
            {"/etc/passwd": ""},
            {"a/../b.py": ""},
            {"a\nb.py": ""},
            {"a": "", "a/b": ""},
            {"a.py": "\0"},
            {f"{n}.py": "" for n in range(101)},
            {"a.py": "x" * (2**17 + 1)},
        ],
    )
    def test_files_that_cannot_be_laid_are_refused(
        self, site: ContractSite, files: dict[str, str]
    ) -> None:
        user = site.cast.user
        with refused("folder_bad_files"):
            site.broker.make_folder(f"/home/{user}/bad-files", files, user=user)
        assert site.broker.check_folder(f"/home/{user}/bad-files", user=user).problem == "missing"
