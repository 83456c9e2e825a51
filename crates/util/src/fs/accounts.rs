//! Accounts of this machine, and which of them are in a group.
//!
//! Reads `/etc/passwd` and `/etc/group`. Where `/etc/nsswitch.conf` names other sources, such as LDAP, the members of a group
//! are not known, and only a group with the number of the folder's owner counts as private.

use std::fmt;

/// Why a group is not private.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Membership {
    /// The group of root, which processes of other containers and system accounts are in.
    Root,
    /// This process is not in the group.
    NotOurs { group: u32 },
    /// An account of another user is in the group.
    Other { group: u32, account: String },
    /// Accounts come from other sources than the files of this machine.
    Unknown { group: u32, source: String },
}

impl fmt::Display for Membership {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Membership::Root => to.write_str("its group is root"),
            Membership::NotOurs { group } => write!(to, "this process is not in its group (gid {group})"),
            Membership::Other { group, account } => write!(to, "`{account}` is in its group (gid {group})"),
            Membership::Unknown { group, source } => {
                write!(
                    to,
                    "the members of its group (gid {group}) are listed in `{source}`, which corbie does not \
                    read"
                )
            }
        }
    }
}

/// Users that may be in a private group, and the groups of this process.
#[derive(Debug)]
pub struct Users {
    /// This user, the owner of the folder, and root, who can write everywhere.
    allowed: [u32; 3],
    owner: u32,
    groups: Vec<u32>,
}

/// The account files.
#[derive(Debug, Default)]
pub struct Accounts {
    passwd: String,
    group: String,
    nsswitch: String,
}

const ROOT: u32 = 0;
/// Sources of accounts whose members are all in the files. `systemd` adds service accounts, each with a separate group.
const LOCAL: [&str; 2] = ["files", "systemd"];

#[cfg(unix)]
impl Users {
    pub fn of(owner: u32) -> Users {
        use rustix::process::{getegid, geteuid, getgroups};
        let groups = getgroups().unwrap_or_default().into_iter().chain([getegid()]).map(|group| group.as_raw());
        Users { allowed: [geteuid().as_raw(), owner, ROOT], owner, groups: groups.collect() }
    }
}

impl Accounts {
    /// A file that cannot be read is empty: containers often have none.
    pub fn read() -> Accounts {
        let text = |path: &str| std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Accounts {
            passwd: text("/etc/passwd").unwrap_or_default(),
            group: text("/etc/group").unwrap_or_default(),
            nsswitch: text("/etc/nsswitch.conf").unwrap_or_default(),
        }
    }

    /// Fails unless only these users are in the group.
    pub fn must_be_private(&self, group: u32, users: &Users) -> Result<(), Membership> {
        let is_own = group == users.owner;
        if group == ROOT {
            return Err(Membership::Root);
        }
        if !is_own && !users.groups.contains(&group) {
            return Err(Membership::NotOurs { group });
        }
        if let Some(account) = self.members(group).find(|name| !self.is_one_of(name, &users.allowed)) {
            return Err(Membership::Other { group, account: account.to_owned() });
        }
        match self.other_source().filter(|_| !is_own) {
            Some(source) => Err(Membership::Unknown { group, source: source.to_owned() }),
            None => Ok(()),
        }
    }

    /// Names of the accounts in a group: those it lists, and those whose primary group it is.
    fn members(&self, group: u32) -> impl Iterator<Item = &str> {
        let of_group = move |number: &str| number.parse() == Ok(group);
        let listed = fields(&self.group).filter(move |fields| fields.get(2).is_some_and(|number| of_group(number)));
        let listed = listed.flat_map(|fields| fields.get(3).copied().unwrap_or_default().split(','));
        let primary = fields(&self.passwd).filter(move |fields| fields.get(3).is_some_and(|number| of_group(number)));
        listed.chain(primary.map(|fields| fields[0])).map(str::trim).filter(|name| !name.is_empty())
    }

    /// Whether an account has one of these numbers. An unknown account has none.
    fn is_one_of(&self, name: &str, users: &[u32]) -> bool {
        let number =
            fields(&self.passwd).find(|fields| fields[0] == name).and_then(|fields| fields.get(2)?.parse().ok());
        number.is_some_and(|number| users.contains(&number))
    }

    /// The first source of users or groups that is not a file of this machine.
    fn other_source(&self) -> Option<&str> {
        let lines = self.nsswitch.lines().filter_map(|line| line.split('#').next()?.split_once(':'));
        let sources = lines.filter(|(database, _)| matches!(database.trim(), "passwd" | "group" | "initgroups"));
        let mut names = sources.flat_map(|(_, sources)| sources.split_whitespace());
        // `[NOTFOUND=return]` is an action.
        names.find(|name| !name.starts_with('[') && !LOCAL.contains(name))
    }
}

/// The fields of each line that has some.
fn fields(text: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split(':').collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\n\
        bob:x:1001:1001::/home/bob:/bin/sh\nmail:x:8:12::/var/mail:/usr/sbin/nologin\n";
    const GROUP: &str =
        "root:x:0:\nada:x:1000:\nstaff:x:50:ada,bob\nown:x:60:ada\nempty:x:70:\nghost:x:80:gone\nmail:x:12:\n";

    fn accounts(nsswitch: &str) -> Accounts {
        Accounts { passwd: PASSWD.to_owned(), group: GROUP.to_owned(), nsswitch: nsswitch.to_owned() }
    }

    /// Ada, in groups with and without other accounts, and in one without an entry.
    fn ada(owner: u32) -> Users {
        Users { allowed: [1000, owner, ROOT], owner, groups: vec![0, 12, 50, 60, 70, 80, 1000, 2000] }
    }

    #[test]
    fn s14_an_fs_group_without_an_entry_and_groups_of_this_user_alone_are_private() {
        for nsswitch in ["", "passwd: files systemd\ngroup: files [SUCCESS=merge] systemd # ldap\nhosts: dns\n"] {
            for group in [60, 70, 1000, 2000] {
                assert_eq!(accounts(nsswitch).must_be_private(group, &ada(ROOT)), Ok(()), "{group}");
            }
        }
        assert_eq!(Accounts::default().must_be_private(2000, &ada(ROOT)), Ok(()), "a container without account files");
    }

    #[test]
    fn s14_a_group_with_an_account_of_another_user_is_shared() {
        let other = |group, account: &str| Err(Membership::Other { group, account: account.to_owned() });
        let accounts = accounts("");
        assert_eq!(accounts.must_be_private(50, &ada(ROOT)), other(50, "bob"), "a listed member");
        assert_eq!(accounts.must_be_private(12, &ada(ROOT)), other(12, "mail"), "a primary group");
        assert_eq!(accounts.must_be_private(80, &ada(ROOT)), other(80, "gone"), "an account that is not known");
        assert_eq!(accounts.must_be_private(90, &ada(ROOT)), Err(Membership::NotOurs { group: 90 }));
        assert_eq!(accounts.must_be_private(0, &ada(ROOT)), Err(Membership::Root));
    }

    #[test]
    fn s14_the_group_of_the_owner_is_private_unless_another_account_is_in_it() {
        let root = Users { allowed: [ROOT, 1000, ROOT], owner: 1000, groups: vec![0] };
        assert_eq!(accounts("").must_be_private(1000, &root), Ok(()), "root looks after the folder of ada");
        let shared = Accounts { group: "ada:x:1000:bob\n".to_owned(), ..accounts("") };
        assert!(matches!(shared.must_be_private(1000, &root), Err(Membership::Other { .. })));
    }

    #[test]
    fn s14_members_that_a_directory_service_knows_make_a_group_shared() {
        for nsswitch in ["group: files sss", "passwd: files ldap", "initgroups: files winbind"] {
            let refused = accounts(nsswitch).must_be_private(2000, &ada(ROOT)).unwrap_err();
            assert!(matches!(&refused, Membership::Unknown { .. }), "{refused}");
            assert_eq!(accounts(nsswitch).must_be_private(1000, &ada(1000)), Ok(()), "the group of the owner");
        }
    }
}
