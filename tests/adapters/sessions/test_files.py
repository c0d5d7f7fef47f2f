"""A session's logs: bounded, and without the values of secrets."""

import pytest

from lockgate.adapters.sessions.runner.files import Log, written
from lockgate.core.model.secrets import Secret, forms_of

SECRET = Secret("A_TOKEN", "sk-0123456789/abc+def=")


@pytest.mark.parametrize("form", forms_of(SECRET))
@pytest.mark.parametrize("size", [1, 5, 19, 1000])
def test_a_secret_is_hidden_however_its_bytes_come(tmp_path, form, size) -> None:
    text = b"before sk-01 " + form + b" after " + form + b"\n"
    log = Log(str(tmp_path / "out"), 1 << 20, (SECRET,))

    for at in range(0, len(text), size):
        log.write(text[at : at + size])
    log.close()

    hidden = "[secret A_TOKEN]"
    assert written(str(tmp_path / "out")) == f"before sk-01 {hidden} after {hidden}\n"


def test_what_is_no_secret_after_all_is_written_at_the_end(tmp_path) -> None:
    log = Log(str(tmp_path / "out"), 1 << 20, (SECRET,))

    log.write(b"it ends with sk-012345")
    before = written(str(tmp_path / "out"))
    log.close()

    assert before == "it ends with "
    assert written(str(tmp_path / "out")) == "it ends with sk-012345"
