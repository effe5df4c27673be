"""The web process: builds its objects once and joins the pages by subject."""

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from flask import Flask, request, url_for
from jinja2 import StrictUndefined

from gateway import logs
from gateway.brokerclient.client import SocketBroker
from gateway.brokerclient.port import Broker
from gateway.config import Settings, assets, load_settings
from gateway.core.access import Permission
from gateway.services.environments import load_environments
from gateway.services.forecaster import Forecaster
from gateway.services.plan import load_cards
from gateway.services.templates import Catalogue
from gateway.store.uow import Begin, make_begin, make_engine
from gateway.web import failures, i18n, show
from gateway.web.access import init_access, viewer_or_none
from gateway.web.deps import Deps
from gateway.web.frontdoor import init_front_door
from gateway.web.ids import Id
from gateway.web.money import init_money
from gateway.web.security import init_security
from gateway.web.texts import gettext
from gateway.web.views import (
    admin,
    admin_contribution,
    admin_contribution_lines,  # noqa: F401  # adds its routes to contribution's
    admin_contribution_rules,  # noqa: F401  # adds its routes to contribution's
    admin_credit,
    admin_months,
    admin_prices,
    admin_review,
    admin_volumes,
    api,
    api_apps,  # noqa: F401  # adds its routes to the API's
    api_datasets,  # noqa: F401  # adds its routes to the API's
    api_environments,  # noqa: F401  # adds its routes to the API's
    api_recipes,  # noqa: F401  # adds its routes to the API's
    api_results,  # noqa: F401  # adds its routes to the API's
    api_snapshots,  # noqa: F401  # adds its routes to the API's
    api_usage,  # noqa: F401  # adds its route to the API's
    api_volumes,  # noqa: F401  # adds its routes to the API
    api_waits,  # noqa: F401  # adds its routes to the API's
    appgate,
    apps,
    auth,
    cluster,
    dataset_acts,  # noqa: F401  # adds its routes to the datasets'
    datasets,
    environments,
    forecast_record,
    group,
    group_budgets,  # noqa: F401  # adds its routes to the group's
    group_members,  # noqa: F401  # adds its routes to the group's
    group_shares,  # noqa: F401  # adds its routes to the group's
    group_steer,  # noqa: F401  # adds its routes to the group's
    health,
    help,
    jobs,
    library,
    plan,
    points,  # noqa: F401  # adds its filters to the templates
    policy,
    policy_act,  # noqa: F401  # adds its routes to policy's
    policy_edit,  # noqa: F401  # adds its routes to policy's
    purse,
    recipes,
    results,
    search,
    snapshots,
    spot,
    submissions,
    submit,
    usage,
    volumes,
    wait_causes,
    waits,
)


def served() -> Flask:
    """What the web server runs: a process of its own, so the log is this app's to set up."""
    logs.configure()
    app = create_app()
    app.extensions["sluice"].forecaster.warm()  # before the workers are forked, who share it
    return app


def create_app(
    settings: Settings | None = None,
    *,
    begin: Begin | None = None,
    read: Begin | None = None,
    broker: Broker | None = None,
    catalogue: Catalogue | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Flask:
    """An app of its own each time. What is not given is built from the settings."""
    settings = settings or load_settings()
    app = Flask(
        "gateway.web",
        template_folder=str(assets() / "templates"),
        root_path=str(Path(__file__).parent),
    )
    app.extensions["sluice"] = _deps(
        settings, begin=begin, read=read, broker=broker, catalogue=catalogue, clock=clock
    )
    app.url_map.converters["int"] = Id
    guard = init_security(app, settings)
    init_front_door(app, settings.home)
    init_access(app)
    i18n.init_i18n(app, settings)
    _init_templates(app, settings)
    failures.init_failures(app)
    for module in (auth, submit, plan, submissions, jobs, cluster, group, search, help, health):
        app.register_blueprint(module.bp)
    for module in (spot, admin, admin_credit, admin_prices, admin_review, admin_months, policy):
        app.register_blueprint(module.bp)
    for module in (admin_contribution, waits, wait_causes, usage):
        app.register_blueprint(module.bp)
    for module in (apps, appgate, results):
        app.register_blueprint(module.bp)
    app.register_blueprint(library.bp)
    app.register_blueprint(recipes.bp)
    app.register_blueprint(datasets.bp)
    app.register_blueprint(forecast_record.bp)
    app.register_blueprint(environments.bp)
    app.register_blueprint(snapshots.bp)
    for module in (volumes, admin_volumes):
        app.register_blueprint(module.bp)
    app.register_blueprint(api.bp)
    guard.exempt(api.bp)  # it takes bearer tokens alone: no cookie, so nothing to forge
    return app


def _deps(
    settings: Settings,
    *,
    begin: Begin | None,
    read: Begin | None,
    broker: Broker | None,
    catalogue: Catalogue | None,
    clock: Callable[[], datetime] | None,
) -> Deps:
    if begin is None:
        engine = make_engine(settings.database_url)
        begin, read = make_begin(engine), make_begin(engine, read_only=True)
    return Deps(
        settings=settings,
        begin=begin,
        read=read or begin,
        broker=broker
        or SocketBroker(settings.broker_socket, timeout_seconds=settings.broker_timeout_seconds),
        catalogue=catalogue
        or Catalogue.load(
            settings.template_folders, kit=settings.node_kit, local=settings.node_local
        ),
        environments=load_environments(settings.environments_file),
        cards=load_cards(settings.home),
        forecaster=Forecaster(settings.home / "history"),
        clock=clock or (lambda: datetime.now(UTC)),
    )


def menu() -> list[tuple[str, str]]:
    """The pages that stand in the head of each page."""
    return [
        ("submit.new", gettext("Submit")),
        ("plan.index", gettext("Plan")),
        ("jobs.index", gettext("Jobs")),
        ("apps.index", gettext("Notebooks")),
        ("cluster.index", gettext("Cluster")),
        ("waits.index", gettext("Waits")),
        ("group.index", gettext("Group")),
        ("library.index", gettext("Library")),
        *([("admin.index", gettext("Admin"))] if _sees_health() else []),
    ]


def admin_menu() -> list[tuple[str, str]]:
    """The administrators' pages that this person may open."""
    who = viewer_or_none()
    pages = [
        ("admin.index", gettext("What needs attention"), Permission.SEE_HEALTH),
        ("review.index", gettext("Review"), Permission.SEE_ALL_CREDIT),
        ("credit.groups", gettext("Credit"), Permission.SEE_ALL_CREDIT),
        ("prices.index", gettext("Prices"), Permission.SEE_ALL_CREDIT),
        ("credit.packages", gettext("Packages"), Permission.SEE_ALL_CREDIT),
        ("credit.campaigns", gettext("Campaigns"), Permission.SEE_ALL_CREDIT),
        ("months.index", gettext("Months"), Permission.SEE_ALL_CREDIT),
        ("policy.index", gettext("QoS"), Permission.SEE_POLICY),
        ("policy.changes", gettext("Changes"), Permission.SEE_POLICY),
        ("contribution.index", gettext("Contribution"), Permission.SEE_POLICY),
        ("admin_volumes.index", gettext("Volumes"), Permission.MANAGE_VOLUMES),
        ("admin.people", gettext("People"), Permission.MANAGE_PEOPLE),
    ]
    return [(name, word) for name, word, needed in pages if who is not None and who.may(needed)]


def _sees_health() -> bool:
    who = viewer_or_none()
    return who is not None and who.may(Permission.SEE_HEALTH)


def _init_templates(app: Flask, settings: Settings) -> None:
    app.jinja_env.undefined = StrictUndefined
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    show.init_show(app)
    init_money(app)
    prints = _fingerprints(Path(app.static_folder or ""))

    def asset(name: str) -> str:
        """The address changes with the file, so that nobody keeps last month's."""
        return url_for("static", filename=name, v=prints.get(name, "0"))

    @app.context_processor
    def _common() -> dict[str, object]:
        return {
            "viewer": viewer_or_none(),
            "site_name": settings.site_name,
            "cluster_name": settings.cluster_name,
            "languages": i18n.LANGUAGES,
            "language": i18n.language,
            "language_tag": i18n.language_tag,
            "menu": menu,
            "admin_menu": admin_menu,
            "purses": purse.purses,
            "asset": asset,
            "here": request.endpoint,
            "here_path": request.full_path.rstrip("?") if request.method == "GET" else "/",
        }


def _fingerprints(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()[:12]
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
