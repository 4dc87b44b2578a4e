//! The servers that runs and tools need: the model's, and the gateway.

use holdfast_agent::model::ModelError;

use super::Check;
use crate::app::App;
use crate::args::executor::ModelArgs;
use crate::executor;
#[cfg(feature = "web")]
use crate::web;

pub(super) async fn checks(app: &App, args: &ModelArgs) -> Vec<Check> {
    let mut checks = model(app, args).await;
    #[cfg(feature = "web")]
    checks.extend(gateway(app).await);
    checks
}

/// A check of each server of the model that has no name of its own. While one answers, others that do
/// not end no run.
async fn model(app: &App, args: &ModelArgs) -> Vec<Check> {
    const NAME: &str = "model server";
    let model = match executor::model(app, args) {
        Ok(Some(model)) => model,
        Ok(None) => {
            let none = "none is configured; only `holdfast run` and chat completions need one";
            return vec![Check::ok(NAME, none)];
        }
        Err(failure) => {
            let advice = "Mend its address; `--model-url http://127.0.0.1:8000` tries another.";
            return vec![Check::bad(NAME, failure.message, advice)];
        }
    };
    let reached = model.reach_each().await;
    let any_answers = reached.iter().any(|(_, reached)| reached.is_ok());
    let check = |(server, reached): (String, Result<(), ModelError>)| match reached {
        Ok(()) => Check::ok(NAME, format!("{server} answers")),
        Err(error) if any_answers => Check::warn(
            NAME,
            format!("{server} can not be asked: {error}"),
            "Start it, or mend its address (executor.gpt_oss_url, executor.upstreams). Runs ask another \
             server until then.",
        ),
        Err(error) => Check::bad(
            NAME,
            format!("{server} can not be asked: {error}"),
            "Start it, or mend its address (executor.modelUrl, executor.gpt_oss_url, --model-url) and \
             its key (HOLDFAST_MODEL_KEY). Runs end with `gpt_oss_unreachable` until then.",
        ),
    };
    reached.into_iter().map(check).collect()
}

#[cfg(feature = "web")]
async fn gateway(app: &App) -> Option<Check> {
    const NAME: &str = "gateway";
    let config = app.config.gateway.as_ref()?;
    let advice = format!(
        "Start it, or mend gateway.url and the token in {}. Its tools fail until then.",
        config.token_env
    );
    let reached = match web::gateway_client(&app.config, &app.clock)? {
        Ok(client) => client.reach().await,
        Err(why) => Err(why),
    };
    Some(match reached {
        Ok(()) => Check::ok(NAME, format!("{} answers", config.url)),
        Err(why) => Check::bad(NAME, why, advice),
    })
}
