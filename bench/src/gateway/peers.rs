//! Commands of the peers: one worker, no logs, and otherwise their fastest configuration.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::gateways::{installed_command, write_settings};
use crate::http;

/// The configuration, for the report.
pub(super) const SETTINGS: &str = "vllm-router: one worker, `round_robin`, which is cheaper than its `cache_aware`. \
    nginx: one process, keep-alive on both sides, no buffering, no log. Portkey: the upstream is told in headers of \
    each request. LiteLLM: one worker, no access log, no spend log, and no master key (its setting for local \
    development): nobody else checks a key here";

/// The bare name is resolved by `PATH`.
const NGINX: [&str; 2] = [".tools/bench/nginx/usr/sbin/nginx", "nginx"];
const VLLM_ROUTER: &str = ".tools/bench/vllm-router-venv/bin/vllm-router";
const NODE: &str = ".tools/bench/portkey/node_modules/.bin/node";
const PORTKEY: &str = ".tools/bench/portkey/node_modules/@portkey-ai/gateway/build/start-server.js";
const LITELLM: &str = ".tools/bench/litellm-venv/bin/litellm";

/// Its metrics need a port too.
pub(super) fn vllm_router(port: u16, upstream: u16) -> Result<Command> {
    let mut command = installed_command(VLLM_ROUTER)?;
    command.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
    command.args(["--worker-urls", &format!("http://127.0.0.1:{upstream}"), "--policy", "round_robin"]);
    command.args(["--prometheus-port", &http::free_port()?.to_string(), "--log-level", "error"]);
    Ok(command)
}

pub(super) fn nginx(port: u16, upstream: u16) -> Result<Command> {
    let [unpacked, on_path] = NGINX;
    let program = if Path::new(unpacked).exists() { unpacked } else { on_path };
    let settings = write_settings("nginx.conf", &nginx_settings(port, upstream))?;
    let folder = settings.parent().context("a file has a folder")?;
    let mut command = Command::new(program);
    command.arg("-p").arg(folder).arg("-c").arg(&settings).args(["-e", "stderr"]);
    Ok(command)
}

fn nginx_settings(port: u16, upstream: u16) -> String {
    format!(
        "daemon off;
master_process off;
pid nginx.pid;
error_log stderr error;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path nginx-bodies;
    proxy_temp_path nginx-replies;
    fastcgi_temp_path nginx-fastcgi;
    uwsgi_temp_path nginx-uwsgi;
    scgi_temp_path nginx-scgi;
    upstream fake {{
        server 127.0.0.1:{upstream};
        keepalive 64;
        keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{port};
        keepalive_requests 1000000000;
        location / {{
            proxy_pass http://fake;
            proxy_http_version 1.1;
            proxy_set_header Connection \"\";
            proxy_buffering off;
        }}
    }}
}}
"
    )
}

pub(super) fn portkey(port: u16) -> Result<Command> {
    let mut command = installed_command(NODE)?;
    command.args([PORTKEY, &format!("--port={port}"), "--headless"]).env("NODE_ENV", "production");
    Ok(command)
}

/// Fetches prices over the network unless configured to use its bundled list.
pub(super) fn litellm(port: u16, upstream: u16) -> Result<Command> {
    let model = |name: &str| {
        format!(
            "  - model_name: {name}\n    litellm_params: {{model: openai/{name}, api_key: sk-bench, \
             api_base: 'http://127.0.0.1:{upstream}/v1'}}\n"
        )
    };
    let settings = format!(
        "model_list:\n{}{}litellm_settings: {{set_verbose: false}}\ngeneral_settings: {{disable_spend_logs: true, \
         dangerously_permit_weak_or_unset_master_key: true}}\n",
        model("gpt-test"),
        model("gpt-test-spaced")
    );
    let no_log =
        r#"{"version": 1, "disable_existing_loggers": false, "loggers": {"uvicorn.access": {"level": "CRITICAL"}}}"#;
    let mut command = installed_command(LITELLM)?;
    command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--num_workers", "1", "--telemetry", "False"]);
    command.arg("--config").arg(write_settings("litellm.yaml", &settings)?);
    command.arg("--log_config").arg(write_settings("litellm-log.json", no_log)?);
    command.env("LITELLM_LOG", "ERROR").env("LITELLM_MODE", "PRODUCTION").env("LITELLM_LOCAL_MODEL_COST_MAP", "True");
    Ok(command)
}
