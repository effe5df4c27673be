"""The kinds of the portal's own jobs, and who takes their results."""

from collections.abc import Mapping

from gateway.services import dataset_ahead, dataset_verify, environment_checks
from gateway.services.site_jobs import Finish

KINDS: Mapping[str, Finish] = {
    environment_checks.KIND: environment_checks.finish,
    dataset_ahead.KIND: dataset_ahead.finish,
    dataset_verify.KIND: dataset_verify.finish,
    dataset_verify.MANIFEST_KIND: dataset_verify.finish_manifest,
}
