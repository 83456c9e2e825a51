//! What is in `packaging/` says nothing that the program does not know: settings, commands, ports and paths.

#[path = "packaging/yaml.rs"]
mod yaml;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process::{Ended, corbie, skip};

/// The port that all of them serve on.
const PORT: &str = "8090";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join("packaging").join(name)).unwrap()
}

/// Settings that must be understood: none is misspelt, and with the token the server may listen there.
#[track_caller]
fn assert_understood(variables: &[(String, String)]) {
    let with = |arguments: &str| -> Ended {
        let setup = variables.iter().fold(corbie(arguments), |setup, (name, value)| setup.variable(name, value));
        setup.run("")
    };
    let ended = with("config validate");
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{variables:?}: {ended:?}");
    let shown = with("config show").out;
    assert!(shown.contains(&format!("0.0.0.0:{PORT}")), "{shown}");
}

/// What follows a word at the beginning of a line.
fn lines<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix(word)).map(str::trim).collect()
}

#[track_caller]
fn assert_a_command(words: &[&str]) {
    let ended = corbie(&words.join(" ")).arguments("--help").run("");
    assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
}

#[test]
fn the_image_names_settings_commands_and_files_that_exist() {
    let dockerfile = read("Dockerfile");
    let variables: Vec<(String, String)> = lines(&dockerfile, "ENV ")
        .iter()
        .map(|line| line.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.trim_matches('\'').to_owned()))
        .collect();
    assert_understood(&variables);
    assert_eq!(lines(&dockerfile, "EXPOSE "), [PORT]);
    // The same toolchain as everywhere.
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let toolchain = lines(&manifest, "rust-version = ")[0].trim_matches('"');
    assert!(dockerfile.contains(&format!("FROM rust:{toolchain}-")), "it is not built with {toolchain}");
    let user = lines(&dockerfile, "USER ")[0];
    assert!(user.split(':').all(|number| number.parse::<u32>().is_ok_and(|number| number > 0)), "{user}");
    for (line, first) in [("ENTRYPOINT ", "[\"/usr/local/bin/corbie\"]"), ("CMD ", "[\"serve\"]")] {
        assert_eq!(lines(&dockerfile, line), [first]);
    }
    let check = dockerfile.split("HEALTHCHECK").nth(1).unwrap().lines().next().unwrap();
    assert!(check.ends_with("CMD [\"/usr/local/bin/corbie\", \"health\"]"), "{check}");
    assert_a_command(&["health"]);
    let ignored = read("Dockerfile.dockerignore");
    let kept = lines(&ignored, "!");
    for name in &kept {
        assert!(root().join(name).exists(), "{name} is not there to be copied");
    }
    // Whatever the program is made of is let in: what the manifest of the package has, and what the sources take in.
    let needed = ["Cargo.toml", "Cargo.lock", "LICENSE", "build.rs", "src", "crates", "console", "schema", "examples"];
    for name in needed {
        assert!(kept.contains(&name), "{name} is kept out of the image");
    }
}

/// A server that others can reach is not started without a token, and with one it is well in the eyes of `corbie health`.
#[test]
fn a_container_needs_a_token_and_then_its_own_health_check_passes() {
    let port = crate::process::free_port();
    let listen = format!("[\"0.0.0.0:{port}\"]");
    let setup = |arguments: &str| corbie(arguments).variable("CORBIE_SERVER__LISTEN", &listen);
    let ended = setup("serve").run("");
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("MCP_API_KEY"), "{}", ended.err);
    let mut server = setup("serve").variable("MCP_API_KEY", "0123456789abcdef0123456789abcdef").start();
    server.logged("listening");
    let ended = setup("health").run("");
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "ready, ok\n"), "{ended:?}");
}

#[test]
fn the_cluster_and_the_composition_name_settings_ports_and_paths_that_exist() {
    let documents = yaml::documents(&read("kubernetes.yaml"));
    let [service, set] = documents.as_slice() else { panic!("{} documents", documents.len()) };
    assert_eq!((&service["kind"], &set["kind"]), (&"Service".into(), &"StatefulSet".into()));
    assert_eq!(service["spec"]["ports"][0]["port"], PORT);
    assert_eq!(service["spec"]["selector"], set["spec"]["template"]["metadata"]["labels"]);
    let pod = &set["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let variable = |one: &Value| Some((one["name"].as_str()?.to_owned(), one["value"].as_str()?.to_owned()));
    let variables: Vec<_> = container["env"].as_array().unwrap().iter().filter_map(variable).collect();
    assert_understood(&variables);
    assert_eq!(container["ports"][0]["containerPort"], PORT);
    let arguments: Vec<&str> = container["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_a_command(&arguments);
    for (probe, path) in [("startupProbe", "/live"), ("livenessProbe", "/live"), ("readinessProbe", "/ready")] {
        assert_eq!(container[probe]["httpGet"]["path"], path, "{probe}");
        assert_eq!(container[probe]["httpGet"]["port"], container["ports"][0]["name"], "{probe}");
    }
    // The user and the folder of the image.
    let dockerfile = read("Dockerfile");
    let user = pod["securityContext"]["runAsUser"].as_str().unwrap();
    assert!(dockerfile.contains(&format!("USER {user}:{user}")), "{user}");
    let mounts = container["volumeMounts"].as_array().unwrap();
    assert!(mounts.iter().any(|mount| mount["mountPath"] == "/data") && dockerfile.contains("VOLUME /data"));
    assert_eq!(container["image"], format!("corbie:{}", env!("CARGO_PKG_VERSION")));

    let composition = &yaml::documents(&read("docker-compose.yaml"))[0]["services"]["corbie"];
    assert_eq!(composition["ports"][0], format!("127.0.0.1:{PORT}:{PORT}"));
    assert!(root().join(composition["build"]["dockerfile"].as_str().unwrap()).exists());
    assert_eq!(composition["volumes"][0], "corbie:/data");
    assert!(composition["environment"]["MCP_API_KEY"].is_string());
}

#[test]
fn the_service_names_commands_that_exist_and_systemd_understands_it() {
    let unit = read("corbie.service");
    let start = lines(&unit, "ExecStart=")[0].strip_prefix("/usr/local/bin/corbie ").unwrap();
    assert_a_command(&start.split(' ').collect::<Vec<_>>());
    for set in lines(&unit, "Environment=") {
        let (name, value) = set.split_once('=').unwrap();
        let ended = corbie("config validate").variable(name, value).run("");
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{set}");
    }
    for must in ["DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "landlock_restrict_self"] {
        assert!(unit.contains(must), "{must}");
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("corbie.service");
    std::fs::write(&copy, unit.replace("/usr/local/bin/corbie", env!("CARGO_BIN_EXE_corbie"))).unwrap();
    let analyze = |arguments: &[&str], file: &Path| Command::new("systemd-analyze").args(arguments).arg(file).output();
    let Ok(verified) = analyze(&["verify", "--man=no"], &copy) else {
        skip("`systemd-analyze` is not there");
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !said.contains("corbie.service"), "{said}");
    // Exposure in tenths, where a service that asks for nothing has 96.
    let judged = analyze(&["security", "--offline=true", "--threshold=25"], &copy).unwrap();
    assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stdout));
}
