//! Checks `packaging/` against the program: settings, commands, ports and paths exist.

#[path = "packaging/yaml.rs"]
mod yaml;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::http::{HttpClient, StreamingResponse};
use crate::process::{ProcessOutput, corbie, free_port, report_skip};

/// The port of all packages.
const PORT: &str = "8090";
/// Default of `server.shutdown_grace_seconds`.
const GRACE: u32 = 30;
/// Content of the secret that the manifests refer to. The database address is a closed port.
const SECRET: [(&str, &str); 2] = [
    ("token", "5f2b1c9ad07e4386b1d95e0f72ac48d3916ce7508bfa24d13e6079c5a81bd4f2"),
    ("database", "postgres://corbie:PASSWORD@127.0.0.1:1/corbie"),
];
/// Each manifest and the workload kind of its pods.
const MANIFESTS: [(&str, &str); 2] = [("kubernetes.yaml", "StatefulSet"), ("kubernetes-postgres.yaml", "Deployment")];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join("packaging").join(name)).unwrap()
}

/// Asserts that the settings are valid, and that with the token the server may listen on that address.
#[track_caller]
fn assert_valid_settings(variables: &[(String, String)]) {
    let with = |arguments: &str| -> ProcessOutput {
        let setup = variables.iter().fold(corbie(arguments), |setup, (name, value)| setup.variable(name, value));
        setup.variable("MCP_API_KEY", "10f5f77eef9a6b43dc5bf972c7cfd101133e5b73").run("")
    };
    let ended = with("config validate");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{variables:?}: {ended:?}");
    let shown = with("config show").stdout;
    assert!(shown.contains(&format!("0.0.0.0:{PORT}")), "{shown}");
}

/// The rest of each line that starts with a word.
fn directives<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
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
    let variables: Vec<(String, String)> = directives(&dockerfile, "ENV ")
        .iter()
        .map(|line| line.split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.trim_matches('\'').to_owned()))
        .collect();
    assert_valid_settings(&variables);
    assert_eq!(directives(&dockerfile, "EXPOSE "), [PORT]);
    // The same toolchain as in `Cargo.toml`.
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let toolchain = directives(&manifest, "rust-version = ")[0].trim_matches('"');
    assert!(dockerfile.contains(&format!("FROM rust:{toolchain}-")), "it is not built with {toolchain}");
    let user = directives(&dockerfile, "USER ")[0];
    assert!(user.split(':').all(|number| number.parse::<u32>().is_ok_and(|number| number > 0)), "{user}");
    for (line, first) in [("ENTRYPOINT ", "[\"/usr/local/bin/corbie\"]"), ("CMD ", "[\"serve\"]")] {
        assert_eq!(directives(&dockerfile, line), [first]);
    }
    let check = dockerfile.split("HEALTHCHECK").nth(1).unwrap().lines().next().unwrap();
    assert!(check.ends_with("CMD [\"/usr/local/bin/corbie\", \"health\"]"), "{check}");
    assert_a_command(&["health"]);
    let ignored = read("Dockerfile.dockerignore");
    let kept = directives(&ignored, "!");
    for name in &kept {
        assert!(root().join(name).exists(), "{name} is not there to be copied");
    }
    // Everything the build needs is included: members of the package manifest, and files that the sources embed.
    let needed = ["Cargo.toml", "Cargo.lock", "LICENSE", "build.rs", "src", "crates", "console", "schema", "examples"];
    for name in needed {
        assert!(kept.contains(&name), "{name} is kept out of the image");
    }
}

/// A server reachable from other machines does not start without a token; with one, `corbie health` succeeds.
#[test]
fn a_container_needs_a_token_and_then_its_own_health_check_passes() {
    let port = free_port();
    let listen = format!("[\"0.0.0.0:{port}\"]");
    let setup = |arguments: &str| corbie(arguments).variable("CORBIE_SERVER__LISTEN", &listen);
    let ended = setup("serve").run("");
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("MCP_API_KEY"), "{}", ended.stderr);
    let mut server = setup("serve").variable("MCP_API_KEY", "71669691cb0b0f1bf662939c0db0782fb1a71b10").start();
    server.wait_for_log("listening");
    let ended = setup("health").run("");
    let ready = format!("http://127.0.0.1:{port}/ is ready (status ok)\n");
    assert_eq!((ended.code, ended.stdout), (Some(0), ready), "{}", ended.stderr);
}

#[test]
fn the_composition_names_ports_and_files_that_exist() {
    let composition = &yaml::documents(&read("docker-compose.yaml"))[0]["services"]["corbie"];
    assert_eq!(composition["ports"][0], format!("127.0.0.1:{PORT}:{PORT}"));
    assert!(root().join(composition["build"]["dockerfile"].as_str().unwrap()).exists());
    assert_eq!(composition["volumes"][0], "corbie:/data");
    assert!(composition["environment"]["MCP_API_KEY"].is_string());
}

#[test]
fn clusters_name_settings_ports_and_labels_that_exist() {
    for (file, keeper) in MANIFESTS {
        let text = read(file);
        let documents = yaml::documents(&text);
        let (service, keeper) = (find_kind(&documents, "Service"), find_kind(&documents, keeper));
        let labels = &keeper["spec"]["template"]["metadata"]["labels"];
        assert!(labels.is_object(), "{file}");
        assert_eq!(service["spec"]["selector"], *labels, "{file}");
        assert_eq!(keeper["spec"]["selector"]["matchLabels"], *labels, "{file}");
        let container = container(keeper);
        assert_eq!(service["spec"]["ports"][0]["port"], PORT, "{file}");
        assert_eq!(service["spec"]["ports"][0]["targetPort"], container["ports"][0]["name"], "{file}");
        assert_eq!(container["ports"][0]["containerPort"], PORT, "{file}");
        assert_eq!(container["image"], format!("corbie:{}", env!("CARGO_PKG_VERSION")), "{file}");
        assert_valid_settings(&variables(container));
        for key in list(&container["env"]).iter().filter_map(|one| one["valueFrom"]["secretKeyRef"]["key"].as_str()) {
            assert!(
                text.contains(&format!("--from-literal={key}=")),
                "{file} does not tell to put `{key}` into the secret"
            );
        }
        assert_a_command(&list(&container["args"]).iter().filter_map(Value::as_str).collect::<Vec<_>>());
    }
}

/// As a cluster sends them: to the pod address, with the headers of the manifest.
#[test]
fn probes_of_clusters_pass_also_where_the_database_is_away() {
    for (file, keeper) in MANIFESTS {
        let documents = yaml::documents(&read(file));
        let container = container(find_kind(&documents, keeper));
        let port = free_port();
        let setup =
            variables(container).iter().fold(corbie("serve"), |setup, (name, value)| setup.variable(name, value));
        let data = setup.folder().join("data").display().to_string();
        let setup = setup.variable("XDG_DATA_HOME", data);
        let mut server = setup.variable("CORBIE_SERVER__LISTEN", format!("[\"0.0.0.0:{port}\"]")).start();
        server.wait_for_log("listening");
        for (probe, path) in [("startupProbe", "/live"), ("livenessProbe", "/live"), ("readinessProbe", "/ready")] {
            let asked = &container[probe]["httpGet"];
            assert_eq!(
                (&asked["path"], &asked["port"]),
                (&path.into(), &container["ports"][0]["name"]),
                "{file}: {probe}"
            );
            assert_eq!(probe_status(&HttpClient::v4(port), asked), 200, "{file}: {probe}");
        }
    }
}

/// The user and folders of the image, on a read-only root file system.
#[test]
fn pods_of_clusters_can_write_where_they_have_to_and_nowhere_else() {
    let dockerfile = read("Dockerfile");
    assert!(dockerfile.contains("VOLUME /data"));
    for (file, keeper) in MANIFESTS {
        let documents = yaml::documents(&read(file));
        let keeper = find_kind(&documents, keeper);
        let (pod, container) = (&keeper["spec"]["template"]["spec"], container(keeper));
        let user = pod["securityContext"]["runAsUser"].as_str().unwrap();
        assert!(dockerfile.contains(&format!("USER {user}:{user}")), "{file}: {user}");
        assert_eq!(pod["securityContext"]["fsGroup"], user, "{file}");
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], "true", "{file}");
        let claims = list(&keeper["spec"]["volumeClaimTemplates"]).iter().map(|claim| &claim["metadata"]["name"]);
        let volumes: Vec<&Value> = list(&pod["volumes"]).iter().map(|volume| &volume["name"]).chain(claims).collect();
        for path in ["/data", "/tmp"] {
            let mount = list(&container["volumeMounts"]).iter().find(|mount| mount["mountPath"] == path);
            let mount = mount.unwrap_or_else(|| panic!("{file}: {path} cannot be written"));
            assert!(volumes.contains(&&mount["name"]), "{file}: there is no volume {}", mount["name"]);
        }
    }
}

#[test]
fn of_three_pods_two_always_serve_and_one_that_goes_waits_until_nobody_is_sent_to_it() {
    let documents = yaml::documents(&read("kubernetes-postgres.yaml"));
    let (deployment, budget) = (find_kind(&documents, "Deployment"), find_kind(&documents, "PodDisruptionBudget"));
    let pod = &deployment["spec"]["template"]["spec"];
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!((&deployment["spec"]["replicas"], &budget["spec"]["minAvailable"]), (&"3".into(), &"2".into()));
    assert_eq!(budget["spec"]["selector"]["matchLabels"], *labels);
    for spread in list(&pod["topologySpreadConstraints"]) {
        assert_eq!(spread["labelSelector"]["matchLabels"], *labels, "{spread}");
    }
    let update = &deployment["spec"]["strategy"]["rollingUpdate"];
    assert_eq!((&update["maxSurge"], &update["maxUnavailable"]), (&"1".into(), &"0".into()));
    // The image has the Debian base utilities.
    assert!(directives(&read("Dockerfile"), "FROM ").last().unwrap().starts_with("debian:"));
    let command = list(&container(deployment)["lifecycle"]["preStop"]["exec"]["command"]);
    let [sleep, seconds] = command else { panic!("{command:?}") };
    assert_eq!(sleep, "sleep");
    let given: u32 = pod["terminationGracePeriodSeconds"].as_str().unwrap().parse().unwrap();
    assert!(given > seconds.as_str().unwrap().parse::<u32>().unwrap() + GRACE, "{given} s");
}

fn find_kind<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    documents.iter().find(|document| document["kind"] == kind).unwrap_or_else(|| panic!("there is no {kind}"))
}

fn container(keeper: &Value) -> &Value {
    &keeper["spec"]["template"]["spec"]["containers"][0]
}

/// Empty if the value is not a list.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The variables of a container, including those from the secret.
fn variables(container: &Value) -> Vec<(String, String)> {
    let secret = |one: &Value| {
        let key = one["valueFrom"]["secretKeyRef"]["key"].as_str()?;
        SECRET.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    };
    let variable = |one: &Value| {
        let value = one["value"].as_str().or_else(|| secret(one)).unwrap_or_else(|| panic!("{one} has no value"));
        (one["name"].as_str().unwrap().to_owned(), value.to_owned())
    };
    list(&container["env"]).iter().map(variable).collect()
}

/// The status of a probe.
fn probe_status(client: &HttpClient, asked: &Value) -> u16 {
    let header =
        |header: &Value| format!("{}: {}\r\n", header["name"].as_str().unwrap(), header["value"].as_str().unwrap());
    let headers: String = list(&asked["httpHeaders"]).iter().map(header).collect();
    let head = format!("GET {} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n", asked["path"].as_str().unwrap());
    let mut connection = client.connect().unwrap();
    connection.write_all(head.as_bytes()).unwrap();
    StreamingResponse::read_head(connection).unwrap().head.status
}

#[test]
fn the_service_names_commands_that_exist_and_systemd_understands_it() {
    let unit = read("corbie.service");
    let start = directives(&unit, "ExecStart=")[0].strip_prefix("/usr/local/bin/corbie ").unwrap();
    assert_a_command(&start.split(' ').collect::<Vec<_>>());
    for set in directives(&unit, "Environment=") {
        let (name, value) = set.split_once('=').unwrap();
        let ended = corbie("config validate").variable(name, value).run("");
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{set}");
    }
    for must in ["DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "landlock_restrict_self"] {
        assert!(unit.contains(must), "{must}");
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("corbie.service");
    std::fs::write(&copy, unit.replace("/usr/local/bin/corbie", env!("CARGO_BIN_EXE_corbie"))).unwrap();
    let analyze = |arguments: &[&str], file: &Path| Command::new("systemd-analyze").args(arguments).arg(file).output();
    let Ok(verified) = analyze(&["verify", "--man=no"], &copy) else {
        report_skip("`systemd-analyze` is not there");
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !said.contains("corbie.service"), "{said}");
    // Exposure level times ten; a service without hardening has 96.
    let judged = analyze(&["security", "--offline=true", "--threshold=25"], &copy).unwrap();
    assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stdout));
}
