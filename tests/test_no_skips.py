import pytest

PASSING = "def test_one():\n    assert True\n"
SKIPPING = 'import pytest\n\ndef test_two():\n    pytest.skip("redis-server is missing")\n'
SKIPPED_MODULE = 'import pytest\n\npytest.skip("no such thing", allow_module_level=True)\n'
NOT_APPLICABLE = (
    'import pytest\n\ndef test_two():\n    pytest.skip("not applicable: one process")\n'
)
EXPECTED_FAILURE = "import pytest\n\n@pytest.mark.xfail\ndef test_two():\n    assert False\n"


@pytest.fixture
def run(run_pytest):
    def run(source, CI=""):  # noqa: N803 - as it is in the environment
        return run_pytest("no_skips", PASSING + source, CI=CI)

    return run


@pytest.mark.parametrize(
    ("source", "named"), [(SKIPPING, "redis-server is missing"), (SKIPPED_MODULE, "no such thing")]
)
def test_skip_is_a_failure_in_ci_and_is_named(run, source, named):
    result = run(source, CI="true")
    assert result.returncode not in (0, 2)
    assert named in result.stdout


def test_skip_is_no_failure_elsewhere(run):
    assert run(SKIPPING).returncode == 0


@pytest.mark.parametrize("source", ["", NOT_APPLICABLE, EXPECTED_FAILURE])
def test_what_is_no_skip_or_not_applicable_is_no_failure(run, source):
    assert run(source, CI="true").returncode == 0
