//! Finds the process that listens on a port, as far as the user has permission.

#[cfg(target_os = "linux")]
pub(super) use of_linux::listening_at;

#[cfg(not(target_os = "linux"))]
pub(super) fn listening_at(_: u16) -> Option<(u32, String)> {
    None
}

#[cfg(target_os = "linux")]
mod of_linux {
    use std::fs;

    /// State `LISTEN` in `/proc/net/tcp`.
    const LISTENING: &str = "0A";

    /// Id and name of the process.
    pub(in crate::doctor) fn listening_at(port: u16) -> Option<(u32, String)> {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
        let sockets: Vec<String> =
            tables.iter().flat_map(|table| table.lines()).filter_map(|line| socket(line, port)).collect();
        let processes = fs::read_dir("/proc").ok()?.flatten();
        let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let id = ids.find(|id| owns_socket(*id, &sockets))?;
        let name = fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
        Some((id, crate::util::sanitize::sanitize_line(name.trim_end())))
    }

    /// Link target under `/proc/PID/fd` for the socket of a line.
    fn socket(line: &str, port: u16) -> Option<String> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = fields.get(3) == Some(&LISTENING);
        let (_, its_port) = fields.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(its_port, 16).ok()? == port;
        (listens && is_it).then(|| fields.get(9).map(|inode| format!("socket:[{inode}]")))?
    }

    fn owns_socket(id: u32, sockets: &[String]) -> bool {
        let Ok(files) = fs::read_dir(format!("/proc/{id}/fd")) else { return false };
        let mut targets = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
        targets.any(|target| sockets.iter().any(|socket| target.as_os_str() == socket.as_str()))
    }
}
