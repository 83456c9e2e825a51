//! Other instances, for commands that change a file which all of them follow.

use std::io::Write;

use super::one_line;
use crate::config::Config;
use crate::shared_files::{self, Kind};

/// Those who follow a file. They may be out of reach; then it is changed here, and servers of this machine tell them later.
pub(super) struct Others<'a> {
    config: Option<&'a Config>,
    kind: Kind,
}

impl<'a> Others<'a> {
    /// Brings what they have changed, where the settings say that the file is shared.
    pub(super) fn heard(config: Option<&'a Config>, kind: Kind) -> std::io::Result<Others<'a>> {
        let others = Others { config, kind };
        match others.settle()? {
            true => Ok(others),
            false => Ok(Others { config: None, ..others }),
        }
    }

    /// Has them get what was changed here.
    pub(super) fn tell(&self) -> std::io::Result<()> {
        self.settle().map(drop)
    }

    /// Whether they were reached.
    fn settle(&self) -> std::io::Result<bool> {
        let Some(config) = self.config else { return Ok(false) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        match runtime.block_on(shared_files::settle(config, self.kind)) {
            None => Ok(false),
            Some(Ok(())) => Ok(true),
            Some(Err(why)) => {
                let why = one_line(&why);
                writeln!(std::io::stderr(), "corbie: other instances cannot be asked: {why}")?;
                writeln!(
                    std::io::stderr(),
                    "corbie: what is said and changed here counts on this machine; its server tells the others when it can"
                )?;
                Ok(false)
            }
        }
    }
}
